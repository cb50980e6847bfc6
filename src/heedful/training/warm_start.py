"""Warm starts: runs that start with the weights of one or two trained models, and may freeze some of them."""

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from heedful.architectures import Model, weights
from heedful.checkpoint import LoadedModel, load_model
from heedful.checkpoint.hub import pinned
from heedful.config.families import FAMILIES
from heedful.config.keys import KEYS
from heedful.config.load import recipe_from_dict, recipe_to_dict
from heedful.config.modalities import ImageConfig
from heedful.config.schema import ModelConfig, Recipe, TrainConfig
from heedful.errors import InputError
from heedful.nn.dropout import Dropout
from heedful.nn.embedding import only_excludes_tokens
from heedful.nn.lora import add_updates, weights_below
from heedful.nn.meta_device import meta_device
from heedful.predictors.scorer import Standardisation
from heedful.tasks import find_task
from heedful.tasks.model_size import SizeOnly, vocabulary_sizes
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.training.resume import OUTPUT_BIAS
from heedful.wording import counted

# Keys of [image], [audio] and [video] that are taken from the start model, whose input layer depends on them.
IMAGE_LAYER = ("channels", "patch", "stem", "class_token", "positions", "mean", "std")
INPUT_LAYER: dict[str, dict[str, tuple[str, ...]]] = {
    "text": {},
    "image": {"image": IMAGE_LAYER},
    "audio": {"audio": ("rate", "features", "window", "hop", "mels", "stem")},
    # Also the size and the number of frames, since the positions of videos are not interpolated.
    "video": {"image": ("size", *IMAGE_LAYER), "video": ("frames", "tubelet", "positions")},
}
PREPROCESSING = {"image": {"image": ("resize", "resample")}, "audio": {"audio": ("pad_seconds",)}}
WHISPER_TOKENS = ("languages", "suppress", "suppress_first")  # keys of [transcribe] that depend on the vocabulary
INPUT_NAMES = {"text": "text", "image": "images", "audio": "audio", "video": "videos"}

# Keys of [model] that are always taken from the recipe. RECIPE_KEYS_OF_HALF adds more if the start model becomes the
# encoder or decoder of the new model, or if its encoder becomes the new model's backbone.
RECIPE_KEYS = {
    "dropout",
    "attention_dropout",
    "activation_dropout",
    "init",
    "pooling",
    "source_vectors",
    "target_vectors",
    "freeze_vectors",
}
RECIPE_KEYS_OF_HALF = {
    "encoder": {"family", "tie", "segments", "decoder_layers"},
    "decoder": {"family", "tie", "segments", "encoder_layers"},
    "encoder_decoder": {"family", "tie", "segments", "pooler", "decoder_layers", "max_target_positions"},
}

# Weight names
HEAD = "output."  # the output layer, which is not copied to a classifier with different classes
SEGMENTS, POSITIONS = "backbone.segments.table.weight", "backbone.stack.positions.table.weight"
POSITION_TABLES = (POSITIONS, "encoder.positions.table.weight")  # a row for each position in a stack
POSITION_GRIDS = ("backbone.embedding.positions.", "source_embedding.positions.")  # one table for rows, one for columns


def freeze(model: Model, recipe: Recipe) -> None:
    """Exclude the weights in `train.freeze` from training, and turn off dropout in frozen modules.

    Frozen weights cannot adapt to dropout, so frozen modules behave in training as they do in inference.
    """
    if not recipe.train.freeze:
        return
    # Tied weights have several names, and a recipe may use any of these to freeze them.
    parameters = dict(model.named_parameters(remove_duplicate=False))
    for name in weights_below("train.freeze", recipe.train.freeze, parameters):
        parameters[name].requires_grad_(False)
    if is_frozen(model):
        raise InputError("train.freeze leaves nothing to train; list fewer parts of the model")
    for module in filter(is_frozen, model.modules()):
        for layer in module.modules():
            if isinstance(layer, Dropout):
                layer.p = 0.0


