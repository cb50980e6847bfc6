"""The tokenizers of a translator, one for each side."""

from dataclasses import dataclass
from pathlib import Path

from heedful.errors import InputError
from heedful.text import storage
from heedful.text.tokenizer import Tokenizer

JOINT, SOURCE, TARGET = "joint", "source", "target"


@dataclass(frozen=True)
class TokenizerPair:
    """Source and target tokenizer, which are the same object where both languages share a vocabulary."""

    source: Tokenizer
    target: Tokenizer

    @property
    def joint(self) -> bool:
        """Whether both languages share one vocabulary."""
        return self.source is self.target

    def save(self, folder: Path) -> None:
        """Write `folder`/joint, or `folder`/source and `folder`/target.

        Raises:
            InputError: Other things stand there, such as a pair of the other layout.
            RunError: They cannot be written.
        """
        parts = {JOINT: self.source} if self.joint else {SOURCE: self.source, TARGET: self.target}
        for name in {JOINT, SOURCE, TARGET} - parts.keys():
            if (folder / name).exists():
                raise InputError(f"{folder / name} belongs to another pair of tokenizers; name another folder")
        for name, tokenizer in parts.items():
            tokenizer.save(folder / name)

    @classmethod
    def load(cls, folder: Path) -> "TokenizerPair":
        """Read what `save` wrote; the folder of a single tokenizer is one for both sides.

        Raises:
            InputError: A file is missing, damaged, or was not written by heedful.
        """
        for both in (folder / JOINT, folder):
            if (both / storage.DEFINITION).exists():
                tokenizer = Tokenizer.load(both)
                return cls(tokenizer, tokenizer)
        if not (folder / SOURCE).exists():
            raise InputError(
                f"{folder}: holds no tokenizer; train one with `heedful tokenizer train FILES --out {folder}`"
            )
        return cls(Tokenizer.load(folder / SOURCE), Tokenizer.load(folder / TARGET))
