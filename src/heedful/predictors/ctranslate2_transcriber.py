"""A transcriber whose search runs on CTranslate2: windows, rules and the order of outputs are the same as in torch.

R clips in a batch, M mel bands, T frames.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import cache
from typing import Any

import numpy as np

from heedful.config.schema import Recipe
from heedful.machine.process import map_on_cores
from heedful.predictors.ctranslate2_model import (
    CTranslate2Model,
    CTranslate2Predictor,
    LazyScores,
    import_ctranslate2,
    refuse,
)
from heedful.predictors.ctranslate2_translator import engine_penalty, search_misfits
from heedful.predictors.speech import MAX_FIRST_SECONDS, Reading, SpeechRules
from heedful.predictors.transcriber import Transcriber, padded_frames, speech_settings
from heedful.search.hypothesis import Hypothesis, length_penalty
from heedful.text.hugging_face import ids_of
from heedful.text.pipeline import BOS, EOS
from heedful.text.speech_tokens import BEGIN, END, LANGUAGE, STEP, SpeechTokens
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair

MULTILINGUAL = ""  # the empty token, by which CTranslate2 identifies OpenAI's multilingual vocabulary


def speech_misfits(recipe: Recipe, tokenizer: Tokenizer) -> list[str]:
    """List the transcription settings that CTranslate2 does not support, each with the supported values."""
    misfits, transcribe = search_misfits(recipe.decode, TokenizerPair(tokenizer, tokenizer)), recipe.transcribe
    if recipe.decode.min_tokens or recipe.decode.no_repeat_ngram:
        misfits.append("decode.min_tokens and decode.no_repeat_ngram: must not be set")
    if transcribe.word_timestamps:
        misfits.append("transcribe.word_timestamps = true: must be false")
    if transcribe.languages and transcribe.language is None and MULTILINGUAL not in ids_by_name(tokenizer):
        misfits.append("transcribe.language: must be set, because CTranslate2 detects it only with OpenAI's vocabulary")
    return misfits


def ids_by_name(tokenizer: Tokenizer) -> dict[str, int]:
    """Map the names of tokens in a Whisper vocabulary to heedful's ids."""
    return {**ids_of(json.loads(tokenizer.definition)), BEGIN: BOS, END: EOS}


class SpeechModel(CTranslate2Model):
    """Whisper model, whose vocabulary has OpenAI's names and order."""

    engine = "models.Whisper"

    @property
    def vocabulary(self) -> list[str]:
        return json.loads((self.folder / "vocabulary.json").read_text(encoding="utf-8"))

    def max_target_positions(self) -> int | None:
        """Return the number of target positions that the model has learned; None if it is unlimited."""
        return self.recipe.model.learned_target_positions


