"""Choice of the cross-attention head whose weights CTranslate2 returns as the alignment of a translation.

A head's error is measured against a statistical alignment of the validation pairs by IBM model 1
(`data.lexical_table`).

S source tokens, T target tokens, H heads, K key size, U value size, D model.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
import torch

from heedful.architectures import load_weights
from heedful.config.schema import ModelConfig
from heedful.convert.model import Model
from heedful.convert.weights import Weights
from heedful.data.lexical_table import Links, expected_counts
from heedful.data.readers.corpus import read_pairs
from heedful.errors import InputError
from heedful.predictors.cross_attention import head_weights
from heedful.tasks import find_task
from heedful.text.pipeline import BOS, EOS

LEARNED, MEASURED = 2000, 50  # numbers of pairs: those used to learn the alignment, and the first ones to compare heads

Pairs = Sequence[tuple[list[int], list[int]]]


def alignment_head(model: Model) -> tuple[int, int] | None:
    """Return the cross-attention head with the lowest alignment error: its layer, and its number within the layer.

    Both are counted from 0. Return None if there are no validation pairs.
    """
    recipe, pairs = model.recipe, list(validation_pairs(model))
    if not pairs:
        return None
    network: Any = find_task(recipe.task).build(recipe, model.tokenizers).eval()
    load_weights(network, model.weights)
    errors = np.zeros(recipe.model.decoder_layers * recipe.model.heads)
    alignments = statistical_alignment(pairs, *model.tokenizers.sizes)
    for (source, target), links in zip(pairs[:MEASURED], alignments, strict=False):
        ids = torch.tensor([source + [EOS] * recipe.model.source_eos])
        # Row t of the weights belongs to the position that predicts target token t: the input is shifted by <bos>.
        inputs = torch.tensor([[BOS, *target[:-1]]])
        masks = torch.ones_like(ids, dtype=torch.bool), torch.ones_like(inputs, dtype=torch.bool)
        [weights] = head_weights(network, ids, masks[0], inputs, masks[1], range(len(errors)))
        errors += (weights.argmax(-1).numpy() != links).sum(-1)
    layer, head = divmod(int(errors.argmin()), recipe.model.heads)
    return layer, head


def validation_pairs(model: Model) -> Pairs:
    """Read the first validation pairs of a recipe as token ids without <eos>.

    Pairs with an empty side or too many tokens are left out. Without a validation set that can be read, the result is
    empty.
    """
    valid, limits = model.recipe.data.valid, model.recipe.model
    if valid is None:
        return []
    try:
        pairs = list(islice(read_pairs(valid, model.recipe.data), LEARNED))
    except InputError:
        return []
    sources = model.tokenizers.source.encode_batch([pair.source for pair in pairs])
    targets = model.tokenizers.target.encode_batch([pair.target for pair in pairs])
    source_limit, target_limit = limits.max_positions, limits.max_target_positions or limits.max_positions
    pairs = zip(sources, targets, strict=True)
    return [(s, t) for s, t in pairs if 0 < len(s) < source_limit and 0 < len(t) < target_limit]


def statistical_alignment(pairs: Pairs, source_vocab: int, target_vocab: int) -> list[np.ndarray]:
    """Return an array (T,) for each pair: for each target token, the index of its most likely source token."""
    # The link between a source token s and a target token t has the number s * target_vocab + t, as in
    # `data.lexical_table`. Each table is (T, S).
    tables = [np.add.outer(np.array(target), target_vocab * np.array(source)) for source, target in pairs]
    targets = np.concatenate([target for _, target in pairs])
    sizes = np.concatenate([np.full(*table.shape) for table in tables])  # number of links of each target token
    links = Links(np.concatenate([table.ravel() for table in tables]), np.cumsum(sizes) - sizes, targets)
    numbers, counts = expected_counts(lambda: [links], source_vocab, target_vocab)
    sources = numbers // target_vocab
    # P(t | s) of IBM model 1: the expected count of a link, divided by the sum of the counts of s's links.
    probabilities = counts / np.bincount(sources, counts)[sources]
    return [probabilities[np.searchsorted(numbers, table)].argmax(1) for table in tables]


def with_head_first(weights: Weights, config: ModelConfig, layer: int, head: int) -> Weights:
    """Return weights in which a head of a layer's cross-attention has moved to the front; outputs do not change."""
    groups = config.kv_heads or config.heads
    # The heads of a group share keys and values: its group moves to the front, and the head to the front of the group.
    size = config.heads // groups  # heads that share keys and values are adjacent
    first = sorted(range(groups), key=lambda group: group != head // size)
    inside = sorted(range(size), key=lambda index: index != head % size)
    order = [group * size + index for group in first for index in inside]
    reordered = dict(weights)
    for name, value in weights.items():
        module, _, kind = name.removeprefix(f"decoder.blocks.{layer}.cross_attention.").partition(".")
        if module == "q":
            # q: (H K, D) -> (H, K, D) -> (H K, D)
            reordered[name] = value.unflatten(0, (config.heads, -1))[order].flatten(0, 1)
        elif module in ("k", "v"):
            reordered[name] = value.unflatten(0, (groups, -1))[first].flatten(0, 1)
        elif (module, kind) == ("out", "weight"):
            # out: (D, H U) -> (D, H, U) -> (D, H U), whose columns read the heads in their new order.
            reordered[name] = value.unflatten(1, (config.heads, -1))[:, order].flatten(1, 2)
    return reordered
