"""Warm start: a run that begins with the weights of one or two trained models.

Weights that both models have are copied; the rest, such as the head of another task, is freshly initialised. The
backbone of a masked language model can become the encoder of a translator, that of a language model its decoder (Rothe
et al. 2020); and the encoder of a translator, or of a speech recogniser, the backbone of a classifier.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from heedful.checkpoint import LoadedModel, load_model
from heedful.config.families import FAMILIES
from heedful.config.load import recipe_from_dict, recipe_to_dict
from heedful.config.schema import ModelConfig, Recipe
from heedful.errors import InputError
from heedful.models import Model, weights
from heedful.nn.embedding import only_silences
from heedful.predict.scorer import Standardisation
from heedful.tasks import find_task
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.train.warm_start_media import (
    check_modality,
    check_seconds,
    more_positions,
    reading_note,
    resized_positions,
    told,
    with_input_of,
)
from heedful.wording import counted

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
HALF = {  # and further keys, where a model becomes the encoder or decoder of another, or its encoder another's backbone
    "encoder": {"family", "tie", "segments", "decoder_layers"},
    "decoder": {"family", "tie", "segments", "encoder_layers"},
    "encoder_decoder": {"family", "tie", "segments", "pooler", "decoder_layers", "max_target_positions"},
}
HEAD = "output."  # of a classifier: with other classes it is a new one
OUTPUT_BIAS = "output.bias"
SEGMENTS, POSITIONS = "backbone.segments.table.weight", "backbone.stack.positions.table.weight"


def with_warm_start(recipe: Recipe) -> Recipe:
    """Give a recipe the shape and, unless it names another, the tokenizer of the models of its warm start.

    Raises:
        InputError: there is no such model, its vocabulary is not the recipe's, or two models do not go together.
    """
    found = list(starts(recipe))
    if not found:
        return recipe
    for start in found:
        recipe = with_input_of(start.recipe, recipe)
        recipe = replace(recipe, model=shaped_like(start, recipe))
    for start in found:
        check_shape(start, recipe)
        check_length(start, recipe)
    of_text = [start for start in found if any(start.tokenizers.sizes)]
    if of_text and (recipe.tokenizer.path is None or recipe.train.vocabulary == "keep"):
        config = of_text[0].tokenizers.source.config
        path = str((of_text[0].path / "tokenizer").absolute())
        recipe = replace(recipe, tokenizer=replace(config, path=path, joint=of_text[0].tokenizers.joint))
    for start in of_text:
        check_vocabulary(start, recipe)
    return recipe_from_dict(recipe_to_dict(recipe), f"the recipe, in the shape of {recipe.train.start}")


def starts(recipe: Recipe) -> Iterator[LoadedModel]:
    """Load the models that a recipe's warm start begins from.

    Raises:
        InputError: a model cannot be loaded or is of a family that has no place in the recipe's model; or
            `train.start_decoder` is no language model, or the recipe's model has no decoder to begin.
    """
    if recipe.train.start is not None:
        start = loaded("train.start", recipe.train.start)
        check_family(start, recipe)
        yield start
    if recipe.train.start_decoder is not None:
        start = loaded("train.start_decoder", recipe.train.start_decoder)
        if not (FAMILIES[start.recipe.model.family].causal and takes_pairs(recipe)):
            raise InputError(
                f"train.start_decoder = {start.path}: a language model begins the decoder of an encoder-decoder, and "
                f'this is a model of family "{start.recipe.model.family}" for the task "{recipe.task}"; use train.start'
            )
        yield start


def loaded(key: str, folder: str) -> LoadedModel:
    """Load the model that a key of the recipe names.

    Raises:
        InputError: it cannot be loaded; the message begins with the key.
    """
    try:
        return load_model(folder)
    except InputError as error:
        raise InputError(f"{key}: {error}") from error


def check_family(start: LoadedModel, recipe: Recipe) -> None:
    """Check that a model can begin the model of a recipe's task: as a whole, or as encoder or decoder.

    Raises:
        InputError: the model is of another family, or reads something else, such as pictures.
    """
    check_modality(start.recipe, recipe, f"train.start = {start.path}")
    architecture = start.recipe.model.architecture
    if architecture != recipe.model.architecture:
        raise InputError(
            f'train.start = {start.path}: this is a model with model.architecture = "{architecture}", and the recipe '
            f'has "{recipe.model.architecture}"; start from one of its own architecture, or leave train.start out'
        )
    family, families = start.recipe.model.family, find_task(recipe.task).families
    begins = family in HALF if takes_pairs(recipe) else family == "encoder_decoder" and recipe.model.family == "encoder"
    if family not in families and not begins:
        raise InputError(
            f'train.start = {start.path}: this is a model of family "{family}" for the task "{start.recipe.task}", and '
            f'the task "{recipe.task}" is learned by a model of family {" or ".join(families)}; start from one of '
            "those, or leave train.start out"
        )


def takes_pairs(recipe: Recipe) -> bool:
    """True if the task of a recipe is learned by an encoder-decoder."""
    return any(FAMILIES[family].pairs for family in find_task(recipe.task).families)


def shaped_like(start: LoadedModel, recipe: Recipe) -> ModelConfig:
    """Replace the shape of the recipe's model, which is meant for training from scratch, by that of a start model."""
    there = asdict(start.recipe.model)
    becomes_half = there["family"] not in find_task(recipe.task).families
    own = OWN | (HALF[there["family"]] if becomes_half else set())
    shape = {key: value for key, value in there.items() if key not in own}
    return replace(recipe.model, **shape | more_positions(start.recipe, recipe))


