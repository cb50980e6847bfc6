"""Writes down the speech of recordings with an encoder-decoder: files or samples in, transcripts out, in order.

R recordings of a batch, N samples, T frames, F features.
"""

import logging
import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property, lru_cache
from io import BufferedIOBase
from itertools import islice, pairwise
from os import PathLike
from typing import Any, Unpack, overload

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from heedful.architectures.model import SourceToTarget, evaluating
from heedful.config.modalities import AudioConfig
from heedful.config.options import DecodeOptions, TranscribeOptions, with_options
from heedful.config.schema import DecodeConfig, Recipe
from heedful.errors import InputError
from heedful.machine.process import map_on_cores
from heedful.media.audio import Samples
from heedful.media.log_mel import log_mel
from heedful.media.recordings import Sound, recording_of
from heedful.media.voice import has_network, speech_stretches
from heedful.predictors.media_reader import MediaReader
from heedful.predictors.predictor import Done, InputKind, Predictor, check_one_text
from heedful.predictors.speech import (
    OverlappingWindows,
    Reading,
    SpeechRules,
    SpeechState,
    StampedWindows,
    TimedTokens,
)
from heedful.predictors.transcript import Transcript
from heedful.predictors.word_times import Word, has_cross_attention, head_weights, token_times, words_of
from heedful.search.beam import check_beam, search
from heedful.search.hypothesis import Hypothesis
from heedful.text.speech_tokens import SpeechTokens
from heedful.text.tokenizer import BOS, EOS, Tokenizer

LOG = logging.getLogger(__name__)

WINDOW = 16  # recordings read side by side
UNLIKELY = -1.0  # mean log P of a text that is taken for silence, if silence is probable (section 4.5)
UNKNOWN = "tgt"  # data.target_language where a recipe does not say
ONE = (str, bytes, PathLike, BufferedIOBase, np.ndarray, torch.Tensor)  # types of a single recording
GIVE = "the name of a file, bytes or an array of samples"


