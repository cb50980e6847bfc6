"""Translates text with a trained encoder-decoder: lines in, translations out, in order and in bounded memory."""

import math
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from itertools import islice
from typing import Unpack, overload

import torch

from heedful.config.options import DecodeOptions, with_options
from heedful.config.schema import DecodeConfig
from heedful.decode.beam import check_beam, search
from heedful.decode.hypothesis import Hypothesis
from heedful.decode.inference import batches, evaluating
from heedful.decode.inputs import TEXTS
from heedful.decode.predictor import Done, Predictor, check_one_text
from heedful.errors import InputError
from heedful.machine.cores import map_on_cores
from heedful.models.model import SourceToTarget
from heedful.text.padding import pad
from heedful.text.tokenizer import EOS
from heedful.text.tokenizer_pair import TokenizerPair

WINDOW = 1024  # lines read at a time: enough to make batches of similar length
LONGEST_SOURCE = 1000  # tokens with <eos>; the cost of attention grows with the square
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

    def __str__(self) -> str:
        return self.text


class Translator(Predictor[SourceToTarget, str]):
    """Translator: an encoder-decoder with its tokenizers. The translation of a line never depends on other lines.

    Raises:
        InputError: the model's learned positions leave no room for a source sentence beside `config.max_extra`.
    """

    def __init__(self, model: SourceToTarget, tokenizers: TokenizerPair, config: DecodeConfig) -> None:
        super().__init__(model)
        self.tokenizers = tokenizers
        self.config = config
        self.longest_source = longest_source(model, config)

    def with_options(self, **options: Unpack[DecodeOptions]) -> "Translator":
        """Create a translator that shares this model, with other settings for decoding.

        Raises:
            InputError: an option does not exist, or has a value that [decode] cannot have.
        """
        changed = copy(self)
        changed.config = with_options(self.config, options)
        changed.longest_source = longest_source(self.model, changed.config)
        changed.recipe = self.recipe and replace(self.recipe, decode=changed.config)
        return changed

    @overload
    def translate(self, texts: str, **options: Unpack[DecodeOptions]) -> str: ...
    @overload
    def translate(self, texts: Iterable[str], **options: Unpack[DecodeOptions]) -> list[str]: ...
    def translate(self, texts: object, **options: Unpack[DecodeOptions]) -> str | list[str]:
        """Translate a text, usually a sentence, or each of several texts; a blank text has an empty translation.

        `translate_lines` returns the n best translations of `decode.n_best`, not only the best.

        Args:
            texts: a string, which has one translation; or an iterable of strings, which gives a list in the same order.
            options: keys of [decode] for this call, such as `beam=1`.

        Raises:
            InputError: an input is no text, an option does not exist, its value is not allowed, or `n_best` is above 1.
        """
        chosen = self.with_options(**options)
        remedy = "for the n best take `.alternatives` of what translate_lines(texts, n_best=...) gives"
        check_one_text(options, chosen.config, f"translate gives one translation of a text; {remedy}")
        return TEXTS.one_or_all(lambda lines: (found.text for found in chosen.translate_lines(lines)), texts)

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
            options: keys of [decode] for this call, such as `n_best=3`.

        Raises:
            InputError: a line is not a text, an option does not exist, or its value is not allowed.
        """
        return self.with_options(**options)._translated(TEXTS.each(lines), window, done)

    def _translated(self, lines: Iterator[str], window: int, done: Done) -> Iterator[Translation]:
        most = self.longest_source * CHARACTERS_PER_TOKEN
        while texts := [line[: most + 1] for line in islice(lines, window)]:
            rows = self._encode(texts)
            found = self.search_rows([row[: self.longest_source - 1] for row in rows], done)
            for text, row, hypotheses in zip(texts, rows, found, strict=True):
                truncated = len(text) > most or len(row) >= self.longest_source
                yield Translation([Alternative(self._decode(h), h) for h in hypotheses], truncated)

    def search_rows(self, rows: list[list[int]], done: Done = lambda _: None) -> list[list[Hypothesis]]:
        """Find the `n_best` translations of each row of token ids without <eos>, best first; an empty row has none.

        `done` is called with the number of rows just searched, after each batch.

        Raises:
            InputError: the beam is larger than the vocabulary, or needs more memory than is free.
        """
        check_beam(self.config.beam, len(self.tokenizers.target), self.device)
        found: list[list[Hypothesis]] = [[] for _ in rows]
        cut = list(batches(rows, self.config.batch_tokens // self.config.beam))
        done(sum(not row for row in rows))
        with evaluating(self.model):
            searched = map_on_cores(self._search, [[rows[i] for i in batch] for batch in cut], self.device)
            for batch, outputs in zip(cut, searched, strict=True):
                for index, hypotheses in zip(batch, outputs, strict=True):
                    found[index] = hypotheses
                done(len(batch))
        return found

    def _encode(self, texts: list[str]) -> list[list[int]]:
        rows = self.tokenizers.source.encode_batch(texts)
        return [row if text.strip() else [] for text, row in zip(texts, rows, strict=True)]

    def _decode(self, hypothesis: Hypothesis) -> str:
        return self.tokenizers.target.decode(hypothesis.tokens)

    @torch.inference_mode()
    def _search(self, rows: list[list[int]]) -> list[list[Hypothesis]]:
        source, padding_mask = (torch.from_numpy(x).to(self.device) for x in pad([[*row, EOS] for row in rows]))
        limits = (padding_mask.sum(1) - 1 + self.config.max_extra).tolist()
        return search(self.model.start(source, padding_mask), limits, self.config)


def longest_source(model: SourceToTarget, config: DecodeConfig) -> int:
    """Compute the most source tokens, with <eos>, that leave the translation enough positions of the model.

    Raises:
        InputError: not even one source token fits.
    """
    source, target = model.max_positions(), model.max_target_positions()
    room = math.inf if target is None else target - config.max_extra
    if room < 2:
        raise InputError(
            f"decode.max_extra = {config.max_extra} leaves no room for a source sentence in the "
            f"{target} positions that the model has learned; lower it"
        )
    return int(min(room, source or math.inf, LONGEST_SOURCE))
