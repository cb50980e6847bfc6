"""Classes of examples: remarks on how often each class occurs, and the weights of the classes in the loss.

C classes.
"""

from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

from heedful.config.schema import DataConfig, Recipe
from heedful.data.preparation.prepared_data import PreparedData
from heedful.data.readers.corpus import WHOLE
from heedful.data.readers.labelled import dominance_line
from heedful.data.stores import MediaStore, PairStore
from heedful.metrics.classes import TRAINING, missing_classes_warning

MIN_SORTED_EXAMPLES = 20  # fewer examples may be sorted by class by chance

ExampleStore = PairStore | MediaStore


def class_remarks(
    examples: PreparedData[PairStore] | PreparedData[MediaStore], data: DataConfig, first: int = 0
) -> list[str]:
    """List remarks on the classes of prepared examples: a dominant class, classes without examples, and sorted rows.

    Classes are numbered from `first`. If it is 1, as for tags, an example has many targets, among them 0 for none; the
    only remarks are then about classes without examples.
    """

    def count(store: ExampleStore) -> np.ndarray:
        return np.bincount(store.targets.astype(np.int64), minlength=first + len(data.labels))[first:]  # (C,)

    train = np.sum([count(store) for store in examples.train], axis=0)
    remarks = [] if first else [dominance_line(dict(zip(data.labels, train.tolist(), strict=True)))]
    counts = {TRAINING: train}
    if examples.valid is not None:
        counts["the validation set"] = count(examples.valid)
    for where, numbers in counts.items():
        missing = [label for label, number in zip(data.labels, numbers, strict=True) if not number]
        remarks.append(missing_classes_warning(missing, where))
    if not first:
        remarks += order_remarks(data, examples)
    return [remark for remark in remarks if remark]


def order_remarks(data: DataConfig, examples: PreparedData[PairStore] | PreparedData[MediaStore]) -> list[str]:
    """List remarks on tables that are sorted by class, and of which `part` selects rows that lack some classes."""
    stores = [*zip(data.train, examples.train, strict=True)]
    if data.valid and examples.valid:
        stores.append((data.valid, examples.valid))
    pieces: dict[str, list[tuple[float, np.ndarray]]] = {}
    for corpus, store in stores:
        if corpus.part != WHOLE and not Path(data.root, corpus.source).is_dir():  # a folder is split class by class
            pieces.setdefault(corpus.source, []).append((corpus.part[0], store.targets.astype(np.int64)))
    remarks = []
    for source, parts in pieces.items():
        # Parts of the same table, in the order of its rows.
        classes = np.concatenate([targets for _, targets in sorted(parts, key=lambda part: part[0])])
        changes = np.count_nonzero(np.diff(classes))
        # In rows sorted by k classes, the class changes k - 1 times; in any other order, it changes more often.
        if len(classes) >= MIN_SORTED_EXAMPLES and 0 < changes < len(np.unique(classes)):
            remarks.append(
                f"{source}: the rows are sorted by class, so the rows that `part` selects lack some classes; shuffle "
                "the file"
            )
    return remarks


def class_weights(recipe: Recipe, device: torch.device) -> Float32[Tensor, " C"] | None:
    """Return the class weights of a recipe, in the order of `data.labels`, on a device; None without weights."""
    weights = recipe.train.class_weights
    if not isinstance(weights, dict):
        return None
    return torch.tensor([weights[label] for label in recipe.data.labels], device=device)
