"""Sentences split into words, with tags as in the CoNLL tasks or without, and the spans that tags describe."""

import json
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple

from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.corpus import WHOLE, TableRow, corpus_files, part_of
from heedful.data.readers.drop_report import DropReport
from heedful.data.readers.files import ending_of, numbered_lines, read_lines
from heedful.errors import InputError
from heedful.text.words import SplitText

# O, or a word's position in a span, a hyphen and the span's kind. Positions are B for beginning, I inside, E or L end,
# S or U single, as in the schemes IO, BIO, IOBES and BILOU.
TAG = re.compile(r"O|[BIELSU]-\S.*")
INSIDE = "IEL"  # prefixes of tags that may continue a span
OPEN = "BI"  # prefixes of tags after which a span may continue
BEGINS = {"I": "B", "E": "S", "L": "U"}  # prefix that may continue a span -> prefix that begins one

SINGLE = "S-"  # the prefix of a single-word tag, such as a part of speech, which files may omit
CONLLU_COLUMNS = 10  # number of columns of CoNLL-U: the second is the word, the fourth its part of speech
NUMBER = re.compile(r"\d+")  # the number of a word in CoNLL-U; lines with 1-2 or 1.1 are not words

NO_TAG = (
    "is neither O nor a kind with a prefix, such as B-person and I-person; the prefixes are B, I, E, S, L and U. "
    "A single-word tag, such as a part of speech, is written with S:"
)

Word = tuple[int, str, str]  # the line number of a word, the word, its tag


class Tagged(NamedTuple):
    """A tagged sentence: the line of its first word, counted from 1, its words, and a tag for each word."""

    line: int
    words: tuple[str, ...]
    tags: tuple[str, ...]


class Span(NamedTuple):
    """A span of words of one kind, such as a person's name: words `begin` to `end` - 1, counted from 0."""

    begin: int
    end: int
    kind: str


def spans(tags: Sequence[str]) -> list[Span]:
    """Return the spans that the tags of a sentence describe, in order, as the CoNLL-2000 script conlleval finds them.

    A span continues at I-, E- or L- after B- or I- of the same kind. Any other tag except O begins one, so that every
    sequence of tags has a meaning: I- after O, after an end, or of another kind also begins a span.
    """
    spans: list[Span] = []
    before = "O"
    for index, tag in enumerate(tags):
        if _continues(before, tag):
            spans[-1] = spans[-1]._replace(end=index + 1)
        elif tag != "O":
            spans.append(Span(index, index + 1, tag[2:]))
        before = tag
    return spans


def with_beginnings(tags: Sequence[str], scheme: Collection[str]) -> list[str]:
    """Rewrite tags so that each span begins with B-, S- or U-, if `scheme` has that tag; IOB1 becomes BIO."""
    pairs = pairwise(["O", *tags])
    return [tag if _continues(before, tag) else _beginning(tag, scheme) for before, tag in pairs]


def may_follow(before: str, tag: str, scheme: Collection[str]) -> bool:
    """Return True if one tag may follow another in the tagging scheme that has the tags `scheme`.

    If the scheme has tags for the beginning or the end of a span, each span must have them. Use "O" as the tag before
    the first word and after the last one.
    """
    if _continues(before, tag):
        return True
    # In a scheme that marks ends, a span without its end must continue.
    must_continue = before[0] in OPEN and not {f"E{before[1:]}", f"L{before[1:]}"}.isdisjoint(scheme)
    return not must_continue and _beginning(tag, scheme) == tag


def _continues(before: str, tag: str) -> bool:
    return tag[0] in INSIDE and before[0] in OPEN and tag[1:] == before[1:]


def _beginning(tag: str, scheme: Collection[str]) -> str:
    beginning = BEGINS.get(tag[0], tag[0]) + tag[1:]
    return beginning if beginning in scheme else tag


def tags_of(data: DataConfig) -> tuple[str, ...]:
    """Return the tags of a recipe: `data.labels`, or all tags of the training corpora, "O" first, then kind by kind.

    If no entry of `data.labels` has a prefix, they are single-word tags, as in `read_tagged`: DET is S-DET.
    """
    tags = data.labels
    if not tags:
        distinct = {tag for corpus in data.train for sentence in read_tagged(corpus, data) for tag in sentence.tags}
        tags = tuple(sorted(distinct, key=lambda tag: (tag != "O", tag[2:], tag)))
    if not any(map(TAG.fullmatch, tags)):
        tags = tuple(f"{SINGLE}{tag}" for tag in tags)
    if wrong := [tag for tag in tags if TAG.fullmatch(tag) is None]:
        raise InputError(f"data.labels: {wrong[0]!r} {NO_TAG} S-{wrong[0]}")
    if len(tags) < 2:
        names = ", ".join(corpus.source for corpus in data.train)
        raise InputError(
            f"{names}: tagging needs at least two tags, but found {list(tags)}; is the last column the right one?"
        )
    return tags


