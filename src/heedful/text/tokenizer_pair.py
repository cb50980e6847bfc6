"""Pair of tokenizers, one for the source and one for the target, with an optional shortlist of target tokens."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from heedful.errors import InputError
from heedful.text.tokenizer import DEFINITION, Tokenizer

if TYPE_CHECKING:
    from heedful.text.shortlist import Shortlist

JOINT, SOURCE, TARGET = "joint", "source", "target"
LAYOUTS = ((JOINT,), (SOURCE, TARGET), (".",))  # the subfolders of a pair; "." is the folder of a single tokenizer


@dataclass(frozen=True)
class TokenizerPair:
    """Source and target tokenizers; the same object if both languages share a vocabulary.

    `shortlist` is set for trained models whose recipe sets `decode.shortlist`.
    """

    source: Tokenizer
    target: Tokenizer
    shortlist: "Shortlist | None" = field(default=None, kw_only=True)

    @property
    def joint(self) -> bool:
        """True if both languages share one vocabulary."""
        return self.source is self.target

    @property
    def sizes(self) -> tuple[int, int]:
        """Sizes of the source and the target vocabulary, special tokens included."""
        return len(self.source), len(self.target)

    def check_shortlist(self, size: int) -> None:
        """Check that the shortlist has the size that a search requests; 0 requests no shortlist."""
        if not size or (self.shortlist and self.shortlist.size == size):
            return
        if self.shortlist:
            raise InputError(
                f"decode.shortlist = {size}: this model has a shortlist of {self.shortlist.size}; use that, or 0"
            )
        raise InputError(
            f"decode.shortlist = {size}: this model has no shortlist; use 0, or train a model with shortlist under "
            "[decode] in its recipe: the shortlist is built at the end of training"
        )

    def save(self, folder: Path) -> None:
        """Write the tokenizers of both languages to `folder`/joint, or to `folder`/source and `folder`/target."""
        parts = self._parts()
        # `load` rejects a folder with several layouts.
        for name in {JOINT, SOURCE, TARGET} - parts.keys():
            if (folder / name).exists():
                raise InputError(f"{folder / name} belongs to another pair of tokenizers; choose another folder")
        for name, tokenizer in parts.items():
            tokenizer.save(folder / name)

    def files(self) -> dict[str, bytes]:
        """Return the bytes of the files that `save` writes and of the shortlist, by their names in the folder."""
        return {
            f"{part}/{name}": content
            for part, tokenizer in self._parts().items()
            for name, content in tokenizer.files().items()
        } | (self.shortlist.files() if self.shortlist else {})

    def _parts(self) -> dict[str, Tokenizer]:
        return {JOINT: self.source} if self.joint else {SOURCE: self.source, TARGET: self.target}

    @classmethod
    def load(cls, folder: Path, layout: Sequence[str] | None = None) -> "TokenizerPair":
        """Load a pair of tokenizers from a folder that `save` wrote; a single tokenizer there is used for both sides.

        Args:
            folder: The folder of the pair.
            layout: One of `LAYOUTS`, by default the one that the folder has.

        Raises:
            InputError: The folder has none of the layouts or several, or a tokenizer in it cannot be read.
        """
        tokenizers = [Tokenizer.load(folder / part) for part in layout or layout_of(folder)]
        return cls(tokenizers[0], tokenizers[-1])


class NoTokenizers(TokenizerPair):
    """Stand-in for the tokenizers of a model that neither reads nor generates text; `save` writes nothing."""

    def __init__(self) -> None:
        """Set neither `source` nor `target`, so that `__getattr__` rejects them."""

    @property
    def joint(self) -> bool:
        return True

    @property
    def sizes(self) -> tuple[int, int]:
        return 0, 0

    def __getattr__(self, name: str) -> Tokenizer:
        if name in ("source", "target"):
            raise InputError("this model neither reads nor generates text: it does not have a tokenizer")
        raise AttributeError(name)

    def _parts(self) -> dict[str, Tokenizer]:
        return {}


def layout_of(folder: Path) -> Sequence[str]:
    """Find the layout, one of `LAYOUTS`, of a folder with a pair of tokenizers."""
    layouts = [layout for layout in LAYOUTS if any((folder / part / DEFINITION).exists() for part in layout)]
    if not layouts:
        inner = [path for path in (folder / "tokenizer", *sorted(folder.glob("**/model/tokenizer"))) if path.is_dir()]
        train = "train one with `heedful tokenizer train FILES --out FOLDER`"
        if not inner and not folder.is_dir():
            from heedful.storage.paths import no_folder

            raise InputError(no_folder(folder, train, "tokenizer"))
        raise InputError(f"{folder}: contains no tokenizer; {f'give {inner[0]}' if inner else train}")
    if len(layouts) > 1:
        files = ", ".join(str(folder / part / DEFINITION) for layout in layouts for part in layout)
        raise InputError(
            f"{folder}: contains tokenizers of different pairs ({files}); remove those that do not belong here"
        )
    return layouts[0]
