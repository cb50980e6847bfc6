"""Distances that heads of an image or audio encoder attend to: python benchmarks/head_distances.py RUN FILE... [--help]

The distance from a patch or frame to what a head attends to, as a share of that of even attention, is averaged over the
files, and stands beside that of the same model before training. A folder stands for the files in it. A line for each
call goes to the .jsonl file beside this script.
"""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import record
import torch
from caption_boxes import untrained
from rich.console import Console
from rich.table import Table

from heedful.checkpoint import LoadedModel, load_model
from heedful.inspector.development import head_measures


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("run", type=Path, metavar="RUN")
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="picture, audio, or folder of them")
    parser.add_argument("--each", type=int, default=20, help="the most files of one folder")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    listed = [sorted(path.iterdir())[: options.each] if path.is_dir() else [path] for path in options.files]
    files = list(chain.from_iterable(listed))
    loaded = load_model(options.run)
    before, after = distances(untrained(loaded), files), distances(loaded, files)
    table = Table("layer", "distance of each head", "before training")
    for block, values in after.items():
        table.add_row(block, shown(values), shown(before[block]))
    facts = record.machine(options.threads) | {"run": options.run.name, "files": len(files)}
    record.append(__file__, facts | {"distances": after, "untrained": before})
    Console(width=120).print(facts, table)


def distances(loaded: LoadedModel, files: Sequence[Path]) -> dict[str, list[float]]:
    """The mean distance of each head of each layer of the encoder over files."""
    found = [head_measures(loaded, file, None) for file in files]
    blocks = [block for block, kinds in found[0].items() if "distance" in kinds]
    means = {block: torch.tensor([heads[block]["distance"] for heads in found]).mean(0) for block in blocks}
    return {block: values.tolist() for block, values in means.items()}


def shown(values: Sequence[float]) -> str:
    return "  ".join(f"{value:.2f}" for value in values)


if __name__ == "__main__":
    main()
