"""Outputs that a search cut at their length limit: counted, and reported with the setting that makes room."""

from dataclasses import dataclass

from heedful.config.schema import DecodeConfig


@dataclass
class CutOutputs:
    """Counts of outputs, and of those that were cut because they reached their length limit without <eos>."""

    outputs: int = 0
    cut: int = 0

    def count(self, complete: bool) -> None:
        """Count an output."""
        self.outputs += 1
        self.cut += not complete

    def line(self, config: DecodeConfig, positions: int | None, option: str = "decode.max_extra") -> str | None:
        """Return a sentence about the cut outputs with the remedy; None if there are none.

        Args:
            config: The settings of the search.
            positions: The positions that the decoder of the model learns, which no setting of a search can raise.
            option: The name of the setting that the reader can change.
        """
        if not self.cut:
            return None
        learned = "" if positions is None else f" (at most the {positions:,} positions that the model learns)"
        return (
            f"{self.cut:,} of {self.outputs:,} outputs were cut at the length limit, decode.max_extra = "
            f"{config.extra:,}{learned}; if they repeat themselves, train longer, otherwise raise {option}"
        )
