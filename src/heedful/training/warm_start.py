"""Warm start: a run that starts with the weights of one or two trained models, some of which it may freeze."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from heedful.architectures import Model, weights
from heedful.checkpoint import LoadedModel, load_model
from heedful.config.families import FAMILIES
from heedful.config.load import recipe_from_dict, recipe_to_dict
from heedful.config.modalities import ImageConfig
from heedful.config.schema import ModelConfig, Recipe
from heedful.errors import InputError
from heedful.nn.dropout import Dropout
from heedful.nn.embedding import only_silences
from heedful.predictors.scorer import Standardisation
from heedful.tasks import find_task
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.wording import counted


def freeze(model: Model, recipe: Recipe) -> None:
    """Exclude the weights that `train.freeze` names from training. Modules that are frozen whole drop nothing out.

    They compute what they would compute in use, as trained weights that cannot adapt to dropout expect it.
    """
    if not recipe.train.freeze:
        return
    parameters = dict(model.named_parameters(remove_duplicate=False))
    for beginning in recipe.train.freeze:
        part = [value for name, value in parameters.items() if f"{name}.".startswith(f"{beginning}.")]
        if not part:
            parts = sorted({".".join(name.split(".")[:2]) for name in parameters})
            raise InputError(
                f'train.freeze: the name of no weight begins with "{beginning}"; the weights are those of '
                f"{', '.join(parts)}"
            )
        for value in part:
            value.requires_grad_(False)
    if is_frozen(model):
        raise InputError("train.freeze leaves nothing to train; take a part of the model out of it")
    for module in filter(is_frozen, model.modules()):
        for layer in module.modules():
            if isinstance(layer, Dropout):
                layer.p = 0.0


def is_frozen(module: nn.Module) -> bool:
    values = list(module.parameters())
    return bool(values) and not any(value.requires_grad for value in values)


PICTURE = ("channels", "patch", "stem", "class_token", "positions", "mean", "std")
LEARNED: dict[str, dict[str, tuple[str, ...]]] = {  # what an input layer was trained with; a recipe decides the rest
    "text": {},
    "image": {"image": PICTURE},
    "audio": {"audio": ("rate", "features", "window", "hop", "mels", "stem")},
    # frames and their size as well, since positions of videos are not interpolated
    "video": {"image": ("size", *PICTURE), "video": ("frames", "tubelet", "positions")},
}
READING = {"image": {"image": ("resize", "resample")}, "audio": {"audio": ("pad_seconds",)}}  # what a recipe decides
SPEECH = ("languages", "suppress", "suppress_first")  # what goes with the vocabulary of a Whisper
READS = {"text": "text", "image": "pictures", "audio": "sound", "video": "videos"}
TABLES = ("backbone.stack.positions.table.weight", "encoder.positions.table.weight")  # a row for each place in a stack
GRIDS = ("backbone.embedding.positions.", "source_embedding.positions.")  # a table for rows, and one for columns


def with_input_of(start: Recipe, recipe: Recipe) -> Recipe:
    """Give a recipe the settings that the input layer of a start model was trained with, if it reads the same.

    A model that goes on to learn texts without time stamps, which are all that a recipe can name, writes none.
    """
    if start.data.modality != recipe.data.modality:
        return recipe
    facts = {
        table: {key: getattr(getattr(start, table), key) for key in keys}
        for table, keys in LEARNED[recipe.data.modality].items()
    }
    same = recipe.train.vocabulary in (None, "keep")
    if recipe.data.modality == "audio" and FAMILIES[recipe.model.family].pairs and same:
        facts["transcribe"] = {key: getattr(start.transcribe, key) for key in SPEECH} | {"timestamps": "never"}
    return replace(recipe, **{table: replace(getattr(recipe, table), **values) for table, values in facts.items()})


def reading_note(start: Recipe, recipe: Recipe) -> str | None:
    """Say which settings read files otherwise than those that a start model learned from; None if none do.

    They are the recipe's, but the model has learned other inputs, and formats of other toolkits have a fixed way.
    """
    if start.data.modality != recipe.data.modality:
        return None
    other = [
        f"{table}.{key} = {json.dumps(there)}"
        for table, keys in READING.get(recipe.data.modality, {}).items()
        for key in keys
        if (there := getattr(getattr(start, table), key)) != getattr(getattr(recipe, table), key)
    ]
    if not other:
        return None
    return (
        f"the model that training starts from has learned with {', '.join(other)}, which this recipe does not set: set "
        "it for inputs as it knows them, and to convert the model back to the format in which it came"
    )


def resized_positions(start: Recipe, recipe: Recipe, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Fit the learned positions of a start model to the recipe: interpolated for pictures of another size."""
    size = recipe.model.learned_positions
    same = start.image.grid == recipe.image.grid and start.model.learned_positions == size
    if {start.data.modality, recipe.data.modality} != {"image"} or same:
        return {}
    tables = {name: values[name] for name in TABLES if name in values and size is not None}
    changes = {name: resized_table(tables[name], start.image, recipe.image, size or 0) for name in tables}
    for prefix in GRIDS:
        for part, count in zip(("rows", "columns"), recipe.image.grid, strict=True):
            if (name := prefix + part) in values:
                line = values[name].T[None]
                changes[name] = F.interpolate(line, count, mode="linear", align_corners=False)[0].T.contiguous()
    return changes


