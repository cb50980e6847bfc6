"""Documents from text files, tables, or folders of both, and the sentences of a document."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from itertools import chain, groupby
from pathlib import Path
from typing import NamedTuple

from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.drop_report import DropReport
from heedful.data.readers.files import (
    TABLE_ENDINGS,
    WHOLE,
    BadUtf8,
    NoItems,
    check_text,
    corpus_files,
    ending_of,
    made_folders,
    numbered_lines,
    visible_files,
)
from heedful.errors import InputError
from heedful.storage.paths import near_paths
from heedful.wording import did_you_mean, either

CLOSING = "\"'”’»)\\]」』）》】〉"
OPENING = "\"'“‘«(\\[「『（《【〈¿¡*_—–-"

# A Western mark ends a sentence only before a space; a Chinese one anywhere.
MARK = re.compile(
    rf"(?<![.!?…])(?P<western>[.!?…]+)[{CLOSING}]*(?=\s)"
    r"|[。！？；][。！？；.!?…]*[”’」』）》】〉)\]]*"
)
NEXT = re.compile(rf"[\s{OPENING}]*(.?)", re.DOTALL)  # the next character other than a space or an opening mark
NO_BEGINNING = ".,;:!?…&)]}，、：；。！？"

CHINESE = "\u3000-\u303f\u3400-\u9fff\uf900-\ufaff\uff01-\uff5e"  # between these, a line break is not a space
CHINESE_BREAK = re.compile(rf"(?<=[{CHINESE}])\n(?=[{CHINESE}])")
BLANK_LINE = re.compile(r"\n\s*\n")

ENUMERATOR = re.compile(rf"\s*[{OPENING}]*(?:\d+(?:\.\w+)*|[IVXLC]+)")  # "1.", "1.B." or "IV." at the head of a section
INITIAL = re.compile(r"[A-HJ-Z]|(?:[A-Za-z]\.)*[A-Z]\.[A-Z]")  # "J. Smith", "U.S. Army"; not I, as in "It was I."
ABBREVIATION = re.compile(
    r"mr|mrs|ms|dr|st|mt|prof|rev|hon|gen|col|capt|lt|sgt|maj|gov|sen|rep|messrs|mme|mlle|jr|sr"
    r"|co|corp|inc|ltd|bros|etc|i\.e|e\.g|cf|viz|vs|ca|approx|jan|feb|aug|sept|oct|nov|dec",
    re.IGNORECASE,
)
BEFORE_NUMBERS = re.compile(r"nos?|vol|ch|chap|pp?|figs?|art|sec|ver", re.IGNORECASE)  # "No. 7", but "No. He did not."


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences, in order. Nothing is lost except whitespace.

    A blank line always ends a sentence. A single line break becomes a space, or nothing between two Chinese characters,
    so that hard-wrapped lines do not matter.
    """
    sentences = []
    for wrapped in BLANK_LINE.split(text):
        lines = "\n".join(line.strip() for line in wrapped.strip().split("\n"))
        paragraph = CHINESE_BREAK.sub("", lines).replace("\n", " ")
        begin = 0
        for mark in MARK.finditer(paragraph):
            if mark["western"] is None or _ends(paragraph, begin, mark):
                end = mark.end()
                # An ASCII quote may close this sentence or, after a Chinese mark, open the next one.
                if paragraph.startswith('"', end) and paragraph.count('"', begin, end) % 2 == 1:
                    end += 1
                sentences.append(paragraph[begin:end].strip())
                begin = end
        if rest := paragraph[begin:].strip():
            sentences.append(rest)
    return sentences


def _ends(paragraph: str, begin: int, mark: re.Match[str]) -> bool:
    """Return True if a Western mark ends the sentence that begins at `begin`."""
    following = NEXT.match(paragraph, mark.end())
    first = following[1] if following else ""
    # A sentence does not begin with a lower-case letter or a mark.
    if first.islower() or first in NO_BEGINNING:
        return False
    if mark["western"] != "." or mark.end() > mark.end("western"):
        return True
    word_begin = max(begin, paragraph.rfind(" ", begin, mark.start()) + 1)
    word = paragraph[word_begin : mark.start()].lstrip(OPENING)
    # A number such as "1." or "IV." belongs to the sentence that follows it.
    if ENUMERATOR.fullmatch(paragraph, begin, mark.start()):
        return False
    # The sentence continues after the mark in "No. 7", but not in "No. He did not."
    if BEFORE_NUMBERS.fullmatch(word):
        return not first.isdecimal()
    return not (ABBREVIATION.fullmatch(word) or INITIAL.fullmatch(word))


