"""Recipe of a converted Whisper, and its tokens under new ids: the part that all formats of Whisper share.

Radford et al. (2022), "Robust Speech Recognition via Large-Scale Weak Supervision", section 2.2. Whisper has no <pad>
and no <unk>, and no bias on its keys, where a bias changes no attention weight: heedful's is zero.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from heedful.config.modalities import AudioConfig
from heedful.config.schema import EXTRA, FilterConfig
from heedful.convert.model import Model, expected, recipe_of
from heedful.convert.names import Weights, compare
from heedful.convert.vocabulary import check_rows, reorder, silence
from heedful.models.input_layers import media_to_text
from heedful.tasks.speech_recognition import SpeechRecognition
from heedful.text.speech_tokens import SpeechTokens, speech_tokenizer
from heedful.text.tokenizer_pair import TokenizerPair

TASK, TASKS = "speech_recognition", (SpeechRecognition,)
EMBEDDING, OUTPUT_BIAS = "target_embedding.weight", "output.bias"
MULTILINGUAL = 51_865  # rows from which OpenAI's vocabularies are those of models of several languages
WHOLE_WINDOW = 30.0  # seconds that all Whispers of OpenAI read at once; others need not be of natural speech
FIXED = {
    "positions": "learned",
    "norm": "pre",
    "activation": "gelu",
    "tie": "output",
    "scale_embeddings": False,
    "dropout": 0.0,
}


@dataclass(frozen=True, kw_only=True)
class Description:
    """Description of a Whisper in its files, beside the weights; ids are those of its own vocabulary.

    Attributes:
        fields: fields of `ModelConfig` beside those that all Whispers share.
        rows: the number of rows of the embeddings.
        names: the names of all tokens; None: those of tokenizer.json.
        languages: the codes of the languages that it tells apart; empty: it writes English only; None: it tells
            languages apart, and they are those of its vocabulary.
        suppress: tokens that are never written.
        suppress_first: tokens that are not written first.
        alignment_heads: pairs of a layer and a head whose cross-attention follows the speech.
        audio: values of [audio] that differ from the defaults, without lengths.
    """

    fields: Mapping[str, Any]
    rows: int
    names: Sequence[str] | None = None
    languages: Sequence[str] | None = ()
    suppress: Iterable[int] = ()
    suppress_first: Iterable[int] = ()
    alignment_heads: Iterable[Sequence[int]] = ()
    audio: Mapping[str, Any] = field(default_factory=dict)


def converted(folder: Path, description: Description, ours: Weights, task: str | None) -> Model:
    """Build the converted model of a Whisper from its weights under heedful's names, with the rows of its vocabulary.

    Raises:
        InputError: The tokenizer cannot be read or does not fit the embeddings, weights are missing or have no place,
            or the settings form no recipe.
    """
    tokenizer, old_id_of = speech_tokenizer(folder, description.rows, description.names)
    check_rows(old_id_of, description.rows, str(folder))
    tokenizers = TokenizerPair(tokenizer, tokenizer)
    bias = silence(None, old_id_of)
    fields = FIXED | {"output_bias": bool(bias)} | dict(description.fields)
    tables = tables_of(description, SpeechTokens.of(tokenizer), old_id_of)
    recipe = recipe_of(task or TASK, fields, tokenizers, folder, **tables)
    ours = with_biases_of_keys(ours)
    known = expected(lambda: media_to_text(recipe, description.rows))
    known.pop(OUTPUT_BIAS, None)
    compare(ours, known, str(folder))
    guess = "no file of the model names its languages: they are taken from the vocabulary"
    return Model(
        recipe=recipe,
        tokenizers=tokenizers,
        weights=reorder(ours, old_id_of, (EMBEDDING,)) | bias,
        notes=(guess,) if description.languages is None else (),
    )


def tables_of(
    description: Description, tokens: SpeechTokens, old_id_of: NDArray[np.int64]
) -> dict[str, dict[str, Any]]:
    """Build the tables of the recipe, beside [model], of a converted Whisper."""
    new_id_of = {old: new for new, old in enumerate(old_id_of.tolist())}
    told = tokens.languages if description.languages is None else description.languages
    languages = [code for code in told if code in tokens.languages]
    audio = AudioConfig(**description.audio)
    seconds = description.fields["max_positions"] * audio.stride * audio.hop / audio.rate  # the encoder reads no less
    room = description.fields["max_target_positions"]
    extra = min(EXTRA, room // 2)
    english = {} if languages else {"source_language": "en", "target_language": "en"}
    filters = {"max_tokens": min(FilterConfig.max_tokens, room - extra)}
    return {
        "data": {"modality": "audio", "filters": filters, **english},
        "audio": {"pad_seconds": seconds, "max_seconds": seconds, **description.audio},
        "decode": {"beam": 5, "penalty": "average_text", "alpha": 1.0, "max_extra": extra},
        "transcribe": {
            "languages": languages,
            "vad": seconds >= WHOLE_WINDOW,
            "alignment_heads": aligning(description),
            "suppress": sorted(new_id_of[i] for i in description.suppress if i in new_id_of),
            "suppress_first": sorted(new_id_of[i] for i in description.suppress_first if i in new_id_of),
        },
    }


def aligning(description: Description) -> list[int]:
    """Number the alignment heads through the layers of the decoder; those that the model does not have are left out."""
    heads = description.fields["heads"]
    layers = description.fields["decoder_layers"]
    return [
        layer * heads + head for layer, head in description.alignment_heads if 0 <= layer < layers and 0 <= head < heads
    ]


def with_biases_of_keys(ours: Weights) -> Weights:
    """Add a bias of zeros to each projection to keys that has none."""
    keys = [name for name in ours if name.endswith("attention.k.weight")]
    zeros = {name.removesuffix("weight") + "bias": torch.zeros(len(ours[name])) for name in keys}
    return zeros | ours