class CTranslate2Transcriber(CTranslate2Predictor, Transcriber):
    """Transcriber whose model runs on CTranslate2; `heedful.load(..., engine="ctranslate2")` returns one.

    The log-probabilities of the tokens of an output are computed by torch when one of them is first read.
    """

    model_class = SpeechModel
    reference_class = Transcriber

    def __init__(self, model: SpeechModel, tokenizers: TokenizerPair, options: Mapping[str, Any] | None) -> None:
        self.model: Any = model  # instead of a torch module
        self.tokenizer = tokenizers.target
        self.tokens = SpeechTokens.of(self.tokenizer)
        self.settings = self.recipe = speech_settings(model.recipe, options or {})
        self.config = self.settings.decode
        ids = ids_by_name(self.tokenizer)
        self.ids = [ids[name] for name in model.vocabulary]
        self.engine_ids = {token: index for index, token in enumerate(self.ids)}
        if options is not None:
            refuse(speech_misfits(self.settings, self.tokenizer))

    @staticmethod
    def misfits(recipe: Recipe, tokenizers: TokenizerPair, options: Mapping[str, Any] | None) -> list[str]:
        return [] if options is None else speech_misfits(speech_settings(recipe, options), tokenizers.target)

    def with_options(self, **options: Any) -> "CTranslate2Transcriber":
        refuse(speech_misfits(speech_settings(self.settings, options), self.tokenizer))
        changed: Any = super().with_options(**options)
        return changed

    def search_windows(self, batches: list[list[Reading]]) -> Iterator[list[tuple[Hypothesis, float]]]:
        engine = self.model.engine_for(batches)
        yield from map_on_cores(lambda batch: self._search_batch(engine, batch), batches, self.device)

    def _search_batch(self, engine: Any, batch: list[Reading]) -> list[tuple[Hypothesis, float]]:
        samples = [reading.window() for reading in batch]
        if self.settings.transcribe.languages:
            self._detect_languages(engine, batch, samples)

        # CTranslate2 has one limit for all rows of a call.
        limits = [self._max_output_tokens(reading, clip) for reading, clip in zip(batch, samples, strict=True)]
        outputs: dict[int, tuple[Hypothesis, float]] = {}
        for limit in dict.fromkeys(limits):
            indices = [index for index, each in enumerate(limits) if each == limit]
            results = self._generate(engine, [batch[i] for i in indices], [samples[i] for i in indices], limit)
            outputs |= dict(zip(indices, results, strict=True))
        return [outputs[index] for index in range(len(batch))]

    def _detect_languages(self, engine: Any, batch: list[Reading], samples: Sequence[np.ndarray]) -> None:
        unknown = [index for index, reading in enumerate(batch) if reading.language is None]
        if unknown:
            rankings = engine.detect_language(self._features([samples[index] for index in unknown]))
            for index, ranking in zip(unknown, rankings, strict=True):
                match = LANGUAGE.fullmatch(ranking[0][0])
                batch[index].language = match and match[1]

    def _features(self, samples: Sequence[np.ndarray]) -> Any:
        """Compute the frames (R M T) of clips, each of which is one window."""
        frames, _ = padded_frames(samples, self.settings.audio)
        return import_ctranslate2().StorageView.from_array(np.ascontiguousarray(frames.mT.numpy()))

    def _generate(
        self, engine: Any, batch: list[Reading], samples: Sequence[np.ndarray], limit: int
    ) -> Iterator[tuple[Hypothesis, float]]:
        """Search windows that share a token limit; yield the best output and the probability of silence for each."""
        config, times = self.config, batch[0].windows.times
        rules = SpeechRules.of(self.tokens, self.settings.transcribe, times, len(self.tokenizer))
        patience = config.patience if config.beam > 1 else 1
        prompts = [[*self.previous_tokens(), BOS, *self.prompt_tokens(reading)] for reading in batch]
        results = engine.generate(
            self._features(samples),
            [[self.engine_ids[token] for token in prompt] for prompt in prompts],
            beam_size=config.beam,
            patience=patience,
            num_hypotheses=round(config.beam * patience),
            length_penalty=engine_penalty(config),
            max_length=2 * limit,  # an output may have at most half of this
            return_scores=True,
            return_no_speech_prob=True,
            max_initial_timestamp_index=round(MAX_FIRST_SECONDS / STEP),
            suppress_tokens=[index for index, token in enumerate(self.ids) if rules.suppressed[token]],
        )
        for reading, result in zip(batch, results, strict=True):
            hypotheses = []
            for engine_ids, score in zip(result.sequences_ids, result.scores, strict=True):
                tokens = [self.ids[engine_id] for engine_id in engine_ids]
                length = len(tokens) + (len(tokens) < limit)  # with <eos>
                # CTranslate2's score is log P / |y|^exponent; heedful orders the outputs by a different penalty.
                log_prob = score * length ** engine_penalty(config)
                scores = LazyScores(self._scorer(reading, tokens), range(length))
                hypotheses.append(Hypothesis(tokens, scores, length_penalty(length, config), log_prob))
            silence = result.no_speech_prob if self.tokens.silence is not None else 0.0
            yield max(hypotheses, key=lambda hypothesis: hypothesis.score), silence

    def _scorer(self, reading: Reading, tokens: list[int]) -> Callable[[], list[float]]:
        """Return a function that computes log P of the tokens of the next window, and of <eos>, with torch."""
        stretch = reading.begin, reading.begin + reading.window_length
        window = Reading(reading.audio, reading.windows, [stretch], language=reading.language)

        @cache
        def scores() -> list[float]:
            # A copy: other calls share this predictor but have different settings.
            reference: Transcriber = copy(self.model.reference())
            reference.settings, reference.config = self.settings, self.config
            return reference.window_scores(window, [*tokens, EOS])

        return scores
