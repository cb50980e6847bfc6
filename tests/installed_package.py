"""A package with entry points in a folder on Python's path, which is what pip makes of one."""

from collections.abc import Mapping
from pathlib import Path


def install(folder: Path, name: str, files: Mapping[str, str], entry_points: Mapping[str, Mapping[str, str]]) -> None:
    """Write the files of a package and its metadata into a folder.

    Args:
        folder: the folder, which is on the path of the Python that is to find the package.
        name: the name of the package.
        files: the text of each module, by its place in the folder.
        entry_points: the places of the parts, as "module:attribute", by name and by group.
    """
    for place, text in files.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(text, encoding="utf-8")
    metadata = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    lines = []
    for group, parts in entry_points.items():
        lines += [f"[{group}]", *(f"{part} = {place}" for part, place in parts.items()), ""]
    (metadata / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
