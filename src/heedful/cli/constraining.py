"""Constraints of `heedful translate`: from options, from a glossary, and from the rows of a .jsonl file."""

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.cli.answering import MAX_LOCATIONS
from heedful.cli.output import to_json, warn
from heedful.config.schema import Recipe
from heedful.data.readers.files import ending_of
from heedful.data.readers.rows import MISSING
from heedful.errors import InputError
from heedful.predictors.predictor import Done
from heedful.search.constraints import Constraints, has_phrase
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.data.readers.glossary import Entry, Glossary
    from heedful.data.readers.labelled import WholeRow
    from heedful.predictors.literal_preserving_translator import LiteralPreservingTranslator
    from heedful.predictors.translator import Translation, Translator

KEYS = ("prefix", "terms", "forbidden")  # of a row's constraints


@dataclass(frozen=True)
class ConstraintOptions:
    """Constraints for all lines, and where those of a line come from."""

    constraints: Constraints = field(default_factory=Constraints)
    glossary: Path | None = None
    in_rows: bool = False  # whether rows of a .jsonl file have constraints

    @classmethod
    def of(
        cls,
        prefix: str | None,
        terms: list[str] | None,
        forbidden: list[str] | None,
        glossary: Path | None = None,
        in_rows: bool = False,
    ) -> "ConstraintOptions":
        """Combine the values of the options; | separates the alternatives of a term."""
        alternatives = [[each for each in term.split("|") if each.strip()] for term in terms or []]
        return cls(Constraints(prefix or "", tuple(alternatives), tuple(forbidden or ())), glossary, in_rows)

    def __bool__(self) -> bool:
        return bool(self.constraints or self.glossary or self.in_rows)

    def check_rows(self, source: Path | None) -> None:
        """Check that the input has rows with keys, if constraints are read from them."""
        if self.in_rows and not (source and ending_of(source) == ".jsonl"):
            raise InputError(
                "--row-constraints reads keys of the rows of a .jsonl file; give one as --input, or leave it out"
            )

    def facts(self) -> dict[str, Any]:
        """Return what distinguishes a translation job with these constraints from others."""
        if not self:
            return {}
        glossary = hashlib.sha256(self.glossary.read_bytes()).hexdigest() if self.glossary else None
        return {"constraints": to_json(asdict(self.constraints)), "glossary": glossary}

    def open(self, translator: "Translator") -> "LineConstraints":
        """Read the glossary, in the languages of a translator."""
        if self.glossary is None:
            return LineConstraints(self, translator, None)
        from heedful.data.readers.glossary import read_glossary

        data = (translator.recipe or Recipe()).data
        return LineConstraints(
            self, translator, read_glossary(self.glossary, data.source_language, data.target_language)
        )


@dataclass
class LineConstraints:
    """Constraints of each line, and counts of the glossary entries that apply.

    Attributes:
        pending: For each line that is not translated yet, its number and the glossary entries in it; True if an entry
            may apply.
        facts: For each line that is not written yet, the JSON fields of its glossary entries.
    """

    options: ConstraintOptions
    translator: "Translator"
    glossary: "Glossary | None"
    pending: "deque[tuple[int, list[tuple[Entry, bool]]]]" = field(default_factory=deque)
    facts: deque[list[dict[str, Any]]] = field(default_factory=deque)
    lines: int = 0
    applied: int = 0
    problems: list[str] = field(default_factory=list)

    def each(self, rows: "Iterable[WholeRow]", columns: Sequence[str]) -> "tuple[Iterator[str], Iterator[Constraints]]":
        """Return the texts of rows, and their constraints, for a translator that reads both in step."""
        pending: deque[Constraints] = deque()

        def texts() -> Iterator[str]:
            for row in rows:
                own = row_constraints(row, columns) if self.options.in_rows else Constraints()
                pending.append(self.of(row.texts[0], self.options.constraints + own, row.line))
                yield row.texts[0]

        def constraints() -> Iterator[Constraints]:
            while pending:
                yield pending.popleft()

        return texts(), constraints()

    def of(self, text: str, constraints: Constraints, line: int) -> Constraints:
        """Add the glossary entries in a line to its constraints, except those that no translation can satisfy."""
        self.lines += 1
        entries = []
        for entry in self.glossary.entries_in(text) if self.glossary else ():
            more = constraints + Constraints(preferred=[entry.targets])
            problem = self.translator.problem_of(text, more)
            entries.append((entry, problem is None))
            if problem is None:
                constraints = more
            else:
                self.problems.append(f"{entry.source!r} in line {line:,}: {problem}")
        self.pending.append((line, entries))
        return constraints

    def checked(self, translations: "Iterable[Translation]") -> "Iterator[Translation]":
        """Yield translations, and count the glossary entries that apply; an error names the line."""
        from heedful.predictors.translator import UnmetConstraints

        count = 0
        try:
            for translation in translations:
                count += 1
                self._count(*self.pending.popleft(), [each.text for each in translation.alternatives])
                yield translation
        except UnmetConstraints as error:
            line, _ = self.pending[error.index - count]
            raise InputError(f"line {line:,}: {error.reason}") from error

    def _count(self, line: int, entries: "list[tuple[Entry, bool]]", texts: list[str]) -> None:
        facts = []
        for entry, may_apply in entries:
            applies = may_apply and all(any(has_phrase(text, each) for each in entry.targets) for text in texts)
            facts.append({"source": entry.source, "target": list(entry.targets), "applied": applies})
            self.applied += applies
            if may_apply and not applies:
                self.problems.append(f"{entry.source!r} in line {line:,}: the search found no output with it")
        self.facts.append(facts)

    def fields(self) -> dict[str, Any]:
        """Return the JSON fields for the next line: its glossary entries, and whether they apply."""
        if self.glossary is None:
            return {}
        return {"glossary": self.facts.popleft()}

    def report(self) -> None:
        """Print how many glossary entries were applied, and the first ones that could not be."""
        if self.glossary is None:
            return
        import typer

        terms = counted(self.applied, "terms")
        typer.echo(f"glossary: {terms} applied in {counted(self.lines, 'lines')}", err=True)
        if self.problems:
            first = "; ".join(self.problems[:MAX_LOCATIONS])
            warn(f"glossary: {counted(len(self.problems), 'terms')} could not be applied ({first})")


@dataclass(frozen=True)
class ConstrainedLines:
    """Translator of lines, such as the sentences of documents, under the constraints of a command."""

    translator: "LiteralPreservingTranslator"
    constraints: LineConstraints

    def translate_lines(self, lines: Iterable[str], window: int, done: Done) -> "Iterator[Translation]":
        texts = list(lines)
        first = self.constraints.lines + 1
        common = self.constraints.options.constraints
        each = [self.constraints.of(text, common, number) for number, text in enumerate(texts, start=first)]
        return self.constraints.checked(self.translator.translate_lines(texts, window, done, constraints=each))


def row_constraints(row: "WholeRow", columns: Sequence[str]) -> Constraints:
    """Read the constraints of a row: the keys "prefix", "terms" and "forbidden", each of which may be missing."""
    cells = {name: cell for name, cell in zip(columns, row.cells, strict=False) if name in KEYS}
    values: dict[str, Any] = {name: cell for name, cell in cells.items() if cell not in (MISSING, None, "")}
    try:
        return Constraints(**values)
    except InputError as error:
        raise InputError(f"line {row.line:,}: {error}") from error
