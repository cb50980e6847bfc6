"""Filling of gaps in a text with a masked language model such as BERT (fill-mask)."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import overload

import torch

from heedful.architectures import MaskedLanguageModel
from heedful.architectures.model import check_no_nan, evaluating
from heedful.errors import InputError
from heedful.predictors.outputs import MAX_OPTIONS, Answer, Option
from heedful.predictors.predictor import TEXTS, ModelInputs, Predictor
from heedful.predictors.text_predictor import row_inputs
from heedful.text.sequences import sequence
from heedful.text.tokenizer import BOS, EOS, MASK, Tokenizer

GAP = re.compile(r" ?(?:\[MASK\]|<mask>)")  # with the space before it, which the tokenizer makes part of a word


@dataclass(frozen=True)
class MaskCandidate:
    """A token that may fill a gap in a text, with the probability that the model gives it."""

    text: str
    token: int
    probability: float


class Filler(Predictor[MaskedLanguageModel, list[list[MaskCandidate]]]):
    """Filler of [MASK] gaps in texts: a masked language model with its tokenizer.

    Args:
        model: The masked language model.
        tokenizer: The tokenizer of the model, with a <mask> token.
        longest: The maximum number of tokens that the model reads.
    """

    tokenizer: Tokenizer

    def __init__(self, model: MaskedLanguageModel, tokenizer: Tokenizer, longest: int) -> None:
        super().__init__(model)
        self.tokenizer = tokenizer
        self.longest = longest

    @overload
    def fill(self, texts: str, count: int = 5) -> list[list[MaskCandidate]]: ...
    @overload
    def fill(self, texts: Iterable[str], count: int = 5) -> list[list[list[MaskCandidate]]]: ...
    def fill(self, texts: object, count: int = 5) -> list[list[MaskCandidate]] | list[list[list[MaskCandidate]]]:
        """Predict the most probable candidates for each gap in a text, or in each of several texts, best first.

        Several gaps in a text are filled independently: no candidate depends on those for other gaps.

        Args:
            texts: A text in which each gap, [MASK] or <mask>, stands for one token; or an iterable of such texts.
            count: The maximum number of candidates for each gap.
        """
        return TEXTS.one_or_all(lambda each: self.fill_lines(each, count), texts)

    __call__ = predict = fill

    def fill_lines(self, texts: Iterable[str], count: int = 5) -> Iterator[list[list[MaskCandidate]]]:
        """Predict the candidates for each gap in any number of texts, in order, one text at a time."""
        if count < 1:
            raise InputError(f"count = {count}: must be at least 1 candidate for each gap")
        return (self._filled(text, count) for text in TEXTS.each(texts))

    def model_inputs(self, value: str, second: str | None) -> ModelInputs:
        if GAP.search(value) and second is None:
            row = self.encode(value)
        else:
            pair = None if second is None else self.tokenizer.encode(second)
            row = sequence(self.tokenizer.encode(value), pair, longest=self.longest)
        return row_inputs(self.model, row)

    def ranked_options(self, value: str, second: str | None) -> list[Answer]:
        """Return the candidates for each gap; return [] for a pair, or for a text without gaps."""
        if second is not None or not GAP.search(value):
            return []
        gaps = [position for position, token in enumerate(self.encode(value)) if token == MASK]
        return [
            Answer([Option(candidate.text, candidate.probability) for candidate in candidates], position)
            for position, candidates in zip(gaps, self.fill(value, MAX_OPTIONS), strict=True)
        ]

    def unknown(self, text: str) -> list[str]:
        # A space next to a gap is not part of a word; the tokenizer adds one before the first word of each part.
        return [word for part in GAP.split(text) for word in self.tokenizer.unknown(part.strip())]

    def _filled(self, text: str, count: int) -> list[list[MaskCandidate]]:
        rows = torch.tensor([self.encode(text)], device=self.device)
        padding_mask = torch.ones_like(rows, dtype=torch.bool)
        first_piece = self.tokenizer.first_piece  # smaller ids are special tokens, which never fill a gap
        with torch.inference_mode(), evaluating(self.model):
            # (1, S, V) -> (gaps, pieces)
            logits = self.model(rows, padding_mask, torch.zeros_like(rows))[rows == MASK, first_piece:].float()
        check_no_nan(logits)
        probabilities, tokens = logits.softmax(-1).topk(min(count, logits.size(1)))  # one row for each gap

        def candidate(token: int, probability: float) -> MaskCandidate:
            text = self.tokenizer.decode([token]).strip() or self.tokenizer.pieces([token])[0]
            return MaskCandidate(text, token, probability)

        gaps = zip((tokens + first_piece).tolist(), probabilities.tolist(), strict=True)
        return [[candidate(*pair) for pair in zip(*gap, strict=True)] for gap in gaps]

    def encode(self, text: str) -> list[int]:
        """Encode a text with gaps as token ids: <mask> for each gap, between <bos> and <eos>."""
        first, *others = GAP.split(text)
        if not others:
            raise InputError(f"{text!r} has no gap; write [MASK] for each word to fill in")
        ids = self.tokenizer.encode(first) if first else []
        # A gap and the text after it continue the text before it, so the tokenizer must not add a space.
        for part in others:
            ids += [MASK, *self.tokenizer.encode_continuation(part)]
        if len(ids) + 2 > self.longest:
            raise InputError(
                f"the text has {len(ids) + 2} tokens, but the model reads at most {self.longest}; shorten it"
            )
        return [BOS, *ids, EOS]
