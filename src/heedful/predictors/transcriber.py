"""Speech recognition with an encoder-decoder: audio files or samples in, transcripts out, in order.

R clips in a batch, N samples, T frames, F features.
"""

import logging
import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

from heedful.architectures.model import SourceToTarget, evaluating
from heedful.config.modalities import AudioConfig
from heedful.config.options import DecodeOptions, TranscribeOptions, with_options
from heedful.config.schema import DecodeConfig, Recipe
from heedful.errors import InputError, OptionError
from heedful.machine.process import map_on_cores
from heedful.media.audio_reader import AudioSource, audio_reader
from heedful.media.modality import AudioClips, padded
from heedful.media.voice import network_weights, speech_stretches
from heedful.predictors.cross_attention import attention_layers, head_weights
from heedful.predictors.media_reader import MediaReader
from heedful.predictors.predictor import Done, InputKind, Predictor, check_one_text
from heedful.predictors.speech import (
    OverlappingWindows,
    Reading,
    SpeechRules,
    SpeechState,
    TimedTokens,
    TimestampedWindows,
)
from heedful.predictors.transcript import Transcript
from heedful.predictors.word_times import Word, alignment_heads, token_times, words_of
from heedful.search.beam import check_beam, search
from heedful.search.hypothesis import Hypothesis, length_penalty
from heedful.text.speech_tokens import SpeechTokens
from heedful.text.tokenizer import BOS, EOS, Tokenizer

LOG = logging.getLogger(__name__)

WINDOW = 16  # audio files transcribed at a time
# Mean log-probability of a token: in a window that may be silent, a less probable text is dropped (Radford et al. 2022,
# section 4.5).
MIN_LOG_PROB = -1.0
UNKNOWN_LANGUAGE = "tgt"  # data.target_language of a recipe that does not set it
AUDIO_TYPES = (str, bytes, PathLike, BufferedIOBase, np.ndarray, torch.Tensor)  # of one input
GIVE = "a file name, bytes or an array of samples"