def check_shape(start: LoadedModel, recipe: Recipe) -> None:
    """Check that the recipe's model has the shape of a start model, after another start model has set the shape.

    Raises:
        InputError: the shapes differ; all differences are listed.
    """
    here, there = asdict(recipe.model), asdict(shaped_like(start, recipe))
    other = [f"{key} is {there[key]!r} and {here[key]!r}" for key in here if here[key] != there[key]]
    if other:
        raise InputError(
            f"{start.path} and {recipe.train.start_decoder} cannot be halves of one model: {'; '.join(other)}; "
            "take models of one shape"
        )


def check_length(start: LoadedModel, recipe: Recipe) -> None:
    """Check that the start model's learned positions suffice for the texts or sounds of the recipe.

    Raises:
        InputError: The model has learned fewer positions.
    """
    check_seconds(recipe, str(start.path))
    if recipe.data.modality != "text":
        return
    learned, length = recipe.model.learned_positions, recipe.data.max_length
    if not FAMILIES[recipe.model.family].pairs and learned is not None and length > learned:
        raise InputError(
            f"{start.path} has learned {learned} positions, and the recipe reads texts of data.max_length "
            f"= {length} tokens: set data.max_length = {learned}, which cuts off the rest of longer texts, "
            "or start from a model that was trained with more of them"
        )


def sides(start: LoadedModel, recipe: Recipe) -> tuple[str, ...]:
    """List the sides of the recipe's vocabulary (source, target) that a start model has as well."""
    own = FAMILIES[recipe.model.family].sides
    return {"encoder": own[:1], "decoder": own[-1:]}.get(start.model.side, own)


def check_vocabulary(start: LoadedModel, recipe: Recipe) -> None:
    """Check that the recipe's vocabulary can replace the one that a start model was trained with.

    Raises:
        InputError: the vocabularies differ, and `train.vocabulary` does not say what to do, or "extend" loses pieces.
    """
    path = Path(recipe.tokenizer.path or "")
    here = TokenizerPair.load(path)
    for side in sides(start, recipe):
        ours, theirs = getattr(here, side), getattr(start.tokenizers, side)
        new, old = (set(tokenizer.pieces(range(len(tokenizer)))) for tokenizer in (ours, theirs))
        lost, added = sorted(old - new), sorted(new - old)
        if recipe.train.vocabulary == "extend" and lost:
            raise InputError(
                f'train.vocabulary = "extend": {path} lacks {counted(len(lost), "pieces")} of {start.path}, such as '
                f'{", ".join(lost[:5])}; add them, or set train.vocabulary = "remap" to do without their vectors'
            )
        if ours.digest != theirs.digest and recipe.train.vocabulary in (None, "keep"):
            raise InputError(
                f"the vocabulary of {path} is not that of {start.path}: {len(old & new):,} pieces are the same, "
                f"{len(lost):,} are only there ({', '.join(lost[:5])}), {len(added):,} only here "
                f'({", ".join(added[:5])}). Set train.vocabulary to "keep" to use that of the model; to "extend" to '
                'begin with its vectors and fresh ones for what is only here, refusing to lose any; or to "remap", '
                "which may lose some"
            )