def add_lora(model: Model, recipe: Recipe, fresh: Sequence[str]) -> Recipe:
    """Add LoRA updates to a model if the recipe has `train.lora`, and freeze the weights of the start model.

    The weights in `train.lora.also` and `fresh` are trained directly. Returns the recipe with the names in `fresh`
    added to `train.lora.also`.
    """
    if recipe.train.lora is None:
        return recipe
    lora = replace(recipe.train.lora, also=tuple(dict.fromkeys((*recipe.train.lora.also, *fresh))))
    add_updates(model, lora)
    return replace(recipe, train=replace(recipe.train, lora=lora))


def with_lora(recipe: Recipe) -> Recipe:
    """Return a LoRA recipe as training resolves it; return any other recipe unchanged.

    The resolved recipe has the shape of its start model, and the names of fresh weights in `train.lora.also`.
    """
    if recipe.train.lora is None:
        return recipe
    recipe = with_warm_start(recipe)
    tokenizers = TokenizerPair(*map(SizeOnly, vocabulary_sizes(recipe)))
    with meta_device():
        model = find_task(recipe.task).build(recipe, tokenizers)
    return add_lora(model, recipe, fresh_weights(model, transfers(recipe, model)))


def is_frozen(module: nn.Module) -> bool:
    values = list(module.parameters())
    return bool(values) and not any(value.requires_grad for value in values)


def with_warm_start(recipe: Recipe) -> Recipe:
    """Return a recipe with the shape, input settings and tokenizer of the models that it starts from.

    The recipe's own tokenizer, if any, is kept unless `train.vocabulary` is "keep". The name of a model on the Hub is
    pinned to a commit, so that a resumed run starts from the same weights.
    """
    starts = {key: pinned(name) for key in ("start", "start_decoder") if (name := getattr(recipe.train, key))}
    recipe = replace(recipe, train=replace(recipe.train, **starts))
    models = list(start_models(recipe))
    if not models:
        return recipe
    for start in models:
        recipe = with_input_of(start.recipe, recipe)
        recipe = replace(recipe, model=shaped_like(start, recipe))
    for start in models:
        # Each model must have the shape that the other one has set.
        ours, theirs = asdict(recipe.model), asdict(shaped_like(start, recipe))
        if conflicts := [f"{key} is {theirs[key]!r} or {ours[key]!r}" for key in ours if ours[key] != theirs[key]]:
            raise InputError(
                f"{start.path} and {recipe.train.start_decoder} cannot be halves of one model: {'; '.join(conflicts)}; "
                "use models with the same shape"
            )
        check_length(start, recipe)
    of_text = [start for start in models if any(start.tokenizers.sizes)]
    if of_text and (recipe.tokenizer.path is None or recipe.train.vocabulary == "keep"):
        # BPE dropout is a setting of training, not of the vocabulary, so the recipe decides it.
        config = replace(of_text[0].tokenizers.source.config, dropout=recipe.tokenizer.dropout)
        path = str((of_text[0].path / "tokenizer").absolute())
        recipe = replace(recipe, tokenizer=replace(config, path=path, joint=of_text[0].tokenizers.joint))
    for start in of_text:
        check_vocabulary(start, recipe)
    # Checked again: the shape of a start model may contradict other settings of the recipe.
    return recipe_from_dict(recipe_to_dict(recipe), f"the recipe, in the shape of {recipe.train.start}")


def start_models(recipe: Recipe) -> Iterator[LoadedModel]:
    """Yield the loaded models of a warm start, after checking that the family of each fits the task."""
    train = recipe.train
    if train.start is not None:
        start = load_start(KEYS.train.start, train.start)
        check_family(start, recipe)
        yield with_chosen_layers(start, train)
    if train.start_decoder is not None:
        start = load_start(KEYS.train.start_decoder, train.start_decoder)
        if not (FAMILIES[start.recipe.model.family].causal and takes_pairs(recipe)):
            raise InputError(
                f"train.start_decoder = {start.path}: only a language model can initialise the decoder of an "
                f'encoder-decoder; this model is of family "{start.recipe.model.family}", and the task is '
                f'"{recipe.task}"; use train.start'
            )
        yield start


def load_start(key: object, path: str) -> LoadedModel:
    """Load a start model; an error names the key of the recipe that names the model."""
    try:
        return load_model(path)
    except InputError as error:
        raise InputError(f"{key}: {error}") from error


