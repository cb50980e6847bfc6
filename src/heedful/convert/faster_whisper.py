"""Reading and writing of Whisper models in CTranslate2's format, as used by faster-whisper."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from heedful.checkpoint.load import LoadedModel
from heedful.convert.ctranslate2 import MODEL_BIN, read_ctranslate2
from heedful.convert.ctranslate2_export import MISSING, TITLE, as_variables, fill, vocabulary
from heedful.convert.exporter import Agreement
from heedful.convert.model import Format, Model, count_values
from heedful.convert.opennmt import BLOCKS, count_layers, torch_name
from heedful.convert.weights import Names, Weights, split_by_name, without_copies
from heedful.convert.whisper import (
    EMBEDDING,
    MULTILINGUAL,
    PREPROCESSOR,
    TASKS,
    Description,
    audio_settings,
    convert_whisper,
    preprocessor,
    tokenizer_json,
    whisper_layout,
    whisper_order,
)
from heedful.convert.whisper import EXPORTER as WHISPER
from heedful.errors import InputError
from heedful.predictors.ctranslate2_transcriber import CTranslate2Transcriber, SpeechModel
from heedful.predictors.speech import SpeechRules
from heedful.predictors.transcriber import Transcriber
from heedful.predictors.word_times import alignment_heads
from heedful.storage.atomic import atomic_folder, named_write_errors
from heedful.text.pipeline import PAD, UNK
from heedful.text.speech_tokens import WITHOUT_TIMES, SpeechTokens

SPEC = "WhisperSpec"
GELU = 3  # CTranslate2's number for this activation
NAMES = Names(
    {
        "source_embedding.first": "encoder.conv1",
        "source_embedding.second": "encoder.conv2",
        "encoder.positions.table.weight": "encoder.position_encodings.encodings",
        "encoder.norm": "encoder.layer_norm",
        "target_embedding": "decoder.embeddings",
        "decoder.positions.table.weight": "decoder.position_encodings.encodings",
        "decoder.norm": "decoder.layer_norm",
    }
    | {f"{stack}.blocks.#.{o}": f"{stack}.layer_#.{t}" for stack, block in BLOCKS.items() for o, t in block.items()}
)
COPIES = {"decoder.projection.weight": "decoder.embeddings.weight"}
SETTINGS = {"pre_norm": 1, "activation": GELU, "scale_embeddings": 0, "alibi": 0, "multi_query_attention": 0}
NEEDED = ("encoder.conv1.weight", "encoder.position_encodings.encodings", "decoder.position_encodings.encodings")
NEEDED += ("encoder.layer_0.ffn.linear_0.weight", "decoder.embeddings.weight", "encoder.num_heads")


def read(folder: Path, task: str | None = None) -> Model:
    """Read a Whisper model in CTranslate2's format, and convert its weights to float32."""
    model, where = read_ctranslate2(folder), str(folder / MODEL_BIN)
    if model.binary.spec != SPEC:
        raise InputError(f"{where}: contains a {model.binary.spec}, not a {SPEC}")
    theirs = {torch_name(name): torch.from_numpy(value) for name, value in model.binary.variables.items()}
    if missing := [name for name in NEEDED if name not in theirs]:
        raise InputError(f"{where}: has no {' and no '.join(missing)}; is it complete?")
    # Scalars are settings of the layers: with a different value, the weights would be converted without an error but
    # give different results. heedful has one number of heads for both stacks.
    fitting = SETTINGS | {"num_heads": int(theirs["encoder.num_heads"])}
    misfits = []
    for name, value in theirs.items():
        key = name.partition(".")[2]  # without the name of the stack
        if value.ndim == 0 and int(value) != fitting.get(key, int(value)):
            misfits.append(f"{name} is {int(value)}, but should be {fitting[key]}")
    if misfits:
        raise InputError(f"{where}: not a Whisper model: {'; '.join(sorted(misfits))}")
    embedding = theirs["decoder.embeddings.weight"]
    languages = [model.target_vocabulary[i].strip("<|>") for i in _ids(model.config.get("lang_ids"))]
    # The files of OpenAI's English models list languages as well, but their vocabulary has one token less.
    is_english = len(embedding) == MULTILINGUAL - 1 or (not languages and len(embedding) < MULTILINGUAL)
    description = Description(
        fields={
            "d_model": embedding.shape[1],
            "d_ff": len(theirs["encoder.layer_0.ffn.linear_0.weight"]),
            "heads": int(theirs["encoder.num_heads"]),
            "encoder_layers": count_layers(theirs, "encoder"),
            "decoder_layers": count_layers(theirs, "decoder"),
            "max_positions": len(theirs["encoder.position_encodings.encodings"]),
            "max_target_positions": len(theirs["decoder.position_encodings.encodings"]),
        },
        rows=len(embedding),
        names=model.target_vocabulary,
        languages=() if is_english else languages or None,
        suppress=_ids(model.config.get("suppress_ids")),
        suppress_first=_ids(model.config.get("suppress_ids_begin")),
        alignment_heads=model.config.get("alignment_heads") or (),
        audio=audio_settings(folder, theirs["encoder.conv1.weight"].shape[1]),
    )
    theirs = without_copies({name: value for name, value in theirs.items() if value.ndim}, COPIES, where)
    theirs, _ = split_by_name(theirs, r"decoder\.alignment_heads")
    try:
        ours = NAMES.ours(theirs)
    except KeyError as error:
        raise InputError(f"{where}: heedful cannot represent the weight {error}") from error
    return convert_whisper(folder, description, ours, task)


