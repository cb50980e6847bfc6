"""Conversion of models between heedful's format and those of other programs, with one file for each format.

A new format is a file with a `Format` to read it or an `Exporter` to write it, and a line in `registry.FORMATS` or
`registry.EXPORTERS`.
"""

from typing import TYPE_CHECKING

from heedful.registry import FORMATS, public_names

if TYPE_CHECKING:
    from heedful.convert.model import Format, Model

__all__ = ["FORMATS", "Format", "Model"]

__getattr__ = public_names(__name__, {"heedful.convert.model": ("Format", "Model")})