def with_chosen_layers(start: LoadedModel, train: TrainConfig) -> LoadedModel:
    """Return a start model with the layers that a recipe chooses.

    With fewer layers, a smaller model is fine-tuned (Shleifer & Rush 2020); with repeated layers, a deeper one (Gong et
    al. 2019).
    """
    shape = start.recipe.model
    stacks = {stack.name: stack.stack for stack in start.model.named_stacks()}
    for side, name in (("encoder", "enc"), ("decoder", "dec")):
        key, blocks = f"start_{side}_layers", stacks[name].blocks if name in stacks else []
        numbers = getattr(train, key)
        if not numbers:
            continue
        if max(numbers) > len(blocks):
            raise InputError(
                f"train.{key} = {list(numbers)}: {start.path} has {counted(len(blocks), f'{side} layers')} to "
                "choose from, numbered from 1"
            )
        # Copies: a layer that is chosen twice must not share its weights.
        stacks[name].blocks = nn.ModuleList(copy.deepcopy(blocks[number - 1]) for number in numbers)
        shape = replace(shape, **{f"{side}_layers": len(numbers)})
    return replace(start, recipe=replace(start.recipe, model=shape))


def check_family(start: LoadedModel, recipe: Recipe) -> None:
    """Check that a start model can initialise the model for a recipe: all of it, or its encoder or decoder."""
    theirs, ours = start.recipe.data.modality, recipe.data.modality
    if theirs != ours:
        raise InputError(
            f'train.start = {start.path}: this model reads {INPUT_NAMES[theirs]}, but one for the task "{recipe.task}" '
            f"reads {INPUT_NAMES[ours]}; start from one that reads {INPUT_NAMES[ours]}, or leave train.start out"
        )
    architecture = start.recipe.model.architecture
    if architecture != recipe.model.architecture:
        raise InputError(
            f'train.start = {start.path}: this is a model with model.architecture = "{architecture}", but the recipe '
            f'has "{recipe.model.architecture}"; start from a model of that architecture, or leave train.start out'
        )
    family, families = start.recipe.model.family, find_task(recipe.task).spec.families
    if takes_pairs(recipe):
        begins_half = family in RECIPE_KEYS_OF_HALF
    else:
        begins_half = family == "encoder_decoder" and recipe.model.family == "encoder"
    if family not in families and not begins_half:
        raise InputError(
            f'train.start = {start.path}: this is a model of family "{family}" for the task "{start.recipe.task}", but '
            f'the task "{recipe.task}" needs a model of family {" or ".join(families)}; start from one of '
            "those, or leave train.start out"
        )


def takes_pairs(recipe: Recipe) -> bool:
    return any(FAMILIES[family].pairs for family in find_task(recipe.task).spec.families)


def with_input_of(start: Recipe, recipe: Recipe) -> Recipe:
    """Return a recipe with the settings of a start model's input layer; with a different modality, change nothing.

    A speech recognition model with the same vocabulary also keeps its languages and suppressed tokens, but generates no
    timestamps, because the texts of a recipe have none.
    """
    if start.data.modality != recipe.data.modality:
        return recipe
    tables = {
        table: {key: getattr(getattr(start, table), key) for key in keys}
        for table, keys in INPUT_LAYER[recipe.data.modality].items()
    }
    same_vocabulary = recipe.train.vocabulary in (None, "keep")
    if recipe.data.modality == "audio" and FAMILIES[recipe.model.family].pairs and same_vocabulary:
        tokens = {key: getattr(start.transcribe, key) for key in WHISPER_TOKENS}
        tables["transcribe"] = tokens | {"timestamps": "never"}
    return replace(recipe, **{table: replace(getattr(recipe, table), **values) for table, values in tables.items()})


def shaped_like(start: LoadedModel, recipe: Recipe) -> ModelConfig:
    """Return the model settings of a recipe, with those that determine the shape taken from a start model."""
    start_settings = asdict(start.recipe.model)
    becomes_half = start_settings["family"] not in find_task(recipe.task).spec.families
    own = RECIPE_KEYS | (RECIPE_KEYS_OF_HALF[start_settings["family"]] if becomes_half else set())
    shape = {key: value for key, value in start_settings.items() if key not in own}

    # Images may have more patches than learned positions. If an image model becomes an encoder, the text that the
    # decoder generates may need more positions as well: as many as the recipe sets.
    learned = start.recipe.model.learned_positions
    if learned is not None and {recipe.data.modality, start.recipe.data.modality} == {"image"}:
        is_half = FAMILIES[recipe.model.family].pairs and not FAMILIES[start.recipe.model.family].pairs
        shape["max_positions"] = max(learned, recipe.image.tokens, recipe.model.max_positions if is_half else 0)
    return replace(recipe.model, **shape)


