"""Cross-attention inside the box of what is said: python benchmarks/caption_boxes.py RUN... --data DATA [--help]

Each RUN was trained by `heedful train recipes/shapes-caption --data DATA`, or by a recipe like it. The attention that
predicts a word about an object is added up inside the box of the object. The head with the most there on validation
images is measured on test images: beside even attention over all patches, and beside the same model before
training, whose best head is found likewise. A line for each run goes to the .jsonl file beside this script.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby, islice
from pathlib import Path
from statistics import fmean
from typing import Any

import record
import torch
from rich.console import Console
from rich.table import Table

from heedful.checkpoint import LoadedModel, load_model
from heedful.inspector.capture.sources import ImageInput
from heedful.inspector.measures.attention import BoxMass, box_masses, cross_attention
from heedful.inspector.plots import ImageMaps, draw_maps
from heedful.predictors.captioner import Captioner
from heedful.tasks import find_task


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    parser.add_argument("--data", type=Path, required=True, help="the folder that `heedful shapes` wrote")
    parser.add_argument("--pictures", type=int, default=300, help="of the validation set, and of the test set")
    parser.add_argument("--draw", type=Path, metavar="FILE", help="draw where the best head of the last run looks")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    facts = record.machine(options.threads) | {"pictures": options.pictures}
    table = Table("run", "head", "mass in the box", "1st, 2nd, ... word", "even attention", "untrained")
    for run in options.runs:
        loaded = load_model(run)
        head, by_place, even = measured(loaded, options.data, options.pictures)
        _, before, _ = measured(untrained(loaded), options.data, options.pictures)
        mass, start = (fmean(value for place in places for value in place) for places in (by_place, before))
        name, words = f"{head[0] + 1}.{head[1] + 1}", [round(fmean(place), 3) for place in by_place]
        table.add_row(run.name, name, f"{mass:.3f}", str(words), f"{even:.3f}", f"{start:.3f}")
        found = {"run": run.name, "head": name, "mass": mass, "by place": words, "even": even, "untrained": start}
        record.append(__file__, facts | found)
        if options.draw:
            draw(loaded, next(rows(options.data, "test")), head, options.draw)
    Console(width=120).print(facts, table)


def untrained(loaded: LoadedModel) -> LoadedModel:
    torch.manual_seed(loaded.recipe.train.seed)
    return replace(loaded, model=find_task(loaded.recipe.task).build(loaded.recipe, loaded.tokenizers).eval())


def rows(data: Path, part: str) -> Iterator[dict[str, Any]]:
    for line in (data / f"{part}.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        yield row | {"picture": data / row["picture"]}


def measured(loaded: LoadedModel, data: Path, pictures: int) -> tuple[tuple[int, int], list[list[float]], float]:
    """The best head, its masses on test images for the first word about an object, the second ..., and chance."""
    masses = [found.mass for _, found in about_objects(loaded, islice(rows(data, "valid"), pictures))]
    mean = torch.stack(masses).mean(0)
    head = divmod(int(mean.argmax()), mean.size(1))
    by_place, chances = defaultdict(list), []
    for place, found in about_objects(loaded, islice(rows(data, "test"), pictures)):
        by_place[place].append(float(found.mass[head]))
        chances.append(found.chance)
    return head, [by_place[place] for place in sorted(by_place)], fmean(chances)


def about_objects(loaded: LoadedModel, given: Iterator[dict[str, Any]]) -> Iterator[tuple[int, BoxMass]]:
    """Each word about an object, with its place among the words about that object, from 0."""
    captioner, language = loaded.use_as(Captioner), loaded.recipe.data.train[0].target_field
    for row in given:
        boxes = row["boxes"][language]
        phrases = [list(words) for box, words in groupby(boxes, lambda word: word[2]) if box]
        places = [place for words in phrases for place in range(len(words))]
        yield from zip(places, box_masses(captioner, row["picture"], row[language], boxes), strict=True)


def draw(loaded: LoadedModel, row: dict[str, Any], head: tuple[int, int], file: Path) -> None:
    language = loaded.recipe.data.train[0].target_field
    seen = cross_attention(loaded.use_as(Captioner), row["picture"], row[language])
    assert isinstance(seen.media, ImageInput)
    boxes = {number: box for number, (*_, box) in enumerate(row["boxes"][language]) if box}
    maps, title = seen.media.on_patches(seen.weights[head].numpy()), f"Layer {head[0] + 1}, head {head[1] + 1}"
    draw_maps(ImageMaps(seen.media.pixels, maps, seen.target.words, title, row[language], boxes), file)


if __name__ == "__main__":
    main()