def read_tagged(corpus: CorpusConfig, data: DataConfig, report: DropReport | None = None) -> Iterator[Tagged]:
    """Yield the tagged sentences of a corpus, or of its `part`, in file order.

    A line has a word in its first column and its tag in the last one, separated by tabs or, without any, by spaces; in
    CoNLL-U, the form and the universal part of speech are read. If the first tag of a file is not O and has no
    prefix, all are single-word tags, such as parts of speech: DET is read as S-DET. An empty line ends a sentence,
    and so does a line with -DOCSTART-. Lines before a sentence that begin with # and do not end in a tag are comments.
    If bad UTF-8 is skipped, so is the whole sentence, and `report` counts it.
    """
    report = report or DropReport()
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
    """Yield sentences, in which an empty word stands for a line with bad UTF-8 that is to be skipped."""
    path = corpus_files(corpus, data)[0]
    if ending_of(path) in (".jsonl", ".json"):
        raise InputError(
            f"{path}: is a JSON file, but tagging reads a word and its tag on each line (CoNLL); if it has lists of "
            f"words and tags, `heedful init {path}` converts it"
        )
    sentence: list[Word] = []
    bare = ""  # the first tag of the file if it has no prefix: then no other tag may have one; otherwise empty
    is_first = True
    for number, line in numbered_lines(path, data.bad_utf8):
        if line is None:
            sentence.append((number, "", "O"))
        elif not line.strip(" \t") or line.startswith("-DOCSTART-"):
            if sentence:
                yield sentence
            sentence = []
        # Comments occur only between sentences: within a sentence, a line that begins with # has a word.
        elif (sentence or not _is_comment(line, bare)) and (columns := _columns(line)):
            location = f"{path}, line {number}"
            word, *others = columns
            if not word or not others:
                raise InputError(
                    f"{location}: {line[:40]!r} is not a word with a tag; they must be separated by a tab or by "
                    "spaces, and an empty line ends a sentence"
                )
            bare = others[-1] if is_first and TAG.fullmatch(others[-1]) is None else bare
            is_first = False
            sentence.append((number, word, _with_prefix(others[-1], bare, location)))
    if sentence:
        yield sentence


def _is_comment(line: str, bare: str) -> bool:
    # Without prefixes, tags look like any other text, so only "# " in a line without tabs begins a comment.
    is_word = bare and ("\t" in line or not line.startswith("# "))
    return line.startswith("#") and not is_word and TAG.fullmatch((_columns(line) or [""])[-1]) is None


def _columns(line: str) -> list[str]:
    """Return the columns of a line; in CoNLL-U, the form and part of speech, or [] if the line is not a word."""
    line = line.rstrip(" ")
    if "\t" not in line:
        return re.split(" +", line.strip(" \t"))
    columns = line.split("\t")
    # Ten columns after a number are CoNLL-U; 1-2, a contraction, and 1.1, an empty node, are not words.
    if len(columns) == CONLLU_COLUMNS and columns[0].replace("-", "").replace(".", "").isdecimal():
        return [columns[1], columns[3]] if NUMBER.fullmatch(columns[0]) else []
    return line.rstrip(" \t").split("\t")


def _with_prefix(tag: str, bare: str, location: str) -> str:
    is_known = TAG.fullmatch(tag) is not None
    if bare and is_known and tag != "O":
        raise InputError(
            f"{location}: the tag {tag[:40]!r} has a prefix, but the first tag of the file, {bare[:40]!r}, has none; "
            f"correct one of them: {bare[:40]!r} {NO_TAG} {SINGLE}{bare[:40]}"
        )
    if not bare and not is_known:
        raise InputError(f"{location}: the tag {tag[:40]!r} {NO_TAG} {SINGLE}{tag[:40]}")
    return f"{SINGLE}{tag}" if bare else tag


USUAL_KEYS = ("words", "tokens")
TAGGED_FILES = (".conll", ".conllu", ".bio", ".bio2", ".iob", ".iob2")  # training data for taggers


def words_in(line: str, location: str) -> SplitText:
    """Read the words of a line, which is a JSON array of strings, or words separated by spaces."""
    words = _words_of_line(line, ())
    return _split_text(line.split() if words is None else words, location)


def has_word_lists(path: Path, key: str | None) -> bool:
    """Return True for a file of tagged words, and for a .jsonl file whose first line is or has an array of words."""
    if ending_of(path) != ".jsonl":
        return ending_of(path) in TAGGED_FILES
    return _words_of_line(next(read_lines(path), ""), [key] if key else USUAL_KEYS) is not None


def read_word_lists(path: Path, key: str | None) -> Iterator[TableRow]:
    """Yield the words of each line of a .jsonl file, or of each tagged sentence, as a row with one `SplitText`."""
    if ending_of(path) in TAGGED_FILES:
        tagged = read_tagged(CorpusConfig(source=str(path.absolute())), DataConfig())
        yield from (TableRow(sentence.line, (SplitText(sentence.words),)) for sentence in tagged)
        return
    keys = [key] if key else USUAL_KEYS
    for number, line in enumerate(read_lines(path), start=1):
        words, location = _words_of_line(line, keys), f"{path}, line {number}"
        if words is None:
            raise InputError(
                f"{location}: a list of words is missing, but the first line has one; each line must be an array of "
                f"words, or an object with an array under {' or '.join(map(repr, keys))} (--source-field sets another "
                "key)"
            )
        yield TableRow(number, (_split_text(words, location),))


def _words_of_line(line: str, keys: Sequence[str]) -> list[object] | None:
    """Return the array in a line of JSON, or under the first of `keys` in its object; None if there is no array."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if isinstance(values, dict):
        values = next((values[name] for name in keys if name in values), None)
    return values if isinstance(values, list) else None


def _split_text(words: list[object] | list[str], location: str) -> SplitText:
    try:
        return SplitText(words)
    except InputError as error:
        raise InputError(f"{location}: {error}") from error