def check_length(start: LoadedModel, recipe: Recipe) -> None:
    """Check that the start model's learned positions suffice for the texts or audio of the recipe."""
    learned, audio, length = recipe.model.learned_positions, recipe.audio, recipe.data.max_length
    if learned is None:
        return
    if recipe.data.modality == "audio" and audio.longest > learned:
        seconds = learned * audio.stride * audio.hop / audio.rate
        raise InputError(
            f"{start.path} has learned {learned} positions, but the recipe reads audio of {audio.longest}: set "
            f"audio.max_seconds = {seconds:g}, or start from a model that was trained with longer audio"
        )
    if recipe.data.modality == "text" and not FAMILIES[recipe.model.family].pairs and length > learned:
        raise InputError(
            f"{start.path} has learned {learned} positions, but the recipe reads texts of data.max_length "
            f"= {length} tokens: set data.max_length = {learned}, which truncates longer texts, "
            "or start from a model that was trained with more positions"
        )


def check_vocabulary(start: LoadedModel, recipe: Recipe) -> None:
    """Check that the recipe's vocabulary can replace the one that a start model was trained with."""
    path = Path(recipe.tokenizer.path or "")
    tokenizers = TokenizerPair.load(path)
    sides = FAMILIES[recipe.model.family].sides  # source and target; half of a model has only one of them
    for side in {"encoder": sides[:1], "decoder": sides[-1:]}.get(start.model.side, sides):
        ours, theirs = getattr(tokenizers, side), getattr(start.tokenizers, side)
        new, old = (set(tokenizer.pieces(range(len(tokenizer)))) for tokenizer in (ours, theirs))
        lost, added = sorted(old - new), sorted(new - old)
        if recipe.train.vocabulary == "extend" and lost:
            raise InputError(
                f'train.vocabulary = "extend": {path} lacks {counted(len(lost), "pieces")} of {start.path}, such as '
                f'{", ".join(lost[:5])}; add them, or set train.vocabulary = "remap" to do without their vectors'
            )
        if ours.digest != theirs.digest and recipe.train.vocabulary in (None, "keep"):
            raise InputError(
                f"the vocabulary of {path} differs from that of {start.path}: {len(old & new):,} pieces are the same, "
                f"{len(lost):,} are only in the model ({', '.join(lost[:5])}), {len(added):,} only in the "
                f"recipe's vocabulary ({', '.join(added[:5])}). "
                'Set train.vocabulary to "keep" to use that of the model; to "extend" to '
                "start with its vectors and fresh ones for the pieces that are only in the recipe, "
                'without losing any; or to "remap", which may lose some'
            )


class Transfer(NamedTuple):
    """Weights to copy from a start model to the new model: their names in both models, and their values."""

    start: LoadedModel
    names: dict[str, str]
    values: dict[str, Tensor]
    note: str  # for the user, about values that were changed; may be empty


def transfers(recipe: Recipe, model: Model) -> list[Transfer]:
    """Find the weights to copy from each model of a recipe's warm start; `model` may be on the meta device."""
    all_transfers, parameters = [], set()
    for start in start_models(recipe):
        values = weights_of(start, model)
        positions = resized_positions(start.recipe, recipe, values)
        values |= positions
        note = ""
        if positions and start.recipe.image.grid != recipe.image.grid:
            (rows, columns), (more, wider) = start.recipe.image.grid, recipe.image.grid
            note = f"learned positions of {rows} x {columns} patches are interpolated to {more} x {wider}"
        # After resizing, because only weights of the same shape are paired.
        names = pairs_of_names(start, model, values)

        # The output layer of a regression model that learned unstandardised numbers is rescaled, so that predictions
        # stay the same; one that learned standardised numbers is copied.
        labels, learned = Standardisation.of(recipe.data), Standardisation.of(start.recipe.data)
        was_plain = recipe.task == start.recipe.task and learned == Standardisation()
        if was_plain and recipe.data.label_scale is not None:
            bias = labels.standardised(values[f"{HEAD}bias"])
            values |= {f"{HEAD}weight": values[f"{HEAD}weight"] / labels.scale, f"{HEAD}bias": bias}
        if start.recipe.data.labels != recipe.data.labels and not model.predicts_tokens:
            names = {theirs: ours for theirs, ours in names.items() if not ours.startswith(HEAD)}
        if not names:
            raise InputError(f"train.start = {start.path}: no weight of this model fits the new model")

        # Tied weights are one parameter with several names, which must be copied only once.
        for theirs, ours in names.items():
            parameter = id(model.get_parameter(ours))
            if parameter in parameters:
                raise InputError(
                    f"{start.path}: its {theirs} would overwrite the weights that {ours} has been given; model.tie = "
                    f'"{recipe.model.tie}" merges several matrices into one: set it to "output", or to "none"'
                )
            parameters.add(parameter)
        all_transfers.append(Transfer(start, names, values, note))
    return all_transfers


