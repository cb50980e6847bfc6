"""Tokens of Whisper that are not text: the prompt of the decoder, languages and time stamps (Radford et al. 2022, 2.3).

A transcript begins with <|startoftranscript|>, which is <bos>, then, in a model of several languages, has the language
and <|transcribe|>, and then <|notimestamps|> or time stamps from <|0.00|> on; it ends with <|endoftext|>, which is
<eos>.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heedful.errors import InputError
from heedful.text.hugging_face import DEFINITION, Definition, adopt, ids_of, read_definition
from heedful.text.pipeline import BOS, EOS
from heedful.text.tokenizer import Tokenizer

BEGIN, END = "<|startoftranscript|>", "<|endoftext|>"
TRANSCRIBE, TRANSLATE, WITHOUT_TIMES = "<|transcribe|>", "<|translate|>", "<|notimestamps|>"
PREVIOUS = "<|startofprev|>"
SILENCE = ("<|nospeech|>", "<|nocaptions|>")  # the name of today, and that of the first models
LANGUAGE = re.compile(r"<\|([a-z]{2,3})\|>")
TIME = re.compile(r"<\|(\d+\.\d\d)\|>")
STEP = 0.02  # seconds from one time stamp to the next


@dataclass(frozen=True, kw_only=True)
class SpeechTokens:
    """Ids of the tokens that are not text in the vocabulary of a model of speech; most vocabularies have none."""

    languages: Mapping[str, int]  # by code
    transcribe: int | None  # asks for a transcript, and not for a translation
    without_times: int | None  # asks for a text without time stamps
    silence: int | None  # stands for audio without speech
    times: range  # the time stamps 0, 0.02, 0.04 ... seconds; empty if there are none
    controls: frozenset[int]  # all tokens that are not text, time stamps included
    translate: int | None = None  # asks for a translation into English
    previous: int | None = None  # begins the text before this one

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> "SpeechTokens":
        """Find the tokens of speech in a vocabulary."""
        added = json.loads(tokenizer.definition)["added_tokens"]
        ids = {token["content"]: token["id"] for token in added}
        times = sorted(i for name, i in ids.items() if TIME.fullmatch(name))
        return cls(
            languages={match[1]: i for name, i in ids.items() if (match := LANGUAGE.fullmatch(name))},
            transcribe=ids.get(TRANSCRIBE),
            translate=ids.get(TRANSLATE),
            previous=ids.get(PREVIOUS),
            without_times=ids.get(WITHOUT_TIMES),
            silence=next((ids[name] for name in SILENCE if name in ids), None),
            times=range(times[0], times[-1] + 1) if times else range(0),
            controls=frozenset(i for name, i in ids.items() if name.startswith("<|")),
        )

    def prompt(self, language: str | None) -> list[int]:
        """The tokens between <bos> and a transcript without time stamps, as far as the vocabulary has them."""
        task = [] if language is None else [self.languages[language], self.transcribe]
        return [token for token in (*task, self.without_times) if token is not None]

    def seconds(self, token: int) -> float:
        """The seconds that a time stamp stands for."""
        return (token - self.times.start) * STEP

    def text(self, tokens: Sequence[int]) -> list[int]:
        """The tokens that are text."""
        return [token for token in tokens if token not in self.controls]


def speech_tokenizer(
    folder: Path, rows: int, names: Sequence[str] | None = None
) -> tuple[Tokenizer, NDArray[np.int64]]:
    """Import the tokenizer of a Whisper: <bos> is <|startoftranscript|>, <eos> is <|endoftext|>.

    Args:
        folder: The folder of the model, with a tokenizer.json.
        rows: The number of rows of the model's embeddings. A tokenizer.json of before 2023 lacks the time stamps, which
            are the last rows; they are added.
        names: The names of all rows, where another file of the folder lists them.

    Returns:
        The tokenizer, and for each of its ids the old id, (V,); -1 for <pad> and <unk>, which Whisper lacks.

    Raises:
        InputError: The folder holds no tokenizer, one without these tokens, or one whose ids are not those of `names`.
    """
    origin = folder / DEFINITION
    definition = read_definition(folder)
    try:
        ids = ids_of(definition)
        if not any(map(TIME.fullmatch, ids)):
            definition = _with_times(definition, range(len(ids), rows))
            ids = ids_of(definition)
        if lacking := [name for name in (BEGIN, END) if name not in ids]:
            raise InputError(f"{origin}: has no {' and no '.join(lacking)}; is it the tokenizer of a Whisper?")
        other = next((name for i, name in enumerate(names or ()) if ids.get(name) != i), None)
        if other:
            raise InputError(f"{origin}: has no {other!r} where the model's vocabulary has it; copy the model again")
        return adopt(definition, {BOS: BEGIN, EOS: END}, str(origin))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise InputError(f"{origin}: damaged, or not a tokenizer ({error!r}); download it again") from error


def _with_times(definition: Definition, places: range) -> Definition:
    """Add the time stamps as the tokens of these ids."""
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    times = [{"id": i, "content": f"<|{count * STEP:.2f}|>", **flags} for count, i in enumerate(places)]
    return {**definition, "added_tokens": [*definition["added_tokens"], *times]}