Text = tuple[int, str]  # the line where a decoded text begins, counted from 1, and the text

SECTION_BREAK = 2  # blank lines
ENDINGS = (".txt", ".text", ".md", ".jsonl")  # of files that are read in a folder; .gz, .bz2 or .xz may follow


class Document(NamedTuple):
    """The text of a document, with the file and the line where it begins."""

    text: str
    file: Path
    line: int  # from 1


def read_documents(corpus: CorpusConfig, data: DataConfig, report: DropReport | None = None) -> Iterator[Document]:
    r"""Yield the documents of a corpus: files in the order of their paths, documents in the order of their file.

    `data.documents` decides how plain text is split: "file", with the exact text except for byte order marks and for
    "\r\n", which becomes "\n"; "section", between two or more blank lines, like chapters of plain-text books;
    "paragraph", between blank lines; or "line", without blank ones. In a table (.tsv, .csv) or .jsonl file, each row
    has a document under `source_field`. In a folder, every .txt, .text, .md and .jsonl file below it is read,
    except hidden files and those in folders that heedful made. Empty documents are left out, and `report` counts them.
    One document is in memory at a time.

    `part = (a, b)` applies to every file separately: of the file's n rows or, in plain text, of its n characters, it
    selects those from int(a n) to int(b n) - 1, so that (0, 0.9) and (0.9, 1) share nothing and lose nothing. A
    file of which only a part is used is read twice, the first time to count n.
    """
    report = report or DropReport()
    files = document_files(corpus, data)
    drop_made_folders(corpus_files(corpus, data)[0], report)
    for path in files:
        # A part of a table without rows raises NoItems, which is ignored unless the table is the only file.
        with suppress(NoItems) if len(files) > 1 else nullcontext():
            for number, text in _texts(path, corpus, data, report):
                if text.strip():
                    yield Document(text, path, number)
                else:
                    report.drop("empty source", str(path), number)


def drop_made_folders(path: Path, report: DropReport) -> None:
    """Count in `report` the run, model and recipe folders below `path`, which are not read. A file has none."""
    for folder in made_folders(path) if path.is_dir() else ():
        report.drop("being a run, model or recipe folder", str(folder), None)


def document_lines(corpus: CorpusConfig, data: DataConfig) -> Iterator[Document]:
    """Yield each line of a corpus that is not blank, or each text of its tables, as a separate document."""
    return read_documents(corpus, replace(data, documents="line"))


def document_files(corpus: CorpusConfig, data: DataConfig) -> list[Path]:
    path = corpus_files(corpus, data)[0]
    if not path.is_dir():
        return [path]
    files = [file for file in visible_files(path) if ending_of(file) in ENDINGS]
    if not files:
        raise InputError(
            f"{path}: no {either(ENDINGS)} files (plain or compressed) found in this folder; give another folder"
        )
    return sorted(files, key=lambda file: file.relative_to(path).as_posix())


def text_files(corpus: CorpusConfig, data: DataConfig) -> list[Path]:
    return [*document_files(corpus, data), *corpus_files(corpus, data)[1:]]


def check_files(corpus: CorpusConfig, data: DataConfig) -> None:
    """Check that all files of a corpus exist and that their first lines are text."""
    paths = zip(("source", "target"), corpus_files(corpus, data), strict=False)
    if missing := {field: path for field, path in paths if not path.exists()}:
        paths = corpus_files(corpus, data)
        similar = {path: [other for other in near_paths(path, os.path.isfile) if other not in paths] for path in paths}
        near = dict.fromkeys(other for path in missing.values() for other in similar[path][:1])
        hint = did_you_mean(os.path.relpath(path, data.root) for path in near) if near else ""
        table = _key_of(corpus, data)
        names = ", ".join(f'{table}{field} = "{getattr(corpus, field)}"' for field in missing)
        files, what = ("files", "the names") if len(missing) > 1 else ("file", "the name")
        from heedful.data.catalogue import download_command

        command = download_command(corpus.source)
        download = f"; `{command}` downloads {'them' if len(missing) > 1 else 'it'}" if command else ""
        remedy = hint or f"correct {what}, or give --data FOLDER{download}"
        raise InputError(f"{names}: no such {files} in {data.root}; {remedy}")
    for path in text_files(corpus, data):
        check_text(path)


