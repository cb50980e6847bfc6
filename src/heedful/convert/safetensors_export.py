"""Export of models as folders that heedful reads on any machine: safetensors, recipe and tokenizers, without paths."""

import os
from dataclasses import replace
from pathlib import Path

from heedful.checkpoint.save import write_model
from heedful.config.schema import CorpusConfig, Recipe
from heedful.convert.exporter import Exporter
from heedful.convert.model import Model, count_values


def write(model: Model, folder: Path, precision: str) -> int:
    """Write a heedful model folder, with weights in one of the precisions.

    If the folder already contains a heedful model, that model is replaced.
    """
    write_model(folder, without_paths(model.recipe), model.tokenizers, model.weights, precision)
    return count_values(model.weights)


def without_paths(recipe: Recipe) -> Recipe:
    """Return a copy of a recipe without this machine's paths to data, tokenizer, word vectors and start models.

    Corpora keep their file names.
    """

    def by_name(corpus: CorpusConfig) -> CorpusConfig:
        sides = {side: Path(path) for side in ("source", "target") if (path := getattr(corpus, side)) is not None}
        absolute = {side: path for side, path in sides.items() if path.is_absolute()}
        names = {side: path.name for side, path in absolute.items()}
        if len(set(names.values())) < len(names):  # as for en/test.txt and de/test.txt
            common = os.path.commonpath(absolute.values())
            names = {side: str(path.relative_to(common)) for side, path in absolute.items()}
        return replace(corpus, **names)

    data = recipe.data
    layers: dict[str, tuple[int, ...]] = {"start_encoder_layers": (), "start_decoder_layers": ()}
    parts = {part: by_name(corpus) for part in ("valid", "test") if (corpus := getattr(data, part))}
    return replace(
        recipe,
        data=replace(data, root=".", train=tuple(map(by_name, data.train)), **parts),
        train=replace(recipe.train, start=None, start_decoder=None, **layers),
        tokenizer=replace(recipe.tokenizer, path=None),
        model=replace(recipe.model, source_vectors=None, target_vectors=None, freeze_vectors=False),
    )


EXPORTER = Exporter(
    title="heedful", writer=write, precisions=("float32", "bfloat16", "int8", "int4"), architecture=None
)
