"""Pair of tokenizers of a translator, one for each side."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.errors import InputError
from heedful.text.tokenizer import DEFINITION, Tokenizer

JOINT, SOURCE, TARGET = "joint", "source", "target"
LAYOUTS = ((JOINT,), (SOURCE, TARGET), (".",))  # subfolders of a pair with a tokenizer; "." is a single tokenizer


@dataclass(frozen=True)
class TokenizerPair:
    """Source and target tokenizer of a translator, the same object where both languages share a vocabulary."""

    source: Tokenizer
    target: Tokenizer

    @property
    def joint(self) -> bool:
        """True if both languages share one vocabulary."""
        return self.source is self.target

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of tokens in both vocabularies, special tokens included."""
        return len(self.source), len(self.target)

    def save(self, folder: Path) -> None:
        """Write the tokenizers of both languages to `folder`/joint, or to `folder`/source and `folder`/target."""
        parts = self._parts()
        for name in {JOINT, SOURCE, TARGET} - parts.keys():
            if (folder / name).exists():
                raise InputError(f"{folder / name} belongs to another pair of tokenizers; name another folder")
        for name, tokenizer in parts.items():
            tokenizer.save(folder / name)

    def files(self) -> dict[str, bytes]:
        """Return the bytes of the files that `save` writes, by their names relative to the folder."""
        return {
            f"{part}/{name}": content
            for part, tokenizer in self._parts().items()
            for name, content in tokenizer.files().items()
        }

    def _parts(self) -> dict[str, Tokenizer]:
        return {JOINT: self.source} if self.joint else {SOURCE: self.source, TARGET: self.target}

    @classmethod
    def load(cls, folder: Path, layout: Sequence[str] | None = None) -> "TokenizerPair":
        """Load a pair of tokenizers from a folder that `save` wrote; a single tokenizer there is one for both sides.

        Args:
            folder: The folder of the pair.
            layout: The one of `LAYOUTS` to read, whatever else lies there; None: the one that lies there.

        Raises:
            InputError: A file is missing, damaged, or was not written by heedful; or the folder has several layouts.
        """
        tokenizers = [Tokenizer.load(folder / part) for part in layout or layout_of(folder)]
        return cls(tokenizers[0], tokenizers[-1])


class NoTokenizers(TokenizerPair):
    """Tokenizers of a model that neither reads nor writes text: there are none, and nothing is stored."""

    def __init__(self) -> None:
        """Without `source` and `target`, so that `__getattr__` refuses them."""

    @property
    def joint(self) -> bool:
        return True

    @property
    def sizes(self) -> tuple[int, int]:
        return 0, 0

    def __getattr__(self, name: str) -> Tokenizer:
        if name in ("source", "target"):
            raise InputError("this model reads and writes no text: it has no tokenizer")
        raise AttributeError(name)

    def _parts(self) -> dict[str, Tokenizer]:
        return {}


def layout_of(folder: Path) -> Sequence[str]:
    """Find the layout, one of `LAYOUTS`, that the folder of a pair of tokenizers has."""
    layouts = [layout for layout in LAYOUTS if any((folder / part / DEFINITION).exists() for part in layout)]
    if not layouts:
        inner = [place for place in (folder / "tokenizer", folder / "model/tokenizer") if place.is_dir()]
        train = f"train one with `heedful tokenizer train FILES --out {folder}`"
        if not inner and not folder.is_dir():
            from heedful.storage.paths import no_folder

            raise InputError(no_folder(folder, train, "tokenizer"))
        raise InputError(f"{folder}: holds no tokenizer; {f'give {inner[0]}' if inner else train}")
    if len(layouts) > 1:
        files = ", ".join(str(folder / part / DEFINITION) for layout in layouts for part in layout)
        raise InputError(
            f"{folder}: holds tokenizers of different pairs ({files}); remove those that do not belong here"
        )
    return layouts[0]
