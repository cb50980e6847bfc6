"""Sentences whose words are given, with tags as in the CoNLL tasks or without, and the spans that tags describe."""

import json
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple

from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.corpus import WHOLE, TableRow, corpus_files, part_of
from heedful.data.readers.files import decode_lines, ending_of, open_bytes, read_lines
from heedful.data.readers.filters import DropReport
from heedful.errors import InputError
from heedful.text.words import CutText

# O, or what kind of span a word is in, and where: B beginning, I inside, E or L end, S or U alone (IO, BIO, IOBES,
# BILOU).
TAG = re.compile(r"O|[BIELSU]-\S.*")
INSIDE = "IEL"  # prefixes of tags that may continue a span
OPEN = "BI"  # prefixes of tags after which a span may continue
BEGINS = {"I": "B", "E": "S", "L": "U"}  # the prefix that begins a span, for each that may continue one

ALONE = "S-"  # the prefix of a tag of single words, such as a part of speech, which files may leave out
TREEBANK = 10  # columns of CoNLL-U, in which the word is the second one and its part of speech the fourth
NUMBER = re.compile(r"\d+")  # of a word of CoNLL-U; 1-2 and 1.1 are not words of a sentence

NO_TAG = (
    "is neither O nor a kind with a prefix, such as B-person and I-person; known are B, I, E, S, L and U. "
    "A tag of single words, such as a part of speech, is written with S:"
)

Word = tuple[int, str, str]  # the line of a word, the word, its tag


class Tagged(NamedTuple):
    """A tagged sentence: the line of its first word, from 1, its words, and a tag for each word."""

    line: int
    words: tuple[str, ...]
    tags: tuple[str, ...]


class Span(NamedTuple):
    """A span of words of one kind, such as the name of a person: words `begin` to `end` - 1, from 0."""

    begin: int
    end: int
    kind: str


def spans(tags: Sequence[str]) -> list[Span]:
    """Return the spans that the tags of a sentence describe, in order, as the CoNLL-2000 script conlleval cuts them.

    A span continues at I-, E- or L- after B- or I- of the same kind. Any other tag but O begins one, so that every
    sequence of tags has a meaning: I- after O, after an end, or of another kind is a beginning too.
    """
    spans: list[Span] = []
    before = "O"
    for place, tag in enumerate(tags):
        if _continues(before, tag):
            spans[-1] = spans[-1]._replace(end=place + 1)
        elif tag != "O":
            spans.append(Span(place, place + 1, tag[2:]))
        before = tag
    return spans


def with_beginnings(tags: Sequence[str], known: Collection[str]) -> list[str]:
    """Rewrite tags so that each span begins with B-, S- or U-, where such a tag is known: IOB1 becomes BIO."""
    pairs = pairwise(["O", *tags])
    return [tag if _continues(before, tag) else _beginning(tag, known) for before, tag in pairs]


def may_follow(before: str, tag: str, known: Collection[str]) -> bool:
    """True if one tag may come after another in the tagging scheme, such as BIO, that the known tags belong to.

    If the scheme has tags for the beginning or the end of a span, each span must have them. "O" means what is
    before the first word, and after the last one.
    """
    if _continues(before, tag):
        return True
    # In a scheme that marks ends, a span without its end must continue.
    must_continue = before[0] in OPEN and not {f"E{before[1:]}", f"L{before[1:]}"}.isdisjoint(known)
    return not must_continue and _beginning(tag, known) == tag


def _continues(before: str, tag: str) -> bool:
    return tag[0] in INSIDE and before[0] in OPEN and tag[1:] == before[1:]


def _beginning(tag: str, known: Collection[str]) -> str:
    beginning = BEGINS.get(tag[0], tag[0]) + tag[1:]
    return beginning if beginning in known else tag


def tags_of(data: DataConfig) -> tuple[str, ...]:
    """Return the tags of a recipe: `data.labels`, or else all of the training corpora, "O" first, then kind by kind.

    Where no entry of `data.labels` has a prefix, they are tags of single words, as in `read_tagged`: DET is S-DET.
    """
    tags = data.labels
    if not tags:
        distinct = {tag for corpus in data.train for sentence in read_tagged(corpus, data) for tag in sentence.tags}
        tags = tuple(sorted(distinct, key=lambda tag: (tag != "O", tag[2:], tag)))
    if not any(map(TAG.fullmatch, tags)):
        tags = tuple(f"{ALONE}{tag}" for tag in tags)
    if wrong := [tag for tag in tags if TAG.fullmatch(tag) is None]:
        raise InputError(f"data.labels: {wrong[0]!r} {NO_TAG} S-{wrong[0]}")
    if len(tags) < 2:
        names = ", ".join(corpus.source for corpus in data.train)
        raise InputError(
            f"{names}: tagging needs two tags or more, not {list(tags)}; is the last column the right one?"
        )
    return tags