class Transcriber(Predictor[SourceToTarget, Transcript]):
    """Transcriber: an encoder-decoder from audio to text. The transcript of a file never depends on other audio.

    Audio is a file name, the file's bytes, or an array of samples from -1 to 1 at the sample rate `audio.rate`. It may
    have any length: if it is longer than `audio.max_seconds`, it is read window by window, in bounded memory.

    Args:
        model: An encoder-decoder whose input layer reads frames of audio.
        tokenizer: The tokenizer of the text.
        recipe: The recipe of the model, with [audio], [decode] and [transcribe].
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
        missing = [code for code in transcribe.languages if code not in self.tokens.languages]
        largest = max((*transcribe.suppress, *transcribe.suppress_first), default=0)
        if missing or largest >= len(tokenizer):
            what = f"token {largest}" if not missing else f"token for the language {missing[0]}"
            raise InputError(
                f"[transcribe] in the recipe: the vocabulary of {len(tokenizer)} tokens has no {what}; use the "
                "tokenizer that the model was trained with"
            )

    @cached_property
    def reader(self) -> MediaReader:
        """Reader of audio that fits into one window, for the inspector."""
        return MediaReader(self.model, self.settings)

    def with_options(self, **options: Unpack[TranscribeOptions]) -> "Transcriber":
        """Create a transcriber that shares this model, with different settings."""
        changed = copy(self)
        changed.settings = speech_settings(self.settings, options)
        changed.config, transcribe = changed.settings.decode, changed.settings.transcribe
        changed.recipe = self.recipe and changed.settings

        # Invalid options are rejected here, before any audio is read.
        language = options.get("language")
        if language is not None and language not in transcribe.languages:
            languages = (
                ", ".join(transcribe.languages)
                or f"only {self.language or 'one language, which its recipe does not name'}"
            )
            raise option_error("language", f" = {language}: the model knows {languages}; leave the language out")
        tokens = self.tokens
        if transcribe.task == "translate" and not (transcribe.languages and tokens.translate is not None):
            raise option_error("task", ' = "translate": this model does not translate speech; leave the task out')
        if transcribe.word_timestamps and not attention_layers(self.model):
            raise option_error(
                "word_timestamps", ": the model has no cross-attention to align words with; leave this option out"
            )
        if transcribe.initial_prompt.strip() and tokens.previous is None:
            raise option_error("initial_prompt", ": the model does not read previous text; leave the prompt out")
        return changed

    @overload
    def transcribe(self, files: AudioSource, **options: Unpack[TranscribeOptions]) -> Transcript: ...
    @overload
    def transcribe(self, files: Iterable[AudioSource], **options: Unpack[TranscribeOptions]) -> list[Transcript]: ...
    def transcribe(
        self, files: AudioSource | Iterable[AudioSource], **options: Unpack[TranscribeOptions]
    ) -> Transcript | list[Transcript]:
        """Transcribe an audio file or samples, or each of several.

        Args:
            files: A file name, its bytes, or samples, which give one transcript; or an iterable of these, which gives a
                list of transcripts.
            options: Keys of [transcribe] and [decode] for this call, such as `language="de"` and `beam=1`; see
                `TranscribeOptions`.
        """
        transcriber = self._with_one_text(options)
        return transcriber.inputs.one_or_all(lambda readings: Transcripts(transcriber, readings), files)

    __call__ = predict = transcribe

    def transcribe_each(
        self,
        files: Iterable[AudioSource],
        window: int = WINDOW,
        done: Done = lambda _: None,
        **options: Unpack[TranscribeOptions],
    ) -> "Transcripts":
        """Transcribe any amount of audio, in order; yield each transcript once it and all previous ones are complete.

        Args:
            files: File names, bytes, or samples.
            window: Number of files that are transcribed at a time.
            done: Called with the seconds of audio just transcribed, after each round, in which every file advances by
                one window.
            options: As for `transcribe`.
        """
        transcriber = self._with_one_text(options)
        return Transcripts(transcriber, transcriber.inputs.each(files), window, done)

    def _with_one_text(self, options: TranscribeOptions) -> "Transcriber":
        transcriber = self.with_options(**options)
        check_one_text(options, transcriber.config, "an audio file has one transcript; leave n_best out")
        return transcriber

    @property
    def inputs(self) -> InputKind[Reading]:
        return InputKind("audio file", AUDIO_TYPES, self.begin, GIVE)

    @property
    def language(self) -> str | None:
        """The only language of the model; None if it has several, or if its recipe does not name it."""
        only = self.settings.data.target_language
        return None if self.settings.transcribe.languages or only == UNKNOWN_LANGUAGE else only

    def begin(self, source: object) -> Reading:
        """Prepare to read audio, with timestamps if the model has them and the settings request them."""
        audio, transcribe = self.settings.audio, self.settings.transcribe
        truncated = self.settings.data.truncated_files == "read"
        clip, length = audio_reader(source, audio, truncated=truncated), round(audio.max_seconds * audio.rate)
        stamped = {"always": True, "long": clip.length > length, "never": False}[transcribe.timestamps]
        windows = (
            TimestampedWindows(length, self.tokens)
            if stamped and self.tokens.times
            else OverlappingWindows(length, transcribe.overlap)
        )
        if transcribe.vad and network_weights() is None:
            _warn_of_missing_network()
        stretches = speech_stretches(clip, network=transcribe.vad and network_weights() is not None)
        return Reading(clip, windows, stretches, language=transcribe.language or self.language)

    def read_windows(self, readings: list[Reading], done: Done) -> None:
        """Transcribe the next window of each reading."""
        check_beam(self.config.beam, len(self.tokenizer), self.device)
        batches = list(self._batches(readings))
        # Whole seconds, so that the steps of a progress bar add up to its total.
        before = sum(map(whole_seconds, readings))
        for batch, outputs in zip(batches, self.search_windows(batches), strict=True):
            for reading, (hypothesis, silence) in zip(batch, outputs, strict=True):
                self._take(reading, hypothesis, silence)
        done(sum(map(whole_seconds, readings)) - before)

    def _batches(self, readings: list[Reading]) -> Iterator[list[Reading]]:
        """Group the next windows by length into batches; no batch mixes windows with and without timestamps."""
        audio, config = self.settings.audio, self.config
        sizes = [(len(reading.windows.times), audio.tokens(reading.window_length)) for reading in readings]
        batch: list[int] = []
        for i in sorted(range(len(readings)), key=lambda i: sizes[i], reverse=True):
            kind, max_tokens = sizes[batch[0]] if batch else sizes[i]
            full = (len(batch) + 1) * max_tokens * config.beam > config.batch_tokens
            if batch and (full or kind != sizes[i][0]):
                yield [readings[i] for i in batch]
                batch = []
            batch.append(i)
        yield [readings[i] for i in batch]

    def search_windows(self, batches: list[list[Reading]]) -> Iterator[list[tuple[Hypothesis, float]]]:
        """Search the next windows; yield, for each batch, the best output and probability of silence of each window."""
        with evaluating(self.model):
            yield from map_on_cores(self._search, batches, self.device)

    @torch.inference_mode()
    def _search(self, batch: list[Reading]) -> list[tuple[Hypothesis, float]]:
        samples = [reading.window() for reading in batch]
        state = self._start(batch, samples)
        limits = [self._max_output_tokens(reading, clip) for reading, clip in zip(batch, samples, strict=True)]
        hypotheses = [best for (best,) in search(state, limits, replace(self.config, n_best=1))]

        # The probability of silence is that of the token for silence after <bos>; 0 if the model has no such token.
        silence = [0.0] * len(state.begin)
        if state.first_logits is not None and self.tokens.silence is not None:
            silence = state.first_logits.float().softmax(1)[:, self.tokens.silence].tolist()
        return list(zip(hypotheses, silence, strict=True))

    def _start(self, batch: Sequence[Reading], samples: Sequence[np.ndarray]) -> SpeechState:
        """Start decoding the next window of each reading, and feed all of the prompt except its last token.

        A language that is not set is detected.
        """
        languages, times = self.settings.transcribe.languages, batch[0].windows.times
        frames, padding_mask = (x.to(self.device) for x in padded_frames(samples, self.settings.audio))
        rules = SpeechRules.of(self.tokens, self.settings.transcribe, times, len(self.tokenizer))
        state = SpeechState(self.model.start(frames, padding_mask), rules.to(self.device))

        # The previous text comes before <bos>, after which the logits show the probability of silence.
        begin = state.begin
        for token in self.previous_tokens():
            state.begin = torch.full_like(begin, token)
            state.prompt()
        state.begin, state.first_logits = begin, None

        # The token after <bos> is the language. If it is not set, the most probable one is used (Radford et al. 2022).
        if languages:
            logits = state.prompt()[:, [self.tokens.languages[code] for code in languages]]
            for reading, number in zip(batch, logits.argmax(1).tolist(), strict=True):
                reading.language = reading.language or languages[number]
        prompts = [self.prompt_tokens(reading) for reading in batch]
        # Feed one position of all prompts at a time. The readings of a batch are of the same kind, so their prompts
        # have equal lengths.
        for position, column in enumerate(zip(*prompts, strict=True)):
            if position or not languages:  # otherwise <bos> has already been fed
                state.prompt()
            state.begin = torch.tensor(column, device=begin.device)
        return state

    @torch.inference_mode()
    def window_scores(self, reading: Reading, output: Sequence[int]) -> list[float]:
        """Compute log P of each token of an output, which includes <eos>, for the next window of a reading."""
        with evaluating(self.model):
            state = self._start([reading], [reading.window()])
            scores = []
            token = state.begin
            for following in output:
                scores.append(state.step(token)[0].float().log_softmax(0)[following].item())
                token = torch.tensor([following], device=token.device)
        return scores

    def previous_tokens(self) -> list[int]:
        """Return the tokens before <bos>: the initial prompt, as the previous text of the transcript."""
        text, room = self.settings.transcribe.initial_prompt.strip(), self.model.max_target_positions()
        if not text or self.tokens.previous is None:
            return []
        ids = self.tokenizer.encode(f" {text}")
        # At most half of the positions, as in Whisper's code: the other half is for the transcript.
        return [self.tokens.previous, *(ids if room is None else ids[-max(1, room // 2 - 1) :])]

    def prompt_tokens(self, reading: Reading, *, stamped: bool | None = None) -> list[int]:
        """Return the tokens between <bos> and the transcript of a window, whose language is known."""
        tokens, transcribe = self.tokens, self.settings.transcribe
        prompt: list[int | None] = []
        if transcribe.languages:
            task = tokens.translate if transcribe.task == "translate" else tokens.transcribe
            prompt += [tokens.languages[str(reading.language)], task]
        if not (reading.windows.times if stamped is None else stamped):
            prompt.append(tokens.without_times)
        return [token for token in prompt if token is not None]

    def _max_output_tokens(self, reading: Reading, samples: np.ndarray) -> int:
        """Return the maximum number of tokens in the transcript of a window, <eos> included."""
        length = len(self.previous_tokens()) + 1 + len(self.prompt_tokens(reading))
        room = (self.model.max_target_positions() or math.inf) - length
        return int(min(room, self.settings.audio.tokens(len(samples)) + self.config.extra))

    def _take(self, reading: Reading, output: Hypothesis, silence: float) -> None:
        """Add the output for the current window to a reading, unless it is an improbable text in a silent window."""
        reading.complete &= output.complete
        length = len(output.token_scores)
        # Without its length penalty the score is log P; divided by the length, it is the mean per token.
        likely = output.score * length_penalty(length, self.config) / length > MIN_LOG_PROB
        if silence > self.settings.transcribe.no_speech and not likely:
            reading.windows.skip(reading)
        else:
            times = self._times(reading, output.tokens) if self.settings.transcribe.word_timestamps else ()
            reading.windows.take(reading, TimedTokens(output.tokens, output.token_scores[: len(output.tokens)], times))

    def _times(self, reading: Reading, output: Sequence[int]) -> list[tuple[float, float]]:
        """Return the beginning and end of each token of the current window, in seconds from the start of the audio."""
        audio, tokens = self.settings.audio, self.tokens
        # The text is aligned without timestamps, as in Whisper's code, and without previous text.
        before = [BOS, *self.prompt_tokens(reading, stamped=False)]
        text = tokens.text(output)
        target = torch.tensor([[*before, *text, EOS][: self.model.max_target_positions()]], device=self.device)

        samples = reading.window()
        frames, padding_mask = (x.to(self.device) for x in padded_frames([samples], audio))
        target_mask = torch.ones_like(target, dtype=torch.bool)
        [weights] = head_weights(self.model, frames, padding_mask, target, target_mask, alignment_heads(self.settings))
        hop = audio.hop * audio.stride  # samples for each position of the encoder
        starts = token_times(weights, -(-len(samples) // hop), len(before) - 1, len(before) + len(text))

        end = reading.begin / audio.rate
        seconds = [end + min(start * (hop / audio.rate), len(samples) / audio.rate) for start in starts.tolist()]
        of_text = iter(pairwise(seconds))
        times = []
        for token in output:  # timestamps and other controls take no time
            begin, end = next(of_text) if token not in tokens.controls else (end, end)
            times.append((begin, end))
        return times

    def words(self, output: TimedTokens) -> list[Word]:
        """Return the words of an output with their times; return [] if its tokens have no times."""
        if not output.times:
            return []
        triples = [triple for triple in zip(*output, strict=True) if triple[0] not in self.tokens.controls]
        token_bytes = [self.tokenizer.spell([token]) for token, _, _ in triples]
        return words_of(token_bytes, [times for _, _, times in triples], [score for _, score, _ in triples])

    def spell(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, without whitespace at its ends."""
        return self.tokenizer.decode(self.tokens.text(tokens)).strip()


