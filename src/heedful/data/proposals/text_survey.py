"""Survey of running text: its amount, its script, and its documents."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from heedful.data.proposals.pair_survey import SPACELESS, main_script
from heedful.data.readers.documents import SECTION_BREAK, Document
from heedful.data.readers.files import ending_of
from heedful.data.readers.rows import READERS
from heedful.errors import InputError


@dataclass(frozen=True)
class TextSurvey:
    """Statistics of a file or a folder of running text: lines, paragraphs, sections, characters, words, letters."""

    files: int
    is_rows: bool  # whether it is a table or a list of objects, each of whose rows is a document
    lines: int  # lines or rows, blank ones left out
    paragraphs: int  # between blank lines; rows are both paragraphs and sections
    sections: int  # between two or more blank lines
    characters: int
    words: int
    letters: Counter[str]
    longest: int  # characters of the longest line
    longest_at: str  # file and line of the longest line
    beginning: str  # a few of the first words

    @property
    def script(self) -> str | None:
        """The script of at least half of the letters of the text, or None if it is not known."""
        return main_script(self.letters)

    @property
    def is_spaceless(self) -> bool:
        """True if spaces do not tell the words of the text apart, as in Chinese."""
        return self.script in SPACELESS or self.characters > 15 * self.words

    @property
    def pieces(self) -> int:
        """Estimated number of tokens of the text in a vocabulary of some thousand pieces."""
        return round(0.7 * self.characters if self.is_spaceless else 1.3 * self.words)


def survey_text(texts: Iterable[Document], name: str) -> TextSurvey:
    """Survey a file or a folder of running text, which is read once, a line at a time.

    Args:
        texts: The lines of the text, as `document_lines` gives them.
        name: The name of the file or the folder, for messages.

    Raises:
        InputError: The text cannot be read, or there is none.
    """
    files: set[Path] = set()
    letters: Counter[str] = Counter()
    lines = paragraphs = sections = characters = words = longest = 0
    longest_at = beginning = ""
    before: tuple[Path | None, int] = (None, 0)
    for text, file, line in texts:
        blank = line - before[1] - 1 if file == before[0] and ending_of(file) not in READERS else SECTION_BREAK
        before = (file, line)
        files.add(file)
        lines += 1
        paragraphs += blank > 0
        sections += blank >= SECTION_BREAK
        characters += len(text) + 1
        words += len(text.split())
        letters.update(text)
        beginning = beginning or " ".join(text.split()[:3])[:20]
        if len(text) > longest:
            longest, longest_at = len(text), f"{file}, line {line}"
    if not lines:
        raise InputError(f"{name}: there is no text in it; check the file")
    is_rows = all(ending_of(file) in READERS for file in files)
    return TextSurvey(
        files=len(files),
        is_rows=is_rows,
        lines=lines,
        paragraphs=paragraphs,
        sections=sections,
        characters=characters,
        words=words,
        letters=letters,
        longest=longest,
        longest_at=longest_at,
        beginning=beginning,
    )
