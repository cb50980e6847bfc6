"""Conversion of models between heedful and the formats of Hugging Face and CTranslate2, one file for each format.

A new format is a file with a `Format`, a line in `registry.FORMATS`, and its name in `cli.convert`.
"""

from typing import TYPE_CHECKING

from heedful.registry import FORMATS, public_names

if TYPE_CHECKING:
    from heedful.convert.model import Format, Model

__all__ = ["FORMATS", "Format", "Model"]

__getattr__ = public_names(__name__, {"heedful.convert.model": ("Format", "Model")})