@dataclass(frozen=True)
class Transfer:
    """Weights to copy from a start model to the new model: their names in both models, and their values."""

    start: LoadedModel
    names: dict[str, str]
    values: dict[str, Tensor]
    note: str  # what was changed in the values, for the user; empty: nothing


def transfers(recipe: Recipe, model: Model) -> list[Transfer]:
    """Find the weights to copy from each model of a recipe's warm start.

    Args:
        recipe: the recipe, which names the start models.
        model: the recipe's own model; its weights may be without values, on the meta device.

    Raises:
        InputError: a start model has nothing in common with this one, or a weight would be copied twice.
    """
    found, taken = [], set()
    for start in starts(recipe):
        values = values_of(start, model)
        resized = resized_positions(start.recipe, recipe, values)
        values |= resized
        names = pairs_of_names(start, model, values)
        values |= standardised_head(start.recipe, recipe, values)
        if start.recipe.data.labels != recipe.data.labels and not model.predicts_tokens:
            names = {there: here for there, here in names.items() if not here.startswith(HEAD)}
        if not names:
            raise InputError(f"train.start = {start.path}: nothing of this model has a place in the other")
        for there, here in names.items():
            parameter = id(model.get_parameter(here))
            if parameter in taken:
                raise InputError(
                    f"{start.path}: its {there} would replace what {here} has begun with; model.tie = "
                    f'"{recipe.model.tie}" makes one matrix of several: set it to "output", or to "none"'
                )
            taken.add(parameter)
        found.append(Transfer(start, names, values, told(start.recipe, recipe) if resized else ""))
    return found


def copy_start_weights(
    recipe: Recipe, model: Model, tokenizers: TokenizerPair, tell: Callable[[str], object] = lambda _: None
) -> list[str]:
    """Copy weights to a model from the start models of a recipe (warm start).

    Args:
        recipe: the recipe, which names the start models.
        model: the recipe's own model.
        tokenizers: its tokenizers.
        tell: called with sentences about weights that are changed on the way, and inputs that are read otherwise.

    Returns:
        The names of the weights that stay freshly initialised; empty if nothing was to be copied.

    Raises:
        InputError: under the same conditions as `transfers`.
    """
    copied: set[int] = set()
    reading: set[str] = set()
    for transfer in transfers(recipe, model):
        if note := reading_note(transfer.start.recipe, recipe):
            reading.add(note)
        for there, here in transfer.names.items():
            parameter = model.get_parameter(here)
            side = model.token_rows().get(here)
            rows = rows_of_pieces(transfer.start.tokenizers, tokenizers, side) if side else None
            place(parameter, transfer.values[there], rows)
            copied.add(id(parameter))
        if transfer.note:
            tell(transfer.note)
    for note in sorted(reading):
        tell(note)
    return [name for name, parameter in model.named_parameters() if copied and id(parameter) not in copied]


def silences(recipe: Recipe) -> tuple[str, ...]:
    """The output bias of the start model of a recipe, if it only keeps tokens from being said and is not frozen yet."""
    if recipe.train.start is None or OUTPUT_BIAS in recipe.train.freeze:
        return ()
    start = load_model(recipe.train.start)
    bias = weights(start.model).get(OUTPUT_BIAS)
    goes_over = start.recipe.task == recipe.task and getattr(recipe.model, "output_bias", False)
    return (OUTPUT_BIAS,) if bias is not None and goes_over and only_silences(bias) else ()