def option_error(name: str, problem: str) -> OptionError:
    return OptionError(f"{name}{problem}", f"transcribe.{name}{problem}")


def speech_settings(recipe: Recipe, options: Mapping[str, Any]) -> Recipe:
    """Copy a recipe with different values for keys in its tables [transcribe] and [decode]."""
    own = TranscribeOptions.__annotations__.keys() - DecodeOptions.__annotations__.keys()
    speech = {key: value for key, value in options.items() if key in own}
    decode = {key: value for key, value in options.items() if key not in own}
    language = speech.pop("language", recipe.transcribe.language)
    transcribe = replace(with_options(recipe.transcribe, speech), language=language)
    return replace(recipe, decode=with_options(recipe.decode, decode), transcribe=transcribe)


@lru_cache(maxsize=1)
def _warn_of_missing_network() -> None:
    LOG.warning(
        "silero-vad, which detects speech, is not installed, so pauses are transcribed as well, in which Whisper may "
        "hallucinate text; install it with pip install 'heedful[speech]', or set --no-vad or transcribe.vad = false"
    )


class Transcripts(Iterator[Transcript]):
    """Iterator over the transcripts of audio files, `window` of which are transcribed at a time.

    `done` is called with the seconds of audio just transcribed.
    """

    def __init__(
        self,
        transcriber: Transcriber,
        readings: Iterator[Reading],
        window: int = WINDOW,
        done: Done = lambda _: None,
    ) -> None:
        self._transcriber = transcriber
        self._unread = readings
        self._window = window
        self._done = done
        self._readings: deque[Reading] = deque()

    def __next__(self) -> Transcript:
        if not self._readings:
            self._readings.extend(islice(self._unread, self._window))
        if not self._readings:
            raise StopIteration
        while not self._readings[0].finished:
            self._transcriber.read_windows([each for each in self._readings if not each.finished], self._done)
        return self._readings.popleft().transcript(self._transcriber.spell, self._transcriber.words)

    def so_far(self) -> list[Transcript]:
        """Return the transcripts so far of the audio files being read, in order; those not started have 0 seconds."""
        return [reading.transcript(self._transcriber.spell, self._transcriber.words) for reading in self._readings]


def whole_seconds(reading: Reading) -> int:
    return min(reading.begin, reading.audio.length) // reading.audio.rate


def padded_frames(
    samples: Sequence[np.ndarray], config: AudioConfig
) -> tuple[Float[Tensor, "R T F"], Bool[Tensor, "R T"]]:
    """Compute the frames of several clips, each (N,), as a padded batch with its padding mask."""
    clips = AudioClips(config)
    return padded([clips.features(clip) for clip in samples])