def _key_of(corpus: CorpusConfig, data: DataConfig) -> str:
    """Return the key of a corpus in a recipe, such as "data.train.0.", or an empty string for any other corpus."""
    corpora = {f"data.train.{number}.": one for number, one in enumerate(data.train)}
    corpora |= {"data.valid.": data.valid, "data.test.": data.test}
    return next((key for key, one in corpora.items() if one == corpus), "")


def _texts(path: Path, corpus: CorpusConfig, data: DataConfig, report: DropReport) -> Iterator[Text]:
    if ending_of(path) in TABLE_ENDINGS:
        from heedful.data.readers.corpus import read_rows

        # `read_rows` resolves a relative name against `data.root`, which `path` already contains.
        rows = read_rows(replace(corpus, source=str(path.absolute())), data, (corpus.source_field,), report)
        return ((row.line, row.texts[0]) for row in rows)

    def decoded_lines() -> Iterator[Text]:
        for number, text in _lines(path, corpus.part, data.bad_utf8):
            if text is None:
                report.drop("bad UTF-8", str(path), number)
            else:
                yield number, text

    return SPLITTERS[data.documents](decoded_lines())


def _lines(path: Path, part: tuple[float, float], bad_utf8: BadUtf8) -> Iterator[tuple[int, str | None]]:
    """Yield each line of a part of a file: its number, and its text with the line feed, or None to skip bad UTF-8.

    A line that crosses a boundary of the part is cut there.
    """
    lines = numbered_lines(path, bad_utf8, ends="fold")
    if part == WHOLE:
        yield from lines
        return
    # The size is in characters of decoded text, not in bytes, so that a boundary does not split a character.
    size = sum(len(line or "") for _, line in numbered_lines(path, bad_utf8, ends="fold"))
    begin, end = (int(size * share) for share in part)
    if part[1] == 1:
        end = size + 1  # after the last character, so that a skipped last line is reported
    position = 0
    for number, line in lines:
        if position >= end:
            return
        text = line or ""
        if line is None and position >= begin:
            yield number, None
        elif inside := text[max(0, begin - position) : end - position]:
            yield number, inside
        position += len(text)


def _whole(lines: Iterator[Text]) -> Iterator[Text]:
    number, first = next(lines, (1, ""))
    yield number, "".join(chain([first], (text for _, text in lines)))


def _paragraphs(lines: Iterator[Text]) -> Iterator[Text]:
    for has_text, paragraph in groupby(lines, key=lambda line: bool(line[1].strip())):
        if has_text:
            for number, text in _whole(paragraph):
                yield number, text.removesuffix("\n")


def _sections(lines: Iterator[Text]) -> Iterator[Text]:
    def section(lines: list[Text]) -> Iterator[Text]:
        """Yield lines joined into one text, without the blank lines around it; yield nothing if all lines are blank."""
        for number, text in _whole(iter(lines)):
            if text.strip():
                # The text begins at its first line that is not blank.
                before = len(text) - len(text.lstrip("\r\n"))
                yield number + text[:before].count("\n"), text.strip("\r\n")

    current: list[Text] = []
    for has_text, group in groupby(lines, key=lambda line: bool(line[1].strip())):
        run = list(group)
        if has_text or len(run) < SECTION_BREAK:
            current += run
        else:
            yield from section(current)
            current = []
    yield from section(current)


def _single_lines(lines: Iterator[Text]) -> Iterator[Text]:
    return ((number, text.removesuffix("\n")) for number, text in lines if text.strip())


SPLITTERS: dict[str, Callable[[Iterator[Text]], Iterator[Text]]] = {
    "file": _whole,
    "section": _sections,
    "paragraph": _paragraphs,
    "line": _single_lines,
}