def start_line(recipe: Recipe, model: Model, fresh: Sequence[str]) -> str:
    """Say which weights of a model are those of the models of a warm start; empty without a warm start.

    Args:
        recipe: the recipe, which names the start models.
        model: the recipe's own model.
        fresh: the names of the weights that are freshly initialised, as `copy_start_weights` returns them.
    """
    named = " and ".join(path for path in (recipe.train.start, recipe.train.start_decoder) if path is not None)
    if not named:
        return ""
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    taken = [name for name in sizes if name not in fresh]
    parts = ", ".join(dict.fromkeys(name.partition(".")[0] for name in taken))
    count = f"{sum(sizes[name] for name in taken):,} of {sum(sizes.values()):,} parameters"
    return f"begins with the weights of {named}: {parts} ({count}); fresh: {', '.join(fresh) or 'none'}"


def pairs_of_names(start: LoadedModel, model: Model, values: dict[str, Tensor]) -> dict[str, str]:
    """Pair the names of weights in the start model with the names of the same weights in the new model."""
    here, names, rows = dict(model.named_parameters(remove_duplicate=False)), {}, model.token_rows()
    for name, value in values.items():
        for there, prefix in model.warm_start_names(start.model).items():
            own = prefix + name.removeprefix(there)
            if name.startswith(there) and own in here and fits(value, here[own], of_tokens=own in rows):
                names[name] = own
    return names


def values_of(start: LoadedModel, model: Model) -> dict[str, Tensor]:
    """The weights of a model, as another one can use them.

    An encoder-decoder has no segments: the vector of the first segment is added to the position vectors, which are
    added to all tokens, too.

    Raises:
        InputError: there is no table of learned positions to add the segment vector to.
    """
    values = weights(start.model)
    if SEGMENTS in values and not model.has_segments:
        if start.recipe.model.learned_positions is None:
            raise InputError(
                f"{start.path}: its vectors of segments have no place in a model without segments but in learned "
                f'positions, and it has positions = "{start.recipe.model.positions}"; take one with segments = 0'
            )
        values[POSITIONS] = values[POSITIONS] + values[SEGMENTS][0]
    return values


def standardised_head(start: Recipe, recipe: Recipe, values: dict[str, Tensor]) -> dict[str, Tensor]:
    """The output layer of a regression that learned numbers as they are, as one of standardised numbers.

    Its predictions stay the same. One that learned standardised numbers is taken as it is: numbers in another unit, or
    from another range, are predicted from the start.
    """
    labels, learned = Standardisation.of(recipe.data), Standardisation.of(start.data)
    if recipe.task != start.task or recipe.data.label_scale is None or learned != Standardisation():
        return {}
    bias = labels.standardised(values[f"{HEAD}bias"])
    return {f"{HEAD}weight": values[f"{HEAD}weight"] / labels.scale, f"{HEAD}bias": bias}


def fits(there: Tensor, here: Tensor, *, of_tokens: bool) -> bool:
    """True if a weight has the right shape to be copied; with `of_tokens` the size of the vocabulary may differ."""
    return there.shape[1:] == here.shape[1:] and (of_tokens or there.shape == here.shape)


@torch.no_grad()
def place(parameter: Tensor, value: Tensor, rows: list[tuple[int, int]] | None) -> None:
    """Copy a weight of a start model into a parameter, or only some of its rows."""
    if rows is None:
        parameter.copy_(value)
    else:
        there, here = (torch.tensor(side) for side in zip(*rows, strict=True))
        parameter[here] = value[there].to(parameter)


def rows_of_pieces(there: TokenizerPair, here: TokenizerPair, side: str) -> list[tuple[int, int]]:
    """List the rows, in the old and the new vocabulary, of the pieces that both have on a side."""
    old, new = getattr(there, side), getattr(here, side)
    if old.digest == new.digest:
        return [(row, row) for row in range(len(new))]
    places = {text: row for row, text in enumerate(texts(old))}
    return [(places[text], row) for row, text in enumerate(texts(new)) if text in places]


def texts(tokenizer: Tokenizer) -> list[str]:
    """List the texts of all pieces of a tokenizer's vocabulary, in order."""
    return tokenizer.texts(range(len(tokenizer)))