class Transcriber(Predictor[SourceToTarget, Transcript]):
    """Transcriber: an encoder-decoder over audio with its tokenizer. A transcript never depends on other recordings.

    A recording is the name of a file, its bytes, or an array of samples from -1 to 1 at `audio.rate` samples a second.
    It may have any length: what is longer than `audio.max_seconds` is read window by window, in bounded memory.

    Args:
        model: an encoder-decoder whose input layer reads frames of audio.
        tokenizer: the tokenizer of the text.
        recipe: the recipe of the model, with [audio], [decode] and [transcribe].
    """

    tokenizer: Tokenizer
    reads_files = True

    def __init__(self, model: SourceToTarget, tokenizer: Tokenizer, recipe: Recipe) -> None:
        super().__init__(model)
        self.tokenizer = tokenizer
        self.tokens = SpeechTokens.of(tokenizer)
        self.settings = recipe
        self.config: DecodeConfig = recipe.decode

        transcribe = recipe.transcribe
        lacking = [code for code in transcribe.languages if code not in self.tokens.languages]
        largest = max((*transcribe.suppress, *transcribe.suppress_first), default=0)
        if lacking or largest >= len(tokenizer):
            what = f"token {largest}" if not lacking else f"token for the language {lacking[0]}"
            raise InputError(
                f"[transcribe] of the recipe: the vocabulary of {len(tokenizer)} tokens has no {what}; put the "
                "tokenizer there that the model was made with"
            )

    @cached_property
    def reader(self) -> MediaReader:
        """Reader of recordings that are no longer than a window, such as those that the inspector shows."""
        return MediaReader(self.model, self.settings)

    def with_options(self, **options: Unpack[TranscribeOptions]) -> "Transcriber":
        """Create a transcriber that shares this model, with other settings."""
        own = TranscribeOptions.__annotations__.keys() - DecodeOptions.__annotations__.keys()
        speech: dict[str, Any] = {key: value for key, value in options.items() if key in own}
        decode = {key: value for key, value in options.items() if key not in own}
        transcribe = self.settings.transcribe

        language = speech.pop("language", transcribe.language)
        if options.get("language") is not None and language not in transcribe.languages:
            known = ", ".join(transcribe.languages) or f"only {self.language or 'one, which it does not name'}"
            raise InputError(f"language = {language}: the model knows {known}; leave the language out")
        transcribe = replace(with_options(transcribe, speech), language=language)

        changed = copy(self)
        changed.config = with_options(self.config, decode)
        changed.settings = replace(self.settings, decode=changed.config, transcribe=transcribe)
        changed.recipe = self.recipe and changed.settings
        changed._check_prompt()
        return changed

    @overload
    def transcribe(self, sounds: Sound, **options: Unpack[TranscribeOptions]) -> Transcript: ...
    @overload
    def transcribe(self, sounds: Iterable[Sound], **options: Unpack[TranscribeOptions]) -> list[Transcript]: ...
    def transcribe(
        self, sounds: Sound | Iterable[Sound], **options: Unpack[TranscribeOptions]
    ) -> Transcript | list[Transcript]:
        """Transcribe a recording, or each of several recordings.

        Args:
            sounds: a recording, which has one transcript; or a list of recordings, which has a list of transcripts.
            options: `language`, `timestamps`, and keys of [decode] for this call, such as `beam=1`.
        """
        transcriber = self._with_one_text(options)
        return transcriber.inputs.one_or_all(lambda readings: Transcripts(transcriber, readings), sounds)

    __call__ = predict = transcribe

    def transcribe_each(
        self,
        sounds: Iterable[Sound],
        window: int = WINDOW,
        done: Done = lambda _: None,
        **options: Unpack[TranscribeOptions],
    ) -> "Transcripts":
        """Transcribe any number of recordings, in their order; each is given as soon as it and those before are done.

        Args:
            sounds: the recordings.
            window: number of recordings that are read side by side.
            done: called with the seconds of audio just transcribed, after each window of the recordings.
            options: as for `transcribe`.
        """
        transcriber = self._with_one_text(options)
        return Transcripts(transcriber, transcriber.inputs.each(sounds), window, done)

    def _with_one_text(self, options: TranscribeOptions) -> "Transcriber":
        transcriber = self.with_options(**options)
        check_one_text(options, transcriber.config, "a recording has one transcript; leave n_best out")
        return transcriber

    @property
    def inputs(self) -> InputKind[Reading]:
        """Recordings; to read one is to begin with its first window."""
        return InputKind("recording", ONE, self.begin, GIVE)

    @property
    def language(self) -> str | None:
        """The one language of the model; None if it tells several apart, or does not say."""
        only = self.settings.data.target_language
        return None if self.settings.transcribe.languages or only == UNKNOWN else only

    def begin(self, sound: object) -> Reading:
        """Begin to read a recording: with time stamps if the model has them, and the settings ask for them."""
        audio, transcribe = self.settings.audio, self.settings.transcribe
        truncated = self.settings.data.truncated_files == "read"
        recording, length = recording_of(sound, audio, truncated=truncated), round(audio.max_seconds * audio.rate)
        stamped = {"always": True, "long": recording.length > length, "never": False}[transcribe.timestamps]
        windows = (
            StampedWindows(length, self.tokens)
            if stamped and self.tokens.times
            else OverlappingWindows(length, transcribe.overlap)
        )
        if transcribe.vad and not has_network():
            _warn_of_missing_network()
        stretches = speech_stretches(recording, network=transcribe.vad and has_network())
        return Reading(recording, windows, stretches, language=transcribe.language or self.language)

    def read_on(self, going: list[Reading], done: Done) -> None:
        """Transcribe the next window of each reading."""
        check_beam(self.config.beam, len(self.tokenizer), self.device)
        batches = list(self._batches(going))
        before = sum(map(whole_seconds, going))
        with evaluating(self.model):
            for batch, outputs in zip(batches, map_on_cores(self._search, batches, self.device), strict=True):
                for reading, (hypothesis, silence) in zip(batch, outputs, strict=True):
                    self._take(reading, hypothesis, silence)
        done(sum(map(whole_seconds, going)) - before)

    def _batches(self, going: list[Reading]) -> Iterator[list[Reading]]:
        """Group the next windows into batches of one kind and of similar length, longest first."""
        audio, config = self.settings.audio, self.config
        sizes = [(len(reading.windows.times), audio.tokens(reading.left)) for reading in going]
        batch: list[int] = []
        for i in sorted(range(len(going)), key=lambda i: sizes[i], reverse=True):
            kind, longest = sizes[batch[0]] if batch else sizes[i]
            full = (len(batch) + 1) * longest * config.beam > config.batch_tokens
            if batch and (full or kind != sizes[i][0]):
                yield [going[place] for place in batch]
                batch = []
            batch.append(i)
        yield [going[place] for place in batch]

    @torch.inference_mode()
    def _search(self, batch: list[Reading]) -> list[tuple[Hypothesis, float]]:
        """Find the tokens of the next window of each reading, and the probability that it is silent."""
        audio = self.settings.audio
        samples = [reading.window() for reading in batch]
        frames, padding_mask = (x.to(self.device) for x in padded_frames(samples, audio))
        times = batch[0].windows.times
        rules = SpeechRules.of(self.tokens, self.settings.transcribe, times, len(self.tokenizer))
        state = SpeechState(self.model.start(frames, padding_mask), rules.to(self.device))
        length = self._feed_prompt(state, batch)
        room = (self.model.max_target_positions() or math.inf) - length
        limits = [int(min(room, audio.tokens(len(sound)) + self.config.extra)) for sound in samples]
        hypotheses = [best for (best,) in search(state, limits, replace(self.config, n_best=1))]

        # The probability of silence is that of its token after <bos>; 0 if the model has none.
        silence = [0.0] * len(state.begin)
        if state.heard is not None and self.tokens.silence is not None:
            silence = state.heard.float().softmax(1)[:, self.tokens.silence].tolist()
        return list(zip(hypotheses, silence, strict=True))

    def _feed_prompt(self, state: SpeechState, batch: Sequence[Reading]) -> int:
        """Feed all of the prompt but its last token; return its length. A language that is not set is detected."""
        tokens, transcribe = self.tokens, self.settings.transcribe
        length = self._feed_initial_prompt(state)
        following: list[int | None] = []
        if transcribe.languages:
            heard = state.prompt()[:, [tokens.languages[code] for code in transcribe.languages]]
            for reading, place in zip(batch, heard.argmax(1).tolist(), strict=True):
                reading.language = reading.language or transcribe.languages[place]
            spoken = [tokens.languages[str(reading.language)] for reading in batch]
            state.begin = torch.tensor(spoken, device=state.begin.device)
            following.append(tokens.translate if transcribe.task == "translate" else tokens.transcribe)
        if not batch[0].windows.times:
            following.append(tokens.without_times)
        prompt = [token for token in following if token is not None]
        for token in prompt:
            state.prompt()
            state.begin = torch.full_like(state.begin, token)
        return length + 1 + bool(transcribe.languages) + len(prompt)

    def _feed_initial_prompt(self, state: SpeechState) -> int:
        """Feed the text that might come before, as Whisper reads what was said before; return its number of tokens."""
        previous, text = self.tokens.previous, self.settings.transcribe.initial_prompt.strip()
        if not text or previous is None:
            return 0
        begin, ids = state.begin, self.tokenizer.encode(f" {text}")
        room = self.model.max_target_positions()
        prompt = [previous, *(ids if room is None else ids[-max(1, room // 2 - 1) :])]
        for token in prompt:
            state.begin = torch.full_like(begin, token)
            state.prompt()
        state.begin, state.heard = begin, None  # what is heard follows <bos>
        return len(prompt)

    def _check_prompt(self) -> None:
        """Check that the vocabulary has the tokens of the prompt that the settings ask for."""
        transcribe, tokens = self.settings.transcribe, self.tokens
        if transcribe.task == "translate" and not (transcribe.languages and tokens.translate is not None):
            raise InputError('task = "translate": the model is not one that translates speech; leave the task out')
        if transcribe.word_timestamps and not has_cross_attention(self.model):
            raise InputError("word_timestamps: the model has no cross-attention to follow the speech; leave it out")
        if transcribe.initial_prompt.strip() and tokens.previous is None:
            raise InputError("initial_prompt: the model reads no text of before; leave the prompt out")

    def _take(self, reading: Reading, output: Hypothesis, silence: float) -> None:
        """Add the output for the current window to a reading, unless it is an unlikely text of a silent window."""
        reading.complete &= output.complete
        likely = sum(output.token_scores) / len(output.token_scores) > UNLIKELY
        if silence > self.settings.transcribe.no_speech and not likely:
            reading.windows.skip(reading)
        else:
            times = self._times(reading, output.tokens) if self.settings.transcribe.word_timestamps else ()
            reading.windows.take(reading, TimedTokens(output.tokens, output.token_scores[: len(output.tokens)], times))

    def _times(self, reading: Reading, output: Sequence[int]) -> list[tuple[float, float]]:
        """Find begin and end of each token of the current window, in seconds of the recording."""
        audio, transcribe, tokens = self.settings.audio, self.settings.transcribe, self.tokens
        prompt: list[int | None] = [BOS]
        if transcribe.languages:
            task = tokens.translate if transcribe.task == "translate" else tokens.transcribe
            prompt += [tokens.languages[str(reading.language)], task]
        before = [token for token in (*prompt, tokens.without_times) if token is not None]
        text = tokens.text(output)
        target = torch.tensor([[*before, *text, EOS][: self.model.max_target_positions()]], device=self.device)

        # The heads that follow the speech; of a model whose recipe names none, those of its upper half.
        model = self.settings.model
        upper = range(model.decoder_layers // 2 * model.heads, model.decoder_layers * model.heads)
        heads = transcribe.alignment_heads or upper

        samples = reading.window()
        frames, padding_mask = (x.to(self.device) for x in padded_frames([samples], audio))
        weights = head_weights(self.model, frames, padding_mask, target, heads)
        hop = audio.hop * audio.stride  # samples for each position of the encoder
        starts = token_times(weights, -(-len(samples) // hop), len(before) - 1, len(before) + len(text))

        end = reading.begin / audio.rate
        seconds = [end + min(start * (hop / audio.rate), len(samples) / audio.rate) for start in starts.tolist()]
        of_text = iter(pairwise(seconds))
        times = []
        for token in output:  # time stamps and the like take no time
            begin, end = next(of_text) if token not in tokens.controls else (end, end)
            times.append((begin, end))
        return times

    def words(self, output: TimedTokens) -> list[Word]:
        """Return the words of an output with their times; none if the times of its tokens are not known."""
        if not output.times:
            return []
        triples = [triple for triple in zip(*output, strict=True) if triple[0] not in self.tokens.controls]
        spelled = [self.tokenizer.spell([token]) for token, _, _ in triples]
        return words_of(spelled, [times for _, _, times in triples], [score for _, score, _ in triples])

    def spell(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens without white space at its ends; line feeds and blanks inside are as written."""
        return self.tokenizer.decode(self.tokens.text(tokens)).strip()


@lru_cache(maxsize=1)
def _warn_of_missing_network() -> None:
    LOG.warning(
        "pauses are transcribed, too, in which a Whisper may write what nobody says: silero-vad, which detects speech, "
        "is not installed (pip install 'heedful[speech]'); --no-vad, or transcribe.vad = false, leaves it out"
    )


class Transcripts(Iterator[Transcript]):
    """Transcripts of recordings that are read side by side, some at a time; and what is known of the next ones.

    Args:
        transcriber: what transcribes them.
        readings: the recordings, none of which is read yet.
        window: number of recordings that are read side by side.
        done: called with the seconds of audio just transcribed.
    """

    def __init__(
        self,
        transcriber: Transcriber,
        readings: Iterator[Reading],
        window: int = WINDOW,
        done: Done = lambda _: None,
    ) -> None:
        self._transcriber = transcriber
        self._coming = readings
        self._window = window
        self._done = done
        self._readings: deque[Reading] = deque()

    def __next__(self) -> Transcript:
        if not self._readings:
            self._readings.extend(islice(self._coming, self._window))
        if not self._readings:
            raise StopIteration
        while not self._readings[0].finished:
            self._transcriber.read_on([reading for reading in self._readings if not reading.finished], self._done)
        return self._readings.popleft().transcript(self._transcriber.spell, self._transcriber.words)

    def heard(self) -> list[Transcript]:
        """Return the transcripts so far of the recordings that come next, in their order.

        Each is as long as what was read of it: 0 seconds where a later recording was read before.
        """
        return [reading.transcript(self._transcriber.spell, self._transcriber.words) for reading in self._readings]


def whole_seconds(reading: Reading) -> int:
    return min(reading.begin, reading.recording.length) // reading.recording.rate


def padded_frames(
    samples: Sequence[np.ndarray], config: AudioConfig
) -> tuple[Float[Tensor, "R T F"], Bool[Tensor, "R T"]]:
    """Compute the frames of several clips, each (N,), as a padded batch, with its padding mask."""
    frames = [frames_of(clip, config) for clip in samples]
    lengths = torch.tensor([len(clip) for clip in frames])
    batch = pad_sequence(frames, batch_first=True)
    return batch, torch.arange(batch.size(1)) < lengths[:, None]


def frames_of(samples: Samples, config: AudioConfig) -> Float[Tensor, "T F"]:
    sound = torch.from_numpy(samples)
    if config.features == "log_mel":
        return log_mel(sound, config)
    frames = config.frames(len(sound))
    sound = sound[: frames * config.hop]
    return torch.nn.functional.pad(sound, (0, frames * config.hop - len(sound))).view(frames, config.hop)