def write(model: Model, folder: Path, precision: str = "float32") -> int:
    """Write a speech model as a folder that `ctranslate2.models.Whisper` and faster-whisper open.

    CTranslate2 suppresses all tokens that heedful never generates. Returns the number of values in the weights.

    Raises:
        InputError: The model differs from a Whisper model, or ctranslate2 is not installed.
    """
    spec, order = specification(model)
    recipe, tokenizer = model.recipe, model.tokenizers.target
    new_ids = {old: new for new, old in enumerate(order)}
    tokens = SpeechTokens.of(tokenizer)
    rules = SpeechRules.of(tokens, recipe.transcribe, tokens.times, len(tokenizer))
    heads = recipe.model.heads
    spec.config.suppress_ids = [new for new, old in enumerate(order) if rules.suppressed[old]]
    spec.config.suppress_ids_begin = sorted(new_ids[i] for i in recipe.transcribe.suppress_first)
    spec.config.lang_ids = [new_ids[tokens.languages[code]] for code in recipe.transcribe.languages]
    # heedful numbers the heads of all layers consecutively; CTranslate2 uses pairs of a layer and a head.
    spec.config.alignment_heads = [list(divmod(head, heads)) for head in alignment_heads(recipe)]
    with named_write_errors(folder), atomic_folder(folder.resolve()) as writer:
        for name, contents in {
            "tokenizer.json": tokenizer_json(tokenizer, new_ids),
            PREPROCESSOR: preprocessor(recipe.audio),
        }.items():
            writer.write(name, [json.dumps(contents, ensure_ascii=False, indent=2).encode("utf-8")])
        # The vocabulary is read from the tokenizer.json above, so that both files list the tokens in the same order.
        spec.register_vocabulary(vocabulary(writer.path))
        spec.validate()
        spec.optimize(quantization=None if precision == "float32" else precision)
        spec.save(str(writer.path))
    return count_values(model.weights)


def specification(model: Model) -> tuple[Any, list[int]]:
    """Build CTranslate2's specification of a Whisper model; return it, and heedful's ids in its vocabulary's order."""
    tokens, ours, absent = whisper_parts(model)
    try:
        from ctranslate2.specs.whisper_spec import WhisperSpec
    except ImportError as error:
        raise InputError(MISSING) from error
    config = model.recipe.model
    order = [i for i in (PAD, UNK) if i not in absent] + whisper_order(len(model.tokenizers.target), tokens)
    ours[EMBEDDING] = ours[EMBEDDING][order]
    spec = WhisperSpec(config.encoder_layers, config.heads, config.decoder_layers, config.heads)
    variables = as_variables(NAMES.theirs(ours))
    # The specification has an output matrix; Whisper's is tied to the embeddings.
    fill(spec, variables | {"decoder.projection.weight": variables["decoder.embeddings.weight"]})
    return spec, order


def reject_misfit(model: Model) -> None:
    """Raise an InputError if CTranslate2 cannot represent a model that reads images, audio or video."""
    try:
        WHISPER.reject_misfit(model)
        whisper_parts(model)
    except InputError as error:
        raise InputError(
            "of the models that read images, audio or video, CTranslate2 supports audio models in Whisper's layout "
            f"only; this model {error}"
        ) from error


def whisper_parts(model: Model) -> tuple[SpeechTokens, Weights, tuple[int, ...]]:
    """Return a model's control tokens, its weights in Whisper's layout, and the tokens that Whisper lacks."""
    _, ours, absent = whisper_layout(model)
    tokens = SpeechTokens.of(model.tokenizers.target)
    # CTranslate2 assumes that all tokens after <|notimestamps|> are timestamps.
    after = range(len(model.tokenizers.target))[-len(tokens.times) :] if tokens.times else range(0)
    if after != tokens.times or tokens.without_times != max(tokens.controls - set(after), default=0):
        raise InputError(
            f"has a tokenizer without {WITHOUT_TIMES}, or with tokens after it that are not timestamps; train with the "
            "tokenizer of a Whisper model (tokenizer.path, or train.start)"
        )
    return tokens, ours, absent


def compare_outputs(loaded: LoadedModel, folder: Path, files: Sequence[str]) -> Agreement:
    """Compare greedy transcripts by a model and by its export in float32, for the first window of each audio file."""
    options = {"beam": 1, "penalty": "average", "alpha": 1.0}  # scores are the mean log-probability of a token
    our_transcriber = loaded.use_as(Transcriber).with_options(**options)
    model = SpeechModel(folder, folder, loaded.recipe, "float32", lambda: our_transcriber)
    their_transcriber = CTranslate2Transcriber(model, loaded.tokenizers, None)
    # Both have the same settings, so that only the computation can differ.
    their_transcriber.settings, their_transcriber.config = our_transcriber.settings, our_transcriber.config
    transcribers = our_transcriber, their_transcriber
    equal, differences = 0, []
    for file in files:
        reading = our_transcriber.begin(file)
        if not reading.finished:  # both use the language that heedful's transcriber detected
            [[(ours, _)]], [[(theirs, _)]] = (list(each.search_windows([[reading]])) for each in transcribers)
            equal += ours.tokens == theirs.tokens
            differences.append(abs(ours.score - theirs.score))
    return Agreement(inputs=len(differences), equal=equal, difference=max(differences, default=0.0), program=TITLE)


def _ids(values: Any) -> list[int]:
    """Return the ids in a list of config.json, without negative ones, which are placeholders."""
    return [i for i in values or [] if isinstance(i, int) and i >= 0]


FORMAT = Format(tasks=TASKS, file=MODEL_BIN, kinds=(SPEC,), reader=read)