def read_tagged(corpus: CorpusConfig, data: DataConfig, report: DropReport | None = None) -> Iterator[Tagged]:
    """Yield the tagged sentences of a corpus, or of its `part`, in file order.

    A line holds a word in its first column and its tag in the last one, separated by tabs or, where a line has none,
    by spaces; of CoNLL-U the form and the universal part of speech are read. A file whose first tag is neither O nor
    has a prefix holds tags of single words, such as parts of speech: DET is read as S-DET. An empty line ends a
    sentence, and so does -DOCSTART-. Lines before a sentence that begin with # and do not end in a tag are comments.
    Where bad UTF-8 is skipped, the whole sentence is, and `report` counts it.
    """
    report = DropReport() if report is None else report
    sentences = _sentences(corpus, data)
    if corpus.part != WHOLE:
        begin, end = part_of(corpus, sum(1 for _ in sentences), "sentences")
        sentences = islice(_sentences(corpus, data), begin, end)
    for sentence in sentences:
        lines, words, tags = zip(*sentence, strict=True)
        if "" in words:
            report.drop("bad UTF-8", corpus.source, lines[words.index("")])
        else:
            yield Tagged(lines[0], words, tags)


def _sentences(corpus: CorpusConfig, data: DataConfig) -> Iterator[list[Word]]:
    """Yield sentences, in which an empty word stands for a line of bad UTF-8 that is to be skipped."""
    path = corpus_files(corpus, data)[0]
    sentence: list[Word] = []
    bare = ""  # the first tag of the file, if it has no prefix, so that no tag has one
    is_first = True
    with open_bytes(path) as stream:
        for number, line in enumerate(decode_lines(stream, str(path), bad_utf8=data.bad_utf8), start=1):
            if line is None:
                sentence.append((number, "", "O"))
            elif not line.strip(" \t") or line.startswith("-DOCSTART-"):
                if sentence:
                    yield sentence
                sentence = []
            elif (sentence or not _is_comment(line, bare)) and (columns := _columns(line)):
                place = f"{path}, line {number}"
                word, *others = columns
                if not word or not others:
                    raise InputError(
                        f"{place}: {line[:40]!r} is no word with a tag; they are separated by a tab or by spaces, "
                        "and an empty line ends a sentence"
                    )
                bare = others[-1] if is_first and TAG.fullmatch(others[-1]) is None else bare
                is_first = False
                sentence.append((number, word, _with_prefix(others[-1], bare, place)))
    if sentence:
        yield sentence


def _is_comment(line: str, bare: str) -> bool:
    is_word = bare and ("\t" in line or not line.startswith("# "))
    return line.startswith("#") and not is_word and TAG.fullmatch((_columns(line) or [""])[-1]) is None


def _columns(line: str) -> list[str]:
    """The columns of a line, of a word of CoNLL-U its form and its part of speech; none of what is not a word there."""
    line = line.rstrip(" ")
    if "\t" not in line:
        return re.split(" +", line.strip(" \t"))
    columns = line.split("\t")
    if len(columns) == TREEBANK and columns[0].replace("-", "").replace(".", "").isdecimal():
        return [columns[1], columns[3]] if NUMBER.fullmatch(columns[0]) else []
    return line.rstrip(" \t").split("\t")


def _with_prefix(tag: str, bare: str, place: str) -> str:
    is_known = TAG.fullmatch(tag) is not None
    if bare and is_known and tag != "O":
        raise InputError(
            f"{place}: the tag {tag[:40]!r} has a prefix, and the first tag of the file, {bare[:40]!r}, has none; "
            f"correct one of them: {bare[:40]!r} {NO_TAG} {ALONE}{bare[:40]}"
        )
    if not bare and not is_known:
        raise InputError(f"{place}: the tag {tag[:40]!r} {NO_TAG} {ALONE}{tag[:40]}")
    return f"{ALONE}{tag}" if bare else tag


USUAL_KEYS = ("words", "tokens")
TAGGED_FILES = (".conll", ".conllu", ".bio", ".bio2", ".iob", ".iob2")  # of what a tagger learns from


def words_in(line: str, place: str) -> CutText:
    """Read the words of a line: a JSON array of strings, or else what spaces separate."""
    values = _json(line)
    return _checked(values if isinstance(values, list) else line.split(), place)


def has_word_lists(path: Path, key: str | None) -> bool:
    """True for a file of tagged words, and if the first line of a .jsonl file is or holds an array of words."""
    if ending_of(path) != ".jsonl":
        return ending_of(path) in TAGGED_FILES
    values = _json(next(iter(read_lines(path)), ""))
    return isinstance(values, list) or (isinstance(values, dict) and isinstance(_words(values, key), list))


def read_word_lists(path: Path, key: str | None) -> Iterator[TableRow]:
    """Yield the words of each line of a .jsonl file, or sentence of tagged words, each as a row of one `CutText`."""
    if ending_of(path) in TAGGED_FILES:
        tagged = read_tagged(CorpusConfig(source=str(path.absolute())), DataConfig())
        yield from (TableRow(sentence.line, (CutText(sentence.words),)) for sentence in tagged)
        return
    for number, line in enumerate(read_lines(path), start=1):
        values = _json(line)
        words = _words(values, key) if isinstance(values, dict) else values
        place = f"{path}, line {number}"
        if not isinstance(words, list):
            keys = f"{key!r}" if key else " or ".join(map(repr, USUAL_KEYS))
            raise InputError(
                f"{place}: there is no list of words, although the first line has one; each line is an array of "
                f"words, or an object with an array under {keys} (--source-field names another key)"
            )
        yield TableRow(number, (_checked(words, place),))


def _json(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _words(values: dict[str, object], key: str | None) -> object:
    return next((values[name] for name in ([key] if key else USUAL_KEYS) if name in values), None)


def _checked(words: list[object] | list[str], place: str) -> CutText:
    try:
        return CutText(words)
    except InputError as error:
        raise InputError(f"{place}: {error}") from error