def weights_of(start: LoadedModel, model: Model) -> dict[str, Tensor]:
    """Return the weights of a start model in the form that another model can use.

    The start model adds the vector of the first segment to every token of a single text. If the other model has no
    segments, as in an encoder-decoder, this vector is added to the position vectors instead.
    """
    values = weights(start.model)
    if SEGMENTS in values and not model.has_segments:
        if start.recipe.model.learned_positions is None:
            raise InputError(
                f"{start.path}: this model has segment embeddings, which a model without segments can start from only "
                f'if positions are learned, but it has positions = "{start.recipe.model.positions}"; start from one '
                "with segments = 0"
            )
        values[POSITIONS] = values[POSITIONS] + values[SEGMENTS][0]
    return values


def resized_positions(start: Recipe, recipe: Recipe, values: dict[str, Tensor]) -> dict[str, Tensor]:
    """Fit the learned positions of a start model to the recipe, by interpolation if the grid of patches differs."""
    size = recipe.model.learned_positions
    same = start.image.grid == recipe.image.grid and start.model.learned_positions == size
    if {start.data.modality, recipe.data.modality} != {"image"} or same:
        return {}
    resized = {}
    for name in POSITION_TABLES:
        if name in values and size is not None:
            resized[name] = resized_table(values[name], start.image, recipe.image, size)
    for prefix in POSITION_GRIDS:
        for part, count in zip(("rows", "columns"), recipe.image.grid, strict=True):
            if (name := prefix + part) in values:
                line = values[name].T[None]  # (1, D, positions)
                resized[name] = F.interpolate(line, count, mode="linear", align_corners=False)[0].T.contiguous()
    return resized


def resized_table(
    table: Float[Tensor, "N D"], before: ImageConfig, after: ImageConfig, size: int
) -> Float[Tensor, "N2 D"]:
    """Interpolate a table of learned positions bicubically on its grid (Dosovitskiy et al. 2021, section 3.2).

    The position of the class token is kept. Unused rows, after those of an image, become zeros.
    """
    first = int(before.class_token)
    target = table.new_zeros(size, table.size(1))
    if before.grid == after.grid:
        target[: after.tokens] = table[: after.tokens]
    else:
        grid = table[first : before.tokens].unflatten(0, before.grid).permute(2, 0, 1)[None]  # (1, D, rows, columns)
        grid = F.interpolate(grid, after.grid, mode="bicubic", align_corners=False)[0]
        # (D, rows, columns) -> (rows * columns, D)
        target[:first], target[first : after.tokens] = table[:first], grid.permute(1, 2, 0).flatten(0, 1)
    return target


def pairs_of_names(start: LoadedModel, model: Model, values: dict[str, Tensor]) -> dict[str, str]:
    """Pair the names of weights in the start model with the names of the same weights in the new model."""
    parameters, names, rows = dict(model.named_parameters(remove_duplicate=False)), {}, model.token_rows()
    for name, value in values.items():
        for start_prefix, prefix in model.warm_start_names(start.model).items():
            own = prefix + name.removeprefix(start_prefix)
            if not name.startswith(start_prefix) or own not in parameters:
                continue
            # Weights with a row per token may have a different number of rows.
            if value.shape[1:] == parameters[own].shape[1:] and (own in rows or value.shape == parameters[own].shape):
                names[name] = own
    return names


