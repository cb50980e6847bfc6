"""Warm start: a run that begins with the weights of another model.

What both models have goes over; the rest, such as the head of another task, is fresh. The trunk of a masked language
model can become the encoder of a translator, that of a language model its decoder.
"""

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from heedful.checkpoint import LoadedModel, load_model
from heedful.config.load import recipe_from_dict, recipe_to_dict
from heedful.config.schema import ModelConfig, Recipe
from heedful.errors import InputError
from heedful.models import weights
from heedful.tasks import find_task
from heedful.text.pair import TokenizerPair
from heedful.text.tokenizer import Tokenizer

Names = dict[str, str]  # how the names of weights begin, there and here

OWN = {  # keys of [model] that a recipe decides for itself
    "dropout",
    "attention_dropout",
    "activation_dropout",
    "init",
    "pooling",
    "source_vectors",
    "target_vectors",
    "freeze_vectors",
}
OTHER_LAYERS = {"encoder": {"decoder_layers"}, "decoder": {"encoder_layers"}, "encoder_decoder": set[str]()}
ALIKE: Names = {"": ""}
TRUNK: Names = {"trunk.": "trunk.", "next_sentence.pooler.": "pooler.", "pooler.": "pooler."}
ENCODER: Names = {"trunk.embedding.": "source_embedding.", "trunk.stack.": "encoder."}
DECODER: Names = {"trunk.embedding.": "target_embedding.", "trunk.stack.": "decoder."}
SIDES = {"encoder": ENCODER, "decoder": DECODER}


def with_start(recipe: Recipe) -> Recipe:
    """The recipe with the shape and, unless it names another, the tokenizer of the models that it starts from.

    Raises:
        InputError: there is no such model, or its vocabulary is not the recipe's.
    """
    if recipe.train.start is None and recipe.train.start_decoder is None:
        return recipe
    for start in starts(recipe):
        recipe = replace(recipe, model=shaped_like(start, recipe))
        if recipe.tokenizer.path is None or recipe.train.vocabulary == "keep":
            config = start.tokenizers.source.config
            path = str((start.path / "tokenizer").absolute())
            recipe = replace(recipe, tokenizer=replace(config, path=path, joint=start.tokenizers.joint))
        else:
            check_vocabulary(start, recipe)
    return recipe_from_dict(recipe_to_dict(recipe), f"the recipe, in the shape of {recipe.train.start}")


def starts(recipe: Recipe) -> Iterator[LoadedModel]:
    """The models that a recipe starts from."""
    for name in (recipe.train.start, recipe.train.start_decoder):
        if name is not None:
            yield load_model(name)


def shaped_like(start: LoadedModel, recipe: Recipe) -> ModelConfig:
    """The recipe's model in the shape of another one; the shape that the recipe itself has is for runs from scratch."""
    there = start.recipe.model
    keeps_family = there.family not in find_task(recipe.task).families
    own = OWN | (OTHER_LAYERS[there.family] | {"family"} if keeps_family else set())
    return replace(recipe.model, **{key: value for key, value in asdict(there).items() if key not in own})


def check_vocabulary(start: LoadedModel, recipe: Recipe) -> None:
    """Whether the recipe's own vocabulary can take the place of the one that a model was trained with.

    Raises:
        InputError: they differ, and `train.vocabulary` does not say what to do; or to extend would lose pieces.
    """
    path = Path(recipe.tokenizer.path or "")
    ours, theirs = TokenizerPair.load(path).source, start.tokenizers.source
    new, old = set(pieces(ours)), set(pieces(theirs))
    lost, added = sorted(old - new), sorted(new - old)
    if recipe.train.vocabulary == "extend" and lost:
        raise InputError(
            f'train.vocabulary = "extend": {path} lacks {len(lost):,} pieces of {start.path}, such as '
            f'{", ".join(lost[:5])}; add them, or set train.vocabulary = "remap" to do without their vectors'
        )
    if ours.digest != theirs.digest and recipe.train.vocabulary is None:
        raise InputError(
            f"the vocabulary of {path} is not that of {start.path}: {len(old & new):,} pieces are the same, "
            f"{len(lost):,} are only there ({', '.join(lost[:5])}), {len(added):,} only here ({', '.join(added[:5])}). "
            'Set train.vocabulary to "keep" to use that of the model; to "extend" to begin with its vectors and fresh '
            'ones for what is only here, refusing to lose any; or to "remap", which may lose some'
        )


def begin_with(recipe: Recipe, model: nn.Module, tokenizers: TokenizerPair) -> list[str]:
    """Copy weights from the models that a recipe starts from.

    Returns:
        The names of the weights that stay fresh; empty if nothing was to be copied.

    Raises:
        InputError: a model has nothing in common with this one.
    """
    copied: set[str] = set()
    for start in starts(recipe):
        names = dict(pairs_of_names(start, model))
        if not names:
            raise InputError(f"train.start = {start.path}: nothing of this model has a place in the other")
        for name, value in weights(start.model).items():
            if name in names:
                place(model.get_parameter(names[name]), value, start.tokenizers.source, tokenizers.source)
                copied.add(names[name])
    shared = {id(model.get_parameter(name)) for name in copied}
    return [name for name, parameter in model.named_parameters() if shared and id(parameter) not in shared]


def pairs_of_names(start: LoadedModel, model: nn.Module) -> Iterator[tuple[str, str]]:
    """The weights that go over: their names there and here."""
    here = dict(model.named_parameters(remove_duplicate=False))
    sizes = {len(start.tokenizers.source), len(start.tokenizers.target)}
    for name, value in weights(start.model).items():
        for there, prefix in prefixes(start, model).items():
            own = prefix + name.removeprefix(there)
            if name.startswith(there) and own in here and fits(value, here[own], sizes):
                yield name, own


def prefixes(start: LoadedModel, model: nn.Module) -> Names:
    """How names there begin, and the same weights' names here."""
    if type(start.model) is type(model):
        return ALIKE
    return TRUNK if hasattr(model, "trunk") else SIDES.get(start.recipe.model.family, ALIKE)


def fits(there: Tensor, here: Tensor, vocabularies: set[int]) -> bool:
    """Whether a weight has the right shape, but for the size of the vocabulary."""
    return there.shape == here.shape or (there.shape[1:] == here.shape[1:] and there.size(0) in vocabularies)


@torch.no_grad()
def place(parameter: Tensor, value: Tensor, there: Tokenizer, here: Tokenizer) -> None:
    """Copy a weight, or of one with a row for each piece of another vocabulary those of the same pieces."""
    if there.digest == here.digest or value.size(0) != len(there):
        parameter.copy_(value)
    else:
        old, new = (torch.tensor(side) for side in zip(*rows_of_pieces(there, here), strict=True))
        parameter[new] = value[old].to(parameter)


def rows_of_pieces(there: Tokenizer, here: Tokenizer) -> list[tuple[int, int]]:
    """The rows of the pieces that both vocabularies have."""
    places = {piece: row for row, piece in enumerate(pieces(there))}
    return [(places[piece], row) for row, piece in enumerate(pieces(here)) if piece in places]


def pieces(tokenizer: Tokenizer) -> list[str]:
    """All pieces of a vocabulary, in order."""
    return tokenizer.pieces(range(len(tokenizer)))
