"""Translates text with a trained encoder-decoder: lines in, translations out, in order and in bounded memory."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Unpack, overload

import torch

from heedful.architectures.model import SourceToTarget, batches, check_numbers, evaluating
from heedful.config.options import DecodeOptions
from heedful.config.schema import DecodeConfig
from heedful.errors import InputError
from heedful.machine.process import map_on_cores
from heedful.predictors.outputs import TokenScores, log_probs_of
from heedful.predictors.predictor import TEXTS, Done, InputKind, Predictor, as_text, check_one_text, described
from heedful.search.beam import check_beam, search
from heedful.search.hypothesis import Hypothesis
from heedful.text.sequences import pad
from heedful.text.tokenizer import BOS, EOS, Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair

WINDOW = 1024  # lines read at a time: enough to make batches of similar length
MAX_SOURCE_TOKENS = 1000  # with <eos>; the cost of attention grows with the square
CHARACTERS_PER_TOKEN = 64  # more than any language has: a longer line is cut before it is encoded


@dataclass(frozen=True)
class Alternative:
    """One of the n best translations of a line: its text and its hypothesis."""

    text: str
    hypothesis: Hypothesis


@dataclass(frozen=True)
class Translation:
    """Translation of one line: the n best alternatives, and whether the line was cut.

    Attributes:
        alternatives: at most `n_best` translations, best first; none if the line is blank.
        truncated: True if the line was longer than the model can read, so that its end is not translated.
    """

    alternatives: list[Alternative]
    truncated: bool

    @property
    def text(self) -> str:
        """The text of the best translation; empty if the line is blank."""
        return self.alternatives[0].text if self.alternatives else ""

    @property
    def complete(self) -> bool:
        """False if the best translation reached the length limit, and was cut there."""
        return all(best.hypothesis.complete for best in self.alternatives[:1])

    def __str__(self) -> str:
        return self.text


class Translator(Predictor[SourceToTarget, str]):
    """Translator: an encoder-decoder with its tokenizers. The translation of a line never depends on other lines."""

    tokenizer: Tokenizer

    def __init__(self, model: SourceToTarget, tokenizers: TokenizerPair, config: DecodeConfig) -> None:
        super().__init__(model)
        self.tokenizers = tokenizers
        self.tokenizer = tokenizers.source
        self.config: DecodeConfig = config

    def with_options(self, **options: Unpack[DecodeOptions]) -> "Translator":
        """Create a translator that shares this model, with other settings for decoding."""
        return self._configured(options)

    @overload
    def translate(self, texts: str, **options: Unpack[DecodeOptions]) -> str: ...
    @overload
    def translate(self, texts: Iterable[str], **options: Unpack[DecodeOptions]) -> list[str]: ...
    def translate(self, texts: object, **options: Unpack[DecodeOptions]) -> str | list[str]:
        """Translate a text, usually a sentence, or each of several texts; a blank text has an empty translation.

        `translate_lines` returns the n best translations of `decode.n_best`, not only the best.

        Args:
            texts: a string, which has one translation; or an iterable of strings, which gives a list in the same order.
            options: keys of [decode] for this call, such as `beam=1`, as for `with_options`.
        """
        translator = self.with_options(**options)
        remedy = "for the n best take `.alternatives` of what translate_lines(texts, n_best=...) gives"
        check_one_text(options, translator.config, f"translate gives one translation of a text; {remedy}")
        return TEXTS.one_or_all(lambda lines: (each.text for each in translator.translate_lines(lines)), texts)

    __call__ = predict = translate

    def translate_lines(
        self,
        lines: Iterable[str],
        window: int = WINDOW,
        done: Done = lambda _: None,
        **options: Unpack[DecodeOptions],
    ) -> Iterator[Translation]:
        """Translate any number of lines, in their order, and yield each translation with all its alternatives.

        Args:
            lines: texts, usually one sentence each.
            window: number of lines read before their translations are yielded.
            done: called with the number of lines just translated, after each batch.
            options: keys of [decode] for this call, such as `n_best=3`, as for `with_options`.
        """
        return self.with_options(**options)._translated(TEXTS.each(lines), window, done)

    def _translated(self, lines: Iterator[str], window: int, done: Done) -> Iterator[Translation]:
        max_characters = self.longest_source * CHARACTERS_PER_TOKEN
        while texts := [line[: max_characters + 1] for line in islice(lines, window)]:
            rows = self.tokenizers.source.encode_batch(texts)
            rows = [row if text.strip() else [] for text, row in zip(texts, rows, strict=True)]
            outputs = self.search_rows([row[: self.longest_source - 1] for row in rows], done)

            for text, row, hypotheses in zip(texts, rows, outputs, strict=True):
                truncated = len(text) > max_characters or len(row) >= self.longest_source
                decode = self.tokenizers.target.decode
                yield Translation([Alternative(decode(h.tokens), h) for h in hypotheses], truncated)

    @overload
    def score(self, pairs: tuple[str, str]) -> TokenScores: ...
    @overload
    def score(self, pairs: Iterable[tuple[str, str]]) -> list[TokenScores]: ...
    def score(self, pairs: object) -> TokenScores | list[TokenScores]:
        """Compute the log-probability of each token of a translation given its source, <eos> at the end included.

        Args:
            pairs: a tuple of a source and a translation; or an iterable of such pairs, which gives a list in the same
                order.

        Raises:
            InputError: an input is not a pair of texts, or a text is longer than the model reads.
            RunError: the model's output is not a number.
        """
        if isinstance(pairs, str) or hasattr(pairs, "columns"):  # its characters, or names of columns, would be pairs
            as_pair(pairs)
        return PAIRS.one_or_all(self._scored, pairs)

    def _scored(self, pairs: Iterator[tuple[str, str]]) -> Iterator[TokenScores]:
        number = 0
        limits = {"source": self.model.max_positions(), "translation": self.model.max_target_positions()}
        while window := list(islice(pairs, WINDOW)):
            sources = [[*row, EOS] for row in self.tokenizers.source.encode_batch([source for source, _ in window])]
            targets = [[*row, EOS] for row in self.tokenizers.target.encode_batch([target for _, target in window])]
            for rows in zip(sources, targets, strict=True):
                number += 1
                for row, (side, limit) in zip(rows, limits.items(), strict=True):
                    if limit is not None and len(row) > limit:
                        raise InputError(
                            f"pair {number}: the {side} has {len(row):,} tokens, and the model reads {limit:,}; "
                            "shorten it"
                        )
            scores = self._score_rows(sources, targets)
            yield from map(TokenScores, targets, map(self.tokenizers.target.pieces, targets), scores)

    @torch.inference_mode()
    def _score_rows(self, sources: list[list[int]], targets: list[list[int]]) -> list[list[float]]:
        scores: list[list[float]] = [[]] * len(sources)
        longer = [max(pair, key=len) for pair in zip(sources, targets, strict=True)]
        with evaluating(self.model):
            for batch in batches(longer, self.config.batch_tokens):
                source, source_mask = self._padded([sources[i] for i in batch])
                target, target_mask = self._padded([[BOS, *targets[i]] for i in batch])
                hidden = self.model.hidden(source, source_mask, target[:, :-1], target_mask[:, 1:])
                for index, states, row in zip(batch, hidden, target, strict=True):
                    size = len(targets[index])
                    log_probs = log_probs_of(states[:size], row[1 : size + 1], self.model.output)
                    check_numbers(log_probs)
                    scores[index] = log_probs.tolist()
        return scores

    def _padded(self, rows: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        ids, padding_mask = (torch.from_numpy(x).to(self.device) for x in pad(rows))
        return ids, padding_mask

    def search_rows(self, rows: list[list[int]], done: Done = lambda _: None) -> list[list[Hypothesis]]:
        """Find the `n_best` translations of each row of token ids without <eos>, best first; an empty row has none.

        `done` is called with the number of rows just searched, after each batch.
        """
        check_beam(self.config.beam, len(self.tokenizers.target), self.device)
        outputs: list[list[Hypothesis]] = [[] for _ in rows]
        places = list(batches(rows, self.config.batch_tokens // self.config.beam))
        done(sum(not row for row in rows))
        with evaluating(self.model):
            searches = map_on_cores(self._search, [[rows[i] for i in batch] for batch in places], self.device)
            for batch, hypotheses in zip(places, searches, strict=True):
                for index, best in zip(batch, hypotheses, strict=True):
                    outputs[index] = best
                done(len(batch))
        return outputs

    @torch.inference_mode()
    def _search(self, rows: list[list[int]]) -> list[list[Hypothesis]]:
        source, padding_mask = self._padded([[*row, EOS] for row in rows])
        limits = [self.longest_output(len(row)) for row in rows]
        return search(self.model.start(source, padding_mask), limits, self.config)

    @property
    def longest_source(self) -> int:
        """The most source tokens that are read, <eos> counted; the rest of a longer line is not translated."""
        return min(self.model.max_positions() or MAX_SOURCE_TOKENS, MAX_SOURCE_TOKENS)

    def longest_output(self, source: int) -> int:
        """The most tokens of a translation, <eos> counted, of a source with so many tokens without <eos>."""
        limit = source + self.config.extra
        return min(limit, self.model.max_target_positions() or limit)


def as_pair(value: object) -> tuple[str, str]:
    """Check that an input is a pair of a source and a translation."""
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 2:
        raise InputError(f"{described(value)} is not a pair; give (source, translation), or several in a list")
    return as_text(value[0]), as_text(value[1])


PAIRS = InputKind("pair", (tuple,), as_pair, "(source, translation)")