def resized_table(
    table: Float[Tensor, "N D"], before: ImageConfig, after: ImageConfig, size: int
) -> Float[Tensor, "N2 D"]:
    """Interpolate a table of learned positions bicubically on its grid (Dosovitskiy et al. 2021, section 3.2).

    The position of the class token stays. Rows behind those of a picture, which nothing reads, become zeros.
    """
    first = int(before.class_token)
    target = table.new_zeros(size, table.size(1))
    if before.grid == after.grid:
        target[: after.tokens] = table[: after.tokens]
    else:
        grid = table[first : before.tokens].unflatten(0, before.grid).permute(2, 0, 1)[None]  # (1, D, rows, columns)
        grid = F.interpolate(grid, after.grid, mode="bicubic", align_corners=False)[0]
        target[:first], target[first : after.tokens] = table[:first], grid.permute(1, 2, 0).flatten(0, 1)
    return target


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
    """Give a recipe the shape and, unless it names another, the tokenizer of the models of its warm start."""
    # The shape of the model follows its start models; the recipe keeps what only training depends on.
    models = list(starts(recipe))
    if not models:
        return recipe
    for start in models:
        recipe = with_input_of(start.recipe, recipe)
        recipe = replace(recipe, model=shaped_like(start, recipe))
    for start in models:
        # after another start model has set the shape
        here, there = asdict(recipe.model), asdict(shaped_like(start, recipe))
        if other := [f"{key} is {there[key]!r} and {here[key]!r}" for key in here if here[key] != there[key]]:
            raise InputError(
                f"{start.path} and {recipe.train.start_decoder} cannot be halves of one model: {'; '.join(other)}; "
                "take models of one shape"
            )
        check_length(start, recipe)
    of_text = [start for start in models if any(start.tokenizers.sizes)]
    if of_text and (recipe.tokenizer.path is None or recipe.train.vocabulary == "keep"):
        config = of_text[0].tokenizers.source.config
        path = str((of_text[0].path / "tokenizer").absolute())
        recipe = replace(recipe, tokenizer=replace(config, path=path, joint=of_text[0].tokenizers.joint))
    for start in of_text:
        check_vocabulary(start, recipe)
    return recipe_from_dict(recipe_to_dict(recipe), f"the recipe, in the shape of {recipe.train.start}")


def starts(recipe: Recipe) -> Iterator[LoadedModel]:
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
    try:
        return load_model(folder)
    except InputError as error:
        raise InputError(f"{key}: {error}") from error


def check_family(start: LoadedModel, recipe: Recipe) -> None:
    """Check that a model can begin the model of a recipe's task: as a whole, or as encoder or decoder."""
    there, here = start.recipe.data.modality, recipe.data.modality
    if there != here:
        raise InputError(
            f'train.start = {start.path}: this model reads {READS[there]}, and one for the task "{recipe.task}" reads '
            f"{READS[here]}; start from one of its own kind, or leave train.start out"
        )
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
    return any(FAMILIES[family].pairs for family in find_task(recipe.task).families)


