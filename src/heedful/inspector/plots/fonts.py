"""Choose installed fonts to draw a text: matplotlib's own font has no Chinese, Japanese or Korean glyphs."""

from dataclasses import dataclass
from functools import cache

from matplotlib.font_manager import FontEntry, findfont, fontManager
from matplotlib.ft2font import FT2Font

FONT = "DejaVu Sans"  # comes with matplotlib
PLACEHOLDERS = "Last Resort"  # comes with matplotlib too: an empty box for every character


@dataclass(frozen=True)
class Fonts:
    """Font families to draw a text, in order of preference, and the characters that no installed font has."""

    families: list[str]
    missing: set[str]


def fonts_for(text: str) -> Fonts:
    """Choose a few installed fonts that together cover the characters of a text, and list the missing characters."""
    families, missing = [FONT], set(text) - _glyphs(findfont(FONT))
    candidates = sorted({(font.name, font.fname) for font in fontManager.ttflist if _plain(font)})
    while missing:
        name, path = max(candidates, key=lambda font: len(missing & _glyphs(font[1])))
        if not missing & _glyphs(path):
            break
        families.append(name)
        missing -= _glyphs(path)
    return Fonts(families, missing)


def _plain(font: FontEntry) -> bool:
    return font.style == "normal" and font.weight == 400 and not font.name.startswith(PLACEHOLDERS)


@cache
def _glyphs(path: str) -> frozenset[str]:
    return frozenset(map(chr, FT2Font(path).get_charmap()))