def copy_start_weights(
    recipe: Recipe, model: Model, tokenizers: TokenizerPair, say: Callable[[str], object] = lambda _: None
) -> list[str]:
    """Copy weights to a model from the start models of a recipe; return the names of the weights that stay fresh.

    `say` is called with sentences about weights that are changed in the process, and about preprocessing that differs
    from the training of the start model.
    """
    notes: set[str] = set()
    all_transfers = transfers(recipe, model)
    for transfer in all_transfers:
        if note := preprocessing_note(transfer.start.recipe, recipe):
            notes.add(note)
        for theirs, ours in transfer.names.items():
            parameter, value = model.get_parameter(ours), transfer.values[theirs]
            with torch.no_grad():
                if side := model.token_rows().get(ours):  # only the rows of pieces that both vocabularies have
                    rows = rows_of_pieces(transfer.start.tokenizers, tokenizers, side)
                    old, new = (torch.tensor(each) for each in zip(*rows, strict=True))
                    parameter[new] = value[old].to(parameter)
                else:
                    parameter.copy_(value)
        if transfer.note:
            say(transfer.note)
    for note in sorted(notes):
        say(note)
    return fresh_weights(model, all_transfers)


def fresh_weights(model: Model, all_transfers: Sequence[Transfer]) -> list[str]:
    """List the names of the weights that no start model provides; return [] without a warm start."""
    # By identity, because tied weights are one parameter with several names.
    replaced = {id(model.get_parameter(name)) for transfer in all_transfers for name in transfer.names.values()}
    return [name for name, parameter in model.named_parameters() if replaced and id(parameter) not in replaced]


def rows_of_pieces(theirs: TokenizerPair, ours: TokenizerPair, side: str) -> list[tuple[int, int]]:
    """List the (old, new) rows of the pieces that both vocabularies of a side contain."""
    old, new = getattr(theirs, side), getattr(ours, side)
    if old.digest == new.digest:
        return [(row, row) for row in range(len(new))]
    old_rows = {text: row for row, text in enumerate(old.texts(range(len(old))))}
    return [(old_rows[text], row) for row, text in enumerate(new.texts(range(len(new)))) if text in old_rows]


def preprocessing_note(start: Recipe, recipe: Recipe) -> str | None:
    """Format a note about preprocessing in a recipe that differs from a start model's; return None if none does.

    The recipe's preprocessing is used, but converting the model back to its original format may need the start model's.
    """
    if start.data.modality != recipe.data.modality:
        return None
    different = [
        f"{table}.{key} = {json.dumps(value)}"
        for table, keys in PREPROCESSING.get(recipe.data.modality, {}).items()
        for key in keys
        if (value := getattr(getattr(start, table), key)) != getattr(getattr(recipe, table), key)
    ]
    if not different:
        return None
    return (
        f"the model that training starts from was trained with {', '.join(different)}, but this recipe differs: "
        "set these values to preprocess inputs as in that training and to convert the model back to its original format"
    )


def output_bias_to_freeze(recipe: Recipe) -> tuple[str, ...]:
    """Return the name of the start model's output bias if it only suppresses tokens and is not frozen yet, else ()."""
    if recipe.train.start is None or OUTPUT_BIAS in recipe.train.freeze:
        return ()
    start = load_model(recipe.train.start)
    bias = weights(start.model).get(OUTPUT_BIAS)
    is_copied = start.recipe.task == recipe.task and getattr(recipe.model, "output_bias", False)
    return (OUTPUT_BIAS,) if bias is not None and is_copied and only_excludes_tokens(bias) else ()


def start_line(recipe: Recipe, model: Model, fresh: Sequence[str]) -> str:
    """Format a line that says which weights a warm start has copied; return "" without a warm start."""
    models = " and ".join(path for path in (recipe.train.start, recipe.train.start_decoder) if path is not None)
    if not models:
        return ""
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    names = [name for name in sizes if name not in fresh]
    parts = ", ".join(dict.fromkeys(name.partition(".")[0] for name in names))
    count = f"{sum(sizes[name] for name in names):,} of {sum(sizes.values()):,} parameters"
    return f"starts with the weights of {models}: {parts} ({count}); fresh: {', '.join(fresh) or 'none'}"