def shaped_like(start: LoadedModel, recipe: Recipe) -> ModelConfig:
    """Replace the shape of the recipe's model, which is meant for training from scratch, by that of a start model."""
    there = asdict(start.recipe.model)
    becomes_half = there["family"] not in find_task(recipe.task).families
    own = OWN | (HALF[there["family"]] if becomes_half else set())
    shape = {key: value for key, value in there.items() if key not in own}

    # Images may have more patches than positions were learned for. Where a model of images becomes an encoder, the text
    # that the decoder writes may need more positions, too: there are as many as the recipe says.
    learned = start.recipe.model.learned_positions
    if learned is not None and {recipe.data.modality, start.recipe.data.modality} == {"image"}:
        is_half = FAMILIES[recipe.model.family].pairs and not FAMILIES[start.recipe.model.family].pairs
        shape["max_positions"] = max(learned, recipe.image.tokens, recipe.model.max_positions if is_half else 0)
    return replace(recipe.model, **shape)


def check_length(start: LoadedModel, recipe: Recipe) -> None:
    """Check that the start model's learned positions suffice for the texts or audio of the recipe."""
    learned, audio, length = recipe.model.learned_positions, recipe.audio, recipe.data.max_length
    if recipe.data.modality == "audio" and learned is not None and audio.longest > learned:
        longest = learned * audio.stride * audio.hop / audio.rate
        raise InputError(
            f"{start.path} has learned {learned} positions, and the recipe reads sound of {audio.longest}: set "
            f"audio.max_seconds = {longest:g}, or start from a model that was trained with longer sound"
        )
    if recipe.data.modality != "text":
        return
    if not FAMILIES[recipe.model.family].pairs and learned is not None and length > learned:
        raise InputError(
            f"{start.path} has learned {learned} positions, and the recipe reads texts of data.max_length "
            f"= {length} tokens: set data.max_length = {learned}, which cuts off the rest of longer texts, "
            "or start from a model that was trained with more of them"
        )


def check_vocabulary(start: LoadedModel, recipe: Recipe) -> None:
    """Check that the recipe's vocabulary can replace the one that a start model was trained with."""
    path = Path(recipe.tokenizer.path or "")
    here = TokenizerPair.load(path)
    sides = FAMILIES[recipe.model.family].sides  # source and target, of which one half of a model has only one
    for side in {"encoder": sides[:1], "decoder": sides[-1:]}.get(start.model.side, sides):
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


class Transfer(NamedTuple):
    """Weights to copy from a start model to the new model: their names in both models, and their values."""

    start: LoadedModel
    names: dict[str, str]
    values: dict[str, Tensor]
    note: str  # what was changed in the values, for the user; empty: nothing


def transfers(recipe: Recipe, model: Model) -> list[Transfer]:
    """Find the weights to copy from each model of a recipe's warm start; those of `model` may be without values."""
    all_transfers, parameters = [], set()
    for start in starts(recipe):
        values = values_of(start, model)
        positions = resized_positions(start.recipe, recipe, values)
        values |= positions
        note = ""
        if positions and start.recipe.image.grid != recipe.image.grid:
            (rows, columns), (more, wider) = start.recipe.image.grid, recipe.image.grid
            note = f"learned positions of {rows} x {columns} patches are interpolated to {more} x {wider}"
        names = pairs_of_names(start, model, values)
        values |= standardised_head(start.recipe, recipe, values)
        if start.recipe.data.labels != recipe.data.labels and not model.predicts_tokens:
            names = {there: here for there, here in names.items() if not here.startswith(HEAD)}
        if not names:
            raise InputError(f"train.start = {start.path}: nothing of this model has a place in the other")
        # Tied weights are one parameter with several names, which may have only one origin.
        for there, here in names.items():
            parameter = id(model.get_parameter(here))
            if parameter in parameters:
                raise InputError(
                    f"{start.path}: its {there} would replace what {here} has begun with; model.tie = "
                    f'"{recipe.model.tie}" makes one matrix of several: set it to "output", or to "none"'
                )
            parameters.add(parameter)
        all_transfers.append(Transfer(start, names, values, note))
    return all_transfers


