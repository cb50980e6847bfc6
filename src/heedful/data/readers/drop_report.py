"""Counts of the examples that readers and filters leave out, by reason, and a remedy for each reason."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self, get_args

from heedful.text.coverage import UnknownTokens

Reason = Literal[
    "header",  # a first row with column names, none of which the recipe uses
    "bad UTF-8",
    "bad file",  # an image or audio file that cannot be decoded
    "being a run, model or recipe folder",  # which heedful, not the user, created in the folder that is read
    "empty source",
    "empty target",
    "empty label",
    "too many characters",
    "wrong script",
    "duplicate",
    "too many tokens",
    "length ratio",
]
REASONS: tuple[Reason, ...] = get_args(Reason)  # in the order in which the filters run
PHRASES: dict[Reason, str] = {  # for the reasons whose name cannot simply follow "dropped for"
    "header": "as a header",
    "bad file": "as unreadable",
    "empty source": "for an empty source",
    "empty target": "for an empty target",
    "empty label": "for an empty label",
    "wrong script": "for the wrong script",
    "duplicate": "for duplication",
    "length ratio": "for the length ratio",
}

WARN_SHARE = 0.1  # minimum share of dropped examples for a warning

_FILL = "fill them in, or check that the right column or file is read"
REMEDIES: dict[Reason, str] = {  # for dropped examples; headers and folders are not examples
    "bad UTF-8": "convert the file to UTF-8, as with iconv",
    "bad file": "save these files again, or remove them",
    "empty source": _FILL,
    "empty target": _FILL,
    "empty label": _FILL,
    "too many characters": "raise data.filters.max_characters to keep them",
    "wrong script": "check data.filters.source_script and target_script, and that the right file is read",
    "duplicate": "data.filters.duplicates = true keeps them",
    "too many tokens": "raise data.filters.max_tokens to keep them",
    "length ratio": "check that line n of one side corresponds to line n of the other, or raise data.filters.max_ratio",
}

Remark = Literal["cut", "empty", "silent"]  # a text longer than data.max_length, an empty text, or silent audio
REMARKS: tuple[Remark, ...] = get_args(Remark)


@dataclass
class DropReport:
    """Counts of dropped examples by reason and of odd examples by remark, with the location of the first of each."""

    counts: dict[Reason | Remark, int] = field(default_factory=dict)
    examples: dict[Reason | Remark, str] = field(default_factory=dict)
    tokens: dict[str, UnknownTokens] = field(default_factory=dict)  # by text, such as "target tokens of train.de"
    bad_files: list[str] = field(default_factory=list, compare=False)  # messages about bad files, which are not stored

    def drop(self, reason: Reason | Remark, name: str, line: int | None) -> None:
        """Count a dropped example at `line` (from 1) of the file `name`, or the whole file if `line` is None."""
        self.examples.setdefault(reason, name if line is None else f"{name}, line {line}")
        self.counts[reason] = self.counts.get(reason, 0) + 1

    remark = drop  # counts an odd example that is kept

    def count_tokens(self, name: str, ids: Sequence[int]) -> None:
        self.tokens.setdefault(name, UnknownTokens()).count(ids)

    def merge(self, other: Self) -> None:
        """Add the counts of another report; its examples are used only for reasons that this report lacks."""
        for name, counts in other.tokens.items():
            total = self.tokens.setdefault(name, UnknownTokens())
            total.tokens, total.unknown = total.tokens + counts.tokens, total.unknown + counts.unknown
        for reason, count in other.counts.items():
            self.counts[reason] = self.counts.get(reason, 0) + count
            self.examples.setdefault(reason, other.examples[reason])
        self.bad_files += other.bad_files

    def rows(self) -> list[tuple[Reason, int, str]]:
        """Return (reason, count, location of the first dropped example), in the order in which the filters run."""
        return [(reason, self.counts[reason], self.examples[reason]) for reason in REASONS if reason in self.counts]

    def remarks(self) -> list[tuple[Remark, int, str]]:
        """Return (remark, count, location of the first example) for examples that were kept although they are odd."""
        return [(remark, self.counts[remark], self.examples[remark]) for remark in REMARKS if remark in self.counts]

    def remark_lines(self, count: int, max_length: int) -> Iterator[str]:
        """Yield a message for each kind of odd example among `count` examples, such as truncated or empty texts."""
        kinds = {
            "cut": f"texts longer than data.max_length = {max_length:,} tokens, truncated to that length",
            "empty": "empty texts, which say nothing about their labels",
            "silent": "silent audio files, to be removed unless they are examples of silence",
        }
        for remark, number, first in self.remarks():
            yield f"{kinds[remark]}: {number:,} of {count:,} (first: {first})"

    def __str__(self) -> str:
        rows = self.rows()
        dropped = [f"{count:,} {phrase(reason)} (first: {example})" for reason, count, example in rows]
        return f"{sum(count for _, count, _ in rows):,} dropped" + (": " + ", ".join(dropped) if dropped else "")

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Return the counts of dropped and odd examples by reason, with the location of the first, as JSON values."""
        rows = [*self.rows(), *self.remarks()]
        return {reason: {"count": count, "first": example} for reason, count, example in rows}

    @classmethod
    def from_dict(cls, values: dict[str, dict[str, Any]], tokens: dict[str, dict[str, int]] | None = None) -> Self:
        """Create a report from the JSON values that `to_dict` returns, and from token counts by name."""
        reasons: list[Reason | Remark] = [reason for reason in (*REASONS, *REMARKS) if reason in values]
        return cls(
            counts={reason: values[reason]["count"] for reason in reasons},
            examples={reason: values[reason]["first"] for reason in reasons},
            tokens={name: UnknownTokens(**counts) for name, counts in (tokens or {}).items()},
        )


def phrase(reason: Reason) -> str:
    """Return the words that give a reason after "3 examples were dropped", such as "for too many tokens"."""
    return PHRASES.get(reason, f"for {reason}")


def left_out_line(drops: DropReport, remaining: int) -> str | None:
    """Return a warning with a remedy if many examples were dropped compared with those `remaining`, else None."""
    rows = [row for row in drops.rows() if row[0] in REMEDIES]
    total = sum(count for _, count, _ in rows)
    if not rows or total < WARN_SHARE * (remaining + total):
        return None
    # Give one remedy at a time: the one for the most frequent reason saves the most examples.
    reason, count, first = max(rows, key=lambda row: row[1])
    what = f"{total / (remaining + total):.0%} of the examples are left out, {count:,} of them {phrase(reason)}"
    return f"{what} (first: {first}); {REMEDIES[reason]}"
