"""Whisper tokens that are not text: the prompt of the decoder, languages and timestamps (Radford et al. 2022, 2.3).

A transcript begins with <|startoftranscript|>, which is <bos>; in a multilingual model, the language and <|transcribe|>
follow, then <|notimestamps|> or timestamps that start with <|0.00|>; it ends with <|endoftext|>, which is <eos>.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heedful.errors import InputError
from heedful.text.hugging_face import DEFINITION, PLAIN_TOKEN, adopt, ids_of, read_definition
from heedful.text.pipeline import BOS, EOS
from heedful.text.tokenizer import Tokenizer

BEGIN, END = "<|startoftranscript|>", "<|endoftext|>"
TRANSCRIBE, TRANSLATE, WITHOUT_TIMES = "<|transcribe|>", "<|translate|>", "<|notimestamps|>"
PREVIOUS = "<|startofprev|>"
NO_SPEECH = ("<|nospeech|>", "<|nocaptions|>")  # the current name, and the one in the first models
LANGUAGE = re.compile(r"<\|([a-z]{2,3})\|>")
TIME = re.compile(r"<\|(\d+\.\d\d)\|>")
STEP = 0.02  # seconds from one timestamp to the next


@dataclass(frozen=True, kw_only=True)
class SpeechTokens:
    """Ids of the non-text tokens in the vocabulary of a speech model; None for a token that the vocabulary lacks."""

    languages: Mapping[str, int]  # by language code
    transcribe: int | None  # requests a transcript, not a translation
    without_times: int | None  # requests a text without timestamps
    silence: int | None  # predicted for audio without speech
    times: range  # the timestamps 0, 0.02, 0.04 ... seconds; may be empty
    controls: frozenset[int]  # all non-text tokens, timestamps included
    translate: int | None = None  # requests a translation into English
    previous: int | None = None  # begins the preceding transcript, which comes before <bos>

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> "SpeechTokens":
        """Find the non-text tokens in the vocabulary of a speech model."""
        added = json.loads(tokenizer.definition)["added_tokens"]
        ids = {token["content"]: token["id"] for token in added}
        # Whisper numbers its timestamps in chronological order, without gaps, and `adopt` keeps this order.
        times = sorted(i for name, i in ids.items() if TIME.fullmatch(name))
        return cls(
            languages={match[1]: i for name, i in ids.items() if (match := LANGUAGE.fullmatch(name))},
            transcribe=ids.get(TRANSCRIBE),
            translate=ids.get(TRANSLATE),
            previous=ids.get(PREVIOUS),
            without_times=ids.get(WITHOUT_TIMES),
            silence=next((ids[name] for name in NO_SPEECH if name in ids), None),
            times=range(times[0], times[-1] + 1) if times else range(0),
            controls=frozenset(i for name, i in ids.items() if name.startswith("<|")),
        )

    def prompt(self, language: str | None) -> list[int]:
        """Return the tokens between <bos> and a transcript without timestamps, if the vocabulary has them.

        `language` is None if the prompt has no language, as in an English-only model.
        """
        task = [] if language is None else [self.languages[language], self.transcribe]
        return [token for token in (*task, self.without_times) if token is not None]

    def seconds(self, token: int) -> float:
        """Return the time in seconds of a timestamp token."""
        return (token - self.times.start) * STEP

    def text(self, tokens: Sequence[int]) -> list[int]:
        """Return only the tokens that are text."""
        return [token for token in tokens if token not in self.controls]


def speech_tokenizer(
    folder: Path, rows: int, names: Sequence[str] | None = None
) -> tuple[Tokenizer, NDArray[np.int64]]:
    """Import a Whisper tokenizer: <bos> is <|startoftranscript|>, <eos> is <|endoftext|>.

    Args:
        folder: The model folder, with a tokenizer.json.
        rows: The number of rows of the model's embeddings. The timestamps are the last rows; a tokenizer.json from
            before 2023 lacks them, so they are added.
        names: The names of all rows, if another file in the folder lists them.

    Returns:
        The tokenizer, and for each of its ids the old id, (V,); -1 for <pad> and <unk>, which Whisper lacks.

    Raises:
        InputError: The tokenizer is missing, lacks these tokens, or numbers its tokens differently from `names`.
    """
    origin = folder / DEFINITION
    definition = read_definition(folder)
    try:
        ids = ids_of(definition)
        if not any(map(TIME.fullmatch, ids)):
            time_ids = range(len(ids), rows)
            times = [{"id": i, "content": f"<|{count * STEP:.2f}|>", **PLAIN_TOKEN} for count, i in enumerate(time_ids)]
            definition = {**definition, "added_tokens": [*definition["added_tokens"], *times]}
            ids = ids_of(definition)
        if missing := [name for name in (BEGIN, END) if name not in ids]:
            raise InputError(f"{origin}: lacks {' and '.join(missing)}; is it the tokenizer of a Whisper model?")
        misplaced = next((name for i, name in enumerate(names or ()) if ids.get(name) != i), None)
        if misplaced:
            raise InputError(f"{origin}: lacks {misplaced!r} where the model's vocabulary has it; copy the model again")
        return adopt(definition, {BOS: BEGIN, EOS: END}, str(origin))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise InputError(f"{origin}: damaged, or not a tokenizer ({error!r}); download it again") from error