def copy_start_weights(
    recipe: Recipe, model: Model, tokenizers: TokenizerPair, say: Callable[[str], object] = lambda _: None
) -> list[str]:
    """Copy weights to a model from the start models of a recipe; return the names of those that stay fresh.

    `say` is called with sentences about weights that are changed on the way, and inputs that are read otherwise.
    """
    replaced: set[int] = set()
    reading: set[str] = set()
    for transfer in transfers(recipe, model):
        if note := reading_note(transfer.start.recipe, recipe):
            reading.add(note)
        for there, here in transfer.names.items():
            parameter, value = model.get_parameter(here), transfer.values[there]
            with torch.no_grad():
                if side := model.token_rows().get(here):  # only the rows of pieces that both vocabularies have
                    rows = rows_of_pieces(transfer.start.tokenizers, tokenizers, side)
                    old, new = (torch.tensor(each) for each in zip(*rows, strict=True))
                    parameter[new] = value[old].to(parameter)
                else:
                    parameter.copy_(value)
            replaced.add(id(parameter))
        if transfer.note:
            say(transfer.note)
    for note in sorted(reading):
        say(note)
    return [name for name, parameter in model.named_parameters() if replaced and id(parameter) not in replaced]


def silences(recipe: Recipe) -> tuple[str, ...]:
    """The output bias of the start model of a recipe, if it only keeps tokens from being said and is not frozen yet."""
    if recipe.train.start is None or OUTPUT_BIAS in recipe.train.freeze:
        return ()
    start = load_model(recipe.train.start)
    bias = weights(start.model).get(OUTPUT_BIAS)
    goes_over = start.recipe.task == recipe.task and getattr(recipe.model, "output_bias", False)
    return (OUTPUT_BIAS,) if bias is not None and goes_over and only_silences(bias) else ()


def start_line(recipe: Recipe, model: Model, fresh: Sequence[str]) -> str:
    """Say which weights of a model are those of the models of a warm start; empty without a warm start."""
    models = " and ".join(path for path in (recipe.train.start, recipe.train.start_decoder) if path is not None)
    if not models:
        return ""
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    names = [name for name in sizes if name not in fresh]
    parts = ", ".join(dict.fromkeys(name.partition(".")[0] for name in names))
    count = f"{sum(sizes[name] for name in names):,} of {sum(sizes.values()):,} parameters"
    return f"begins with the weights of {models}: {parts} ({count}); fresh: {', '.join(fresh) or 'none'}"


def pairs_of_names(start: LoadedModel, model: Model, values: dict[str, Tensor]) -> dict[str, str]:
    """Pair the names of weights in the start model with the names of the same weights in the new model."""
    here, names, rows = dict(model.named_parameters(remove_duplicate=False)), {}, model.token_rows()
    for name, value in values.items():
        for there, prefix in model.warm_start_names(start.model).items():
            own = prefix + name.removeprefix(there)
            if not name.startswith(there) or own not in here:
                continue
            # tables of tokens may have another number of rows
            if value.shape[1:] == here[own].shape[1:] and (own in rows or value.shape == here[own].shape):
                names[name] = own
    return names


def values_of(start: LoadedModel, model: Model) -> dict[str, Tensor]:
    """The weights of a model, as another one can use them.

    An encoder-decoder has no segments: the vector of the first segment is added to the position vectors, which are
    added to all tokens, too.
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


def rows_of_pieces(there: TokenizerPair, here: TokenizerPair, side: str) -> list[tuple[int, int]]:
    """List the rows, in the old and the new vocabulary, of the pieces that both have on a side."""
    old, new = getattr(there, side), getattr(here, side)
    if old.digest == new.digest:
        return [(row, row) for row in range(len(new))]
    places = {text: row for row, text in enumerate(old.texts(range(len(old))))}
    return [(places[text], row) for row, text in enumerate(new.texts(range(len(new)))) if text in places]
