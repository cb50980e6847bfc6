"""Documents: text files, texts of a table, or a folder of them, and the sentences of a document."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from itertools import chain, groupby
from pathlib import Path
from typing import NamedTuple

from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.files import (
    TABLE_ENDINGS,
    WHOLE,
    BadUtf8,
    NoItems,
    check_text,
    corpus_files,
    decode_text,
    ending_of,
    open_bytes,
)
from heedful.data.readers.filters import DropReport
from heedful.errors import InputError

CLOSING = "\"'”’»)\\]」』）》】〉"
OPENING = "\"'“‘«(\\[「『（《【〈¿¡*_—–-"

# A Western mark ends a sentence before a space only; a Chinese one anywhere.
MARK = re.compile(
    rf"(?<![.!?…])(?P<western>[.!?…]+)[{CLOSING}]*(?=\s)"
    r"|[。！？；][。！？；.!?…]*[”’」』）》】〉)\]]*"
)
NEXT = re.compile(rf"[\s{OPENING}]*(.?)", re.DOTALL)  # the first character of what comes, quotes and dashes left out
NO_BEGINNING = ".,;:!?…&)]}，、：；。！？"

CHINESE = "\u3000-\u303f\u3400-\u9fff\uf900-\ufaff\uff01-\uff5e"  # letters and marks, which need no space at a line end
CHINESE_BREAK = re.compile(rf"(?<=[{CHINESE}])\n(?=[{CHINESE}])")
BLANK_LINE = re.compile(r"\n\s*\n")

ENUMERATOR = re.compile(rf"\s*[{OPENING}]*(?:\d+(?:\.\w+)*|[IVXLC]+)")  # "1.", "1.B." or "IV." at the head of a section
INITIAL = re.compile(r"[A-HJ-Z]|(?:[A-Za-z]\.)*[A-Z]\.[A-Z]")  # "J. Smith", "U.S. Army"; "It was I." ends
ABBREVIATION = re.compile(
    r"mr|mrs|ms|dr|st|mt|prof|rev|hon|gen|col|capt|lt|sgt|maj|gov|sen|rep|messrs|mme|mlle|jr|sr"
    r"|co|corp|inc|ltd|bros|etc|i\.e|e\.g|cf|viz|vs|ca|approx|jan|feb|aug|sept|oct|nov|dec",
    re.IGNORECASE,
)
BEFORE_NUMBERS = re.compile(r"nos?|vol|ch|chap|pp?|figs?|art|sec|ver", re.IGNORECASE)  # "No. 7", but "No. He did not."


def split_sentences(text: str) -> list[str]:
    """Split a text into its sentences, in order; together they hold each character of the text that is no space.

    A blank line always ends a sentence. A single line break is a space, or nothing between two Chinese characters, so
    that hard-wrapped books read like others.
    """
    sentences = []
    for wrapped in BLANK_LINE.split(text):
        lines = "\n".join(line.strip() for line in wrapped.strip().split("\n"))
        paragraph = CHINESE_BREAK.sub("", lines).replace("\n", " ")
        begin = 0
        for mark in MARK.finditer(paragraph):
            if mark["western"] is None or _ends(paragraph, begin, mark):
                end = mark.end()
                # an ASCII quote closes one of this sentence; after a Chinese mark it could open the next one
                if paragraph.startswith('"', end) and paragraph.count('"', begin, end) % 2 == 1:
                    end += 1
                sentences.append(paragraph[begin:end].strip())
                begin = end
        if rest := paragraph[begin:].strip():
            sentences.append(rest)
    return sentences


def _ends(paragraph: str, begin: int, mark: re.Match[str]) -> bool:
    """True if a Western mark ends the sentence that begins at `begin`."""
    following = NEXT.match(paragraph, mark.end())
    first = following[1] if following else ""
    # A sentence does not begin with a small letter or a mark.
    if first.islower() or first in NO_BEGINNING:
        return False
    if mark["western"] != "." or mark.end() > mark.end("western"):
        return True
    word_begin = max(begin, paragraph.rfind(" ", begin, mark.start()) + 1)
    word = paragraph[word_begin : mark.start()].lstrip(OPENING)
    # Headings such as "1." and "IV." belong to the sentence after them.
    if ENUMERATOR.fullmatch(paragraph, begin, mark.start()):
        return False
    # "No. 7" continues, "No. He did not." ends.
    if BEFORE_NUMBERS.fullmatch(word):
        return not first.isdecimal()
    return not (ABBREVIATION.fullmatch(word) or INITIAL.fullmatch(word))


Sound = tuple[int, str]  # a text that could be decoded, and the line where it begins, from 1

SECTION_BREAK = 2  # blank lines
ENDINGS = (".txt", ".text", ".md", ".jsonl")  # of files that are read in a folder; .gz, .bz2 or .xz may follow


Line = tuple[int, str | None]  # its number, from 1, and its text with its line feed; None: bad UTF-8 to be skipped


class Document(NamedTuple):
    """The text of a document, with the file and the line where it begins."""

    text: str
    file: Path
    line: int  # from 1


def read_documents(corpus: CorpusConfig, data: DataConfig, report: DropReport | None = None) -> Iterator[Document]:
    r"""Yield the documents of a corpus: files in the order of their paths, documents in the order of the file.

    `data.documents` says what a document of plain text is: "file", with its text exact but for byte order marks and
    for "\r\n", which becomes "\n"; "section", between two or more blank lines, as chapters of plain books are;
    "paragraph", between blank lines; or "line", blank ones left out. In a table (.tsv, .csv) or .jsonl file each row
    has a document under `source_field`. Of a folder every .txt, .text, .md and .jsonl file below it is read. One
    document is in memory at a time.

    `part = (a, b)` is taken of every file by itself: of its n lines or, in plain text, its n characters, those from
    int(a n) to int(b n), so that (0, 0.9) and (0.9, 1) share nothing and lose nothing. Each file is then read twice.
    """
    report = DropReport() if report is None else report
    files = document_files(corpus, data)
    drop_made_folders(corpus_files(corpus, data)[0], report)
    for path in files:
        with suppress(NoItems) if len(files) > 1 else nullcontext():
            for number, text in _texts(path, corpus, data, report):
                if text.strip():
                    yield Document(text, path, number)
                else:
                    report.drop("empty source", str(path), number)


def drop_made_folders(path: Path, report: DropReport) -> None:
    """Count the folders below a folder that are left out because heedful made them; a file has none."""
    if not path.is_dir():
        return
    from heedful.data.readers.files import made_folders

    for folder in made_folders(path):
        report.drop("being a run, model or recipe folder", str(folder), None)


def document_lines(corpus: CorpusConfig, data: DataConfig) -> Iterator[Document]:
    """Yield each line with text of a corpus of documents, or each text of its tables, as a document of its own."""
    return read_documents(corpus, replace(data, documents="line"))


def document_files(corpus: CorpusConfig, data: DataConfig) -> list[Path]:
    path = corpus_files(corpus, data)[0]
    if not path.is_dir():
        return [path]
    from heedful.data.readers.files import visible_files

    files = [file for file in visible_files(path) if ending_of(file) in ENDINGS]
    if not files:
        raise InputError(
            f"{path}: no file below this folder ends in {', '.join(ENDINGS)} or one of them and .gz, .bz2 or .xz"
        )
    return sorted(files, key=lambda file: file.relative_to(path).as_posix())


def text_files(corpus: CorpusConfig, data: DataConfig) -> list[Path]:
    return [*document_files(corpus, data), *corpus_files(corpus, data)[1:]]


def check_files(corpus: CorpusConfig, data: DataConfig) -> None:
    """Check that all files of a corpus exist and begin like text; only their first lines are read."""
    files = text_files(corpus, data)
    if missing := [path for path in files if not path.exists()]:
        from heedful.storage.paths import near_paths

        near = [place for path in missing for place in near_paths(path, os.path.isfile)[:1]]
        meant = f"did you mean {', '.join(os.path.relpath(path, data.root) for path in near)}?" if near else ""
        raise InputError(
            f"in {data.root} there is no {', no '.join(os.path.relpath(path, data.root) for path in missing)}; "
            f"{meant or 'correct the names, or give --data FOLDER'}"
        )
    for path in files:
        check_text(path)


def _texts(path: Path, corpus: CorpusConfig, data: DataConfig, report: DropReport) -> Iterator[Sound]:
    if ending_of(path) in TABLE_ENDINGS:
        from heedful.data.readers.corpus import read_rows

        rows = read_rows(replace(corpus, source=str(path.absolute())), data, (corpus.source_field,), report)
        return ((row.line, row.texts[0]) for row in rows)

    def sound() -> Iterator[Sound]:
        for number, text in _lines(path, corpus.part, data.bad_utf8):
            if text is None:
                report.drop("bad UTF-8", str(path), number)
            else:
                yield number, text

    return CUTTERS[data.documents](sound())


def _lines(path: Path, part: tuple[float, float], bad_utf8: BadUtf8) -> Iterator[Line]:
    """Yield the lines of a part of a file; a line cut by the limits of the part is yielded with what lies inside."""
    with open_bytes(path) as stream:
        lines = enumerate(decode_text(stream, str(path), bad_utf8=bad_utf8), start=1)
        if part == WHOLE:
            yield from lines
            return
        with open_bytes(path) as again:
            size = sum(len(line or "") for line in decode_text(again, str(path), bad_utf8=bad_utf8))
        begin, end = (int(size * share) for share in part)
        if part[1] == 1:
            end = size + 1  # one character more than there are, so that a last line which is to be skipped is reported
        place = 0
        for number, line in lines:
            if place >= end:
                return
            text = line or ""
            if line is None and place >= begin:
                yield number, None
            elif inside := text[max(0, begin - place) : end - place]:
                yield number, inside
            place += len(text)


def _whole(lines: Iterator[Sound]) -> Iterator[Sound]:
    number, first = next(lines, (1, ""))
    yield number, "".join(chain([first], (text for _, text in lines)))


def _paragraphs(lines: Iterator[Sound]) -> Iterator[Sound]:
    for has_text, paragraph in groupby(lines, key=lambda line: bool(line[1].strip())):
        if has_text:
            for number, text in _whole(paragraph):
                yield number, text.removesuffix("\n")


def _sections(lines: Iterator[Sound]) -> Iterator[Sound]:
    section: list[Sound] = []
    for has_text, group in groupby(lines, key=lambda line: bool(line[1].strip())):
        run = list(group)
        if has_text or len(run) < SECTION_BREAK:
            section += run
        elif section:
            yield from _trimmed(section)
            section = []
    yield from _trimmed(section)


def _trimmed(lines: list[Sound]) -> Iterator[Sound]:
    """Yield lines as one text without the blank lines around it; nothing, if all lines are blank."""
    for number, text in _whole(iter(lines)):
        if text.strip():
            before = len(text) - len(text.lstrip("\r\n"))
            yield number + text[:before].count("\n"), text.strip("\r\n")


def _single_lines(lines: Iterator[Sound]) -> Iterator[Sound]:
    return ((number, text.removesuffix("\n")) for number, text in lines if text.strip())


CUTTERS: dict[str, Callable[[Iterator[Sound]], Iterator[Sound]]] = {
    "file": _whole,
    "section": _sections,
    "paragraph": _paragraphs,
    "line": _single_lines,
}
