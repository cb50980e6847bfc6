"""How whatever uses a model comes to one forward pass over a text: what is read, what is written, and the pass itself.

B = 1 batch, T target tokens, V vocabulary.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.decode.filler import GAP, Filler
from heedful.decode.generator import Generation, GenerationRequest, Generator
from heedful.decode.predictor import BasePredictor
from heedful.decode.translator import Translator
from heedful.errors import InputError
from heedful.inspector.capture.pieces import Pieces
from heedful.models import Model
from heedful.models.decoding_state import DecodingState
from heedful.predict.answerer import Answerer
from heedful.predict.batching import Text
from heedful.predict.classifier import Classifier
from heedful.predict.retriever import Retriever
from heedful.predict.scorer import Scorer
from heedful.predict.tagger import Tagger
from heedful.tasks.sequence_to_sequence import collate
from heedful.text.padding import pad
from heedful.text.sequence import segments, sequence
from heedful.text.tokenizer import BOS, EOS, Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair


@dataclass(frozen=True)
class TokenLine:
    """A text that runs through a model.

    Attributes:
        read: the tokens that go in.
        written: what each of them has to be followed by, where the model writes; of a prompt its own tokens.
    """

    read: Pieces
    written: Pieces | None = None

    @property
    def said(self) -> Pieces:
        """What the states of the tokens stand for: what is written from them, or else the tokens themselves."""
        return self.written or self.read


@dataclass(frozen=True)
class ForwardPass:
    """One forward pass over a text.

    Attributes:
        model: in any mode.
        tokenizer: of what the model writes, or of what it reads where it writes nothing.
        lines: by the names of `heedful.inspector.capture.taps.TappedStack`: "src", "tgt" or both.
        run: makes the pass; the result is the model's.
        steps: makes the same logits a token at a time, as a search does, where a model writes.
    """

    model: nn.Module
    tokenizer: Tokenizer
    lines: dict[str, TokenLine]
    run: Callable[[], Tensor]
    steps: Callable[[], Tensor] | None = None


def of_translator(subject: Translator, text: str, target: str | None) -> ForwardPass:
    """A sentence and its translation."""
    if target is None:
        check_source(subject, text)
        [translation] = subject.translate_lines([text])
        return of_translation(subject, text, translation.alternatives[0].hypothesis.tokens)
    return of_translation(subject, text, subject.tokenizers.target.encode(target))


def of_translation(subject: Translator, text: str, written: list[int]) -> ForwardPass:
    """A sentence and what was written, each token of which is given those before it (teacher forcing).

    Raises:
        InputError: one of them is too long.
    """
    tokenizers, model = subject.tokenizers, subject.model
    read = check_source(subject, text)
    check_target(subject, written, "a translation")
    batch = collate(np.array([[*read, EOS]]), np.array([[*written, EOS]]), subject.device)
    lines = {
        "src": TokenLine(Pieces.of([*read, EOS], tokenizers.source)),
        "tgt": TokenLine(Pieces.of([BOS, *written], tokenizers.target), Pieces.of([*written, EOS], tokenizers.target)),
    }
    return ForwardPass(
        model,
        tokenizers.target,
        lines,
        run=lambda: model(batch.source, batch.source_padding_mask, batch.target_in, batch.target_padding_mask),
        steps=lambda: stepwise(model.start(batch.source, batch.source_padding_mask), batch.target_in),
    )


def check_source(subject: Translator, text: str) -> list[int]:
    """The ids of a sentence; an InputError if it is longer than the translator reads."""
    ids = subject.tokenizers.source.encode(text)
    check_length(ids, subject.longest_source)
    return ids


def check_target(subject: Translator, ids: list[int], what: str) -> None:
    """Raise an InputError if there are more ids than the translator writes."""
    check_length(ids, subject.longest_source + subject.config.max_extra, what)


def of_generator(subject: Generator, text: str, target: str | None) -> ForwardPass:
    """A prompt and what follows it: the likeliest tokens unless it is given."""
    if target is None:
        return of_generation(subject, text, likeliest(subject, text))
    return of_continuation(subject, subject.tokenizer.encode(text) + subject.tokenizer.encode_continuation(target))


def likeliest(subject: Generator, text: str) -> Generation:
    """How a language model goes on with the likeliest token each time, as far as its context reaches.

    Raises:
        InputError: the text is longer than the context.
    """
    config = replace(subject.config, temperature=0.0)
    if subject.context is not None:
        read = subject.tokenizer.encode(text)
        check_length(read, subject.context + 1)
        config = replace(config, max_tokens=min(config.max_tokens, subject.context + 1 - len(read)))
    return subject.generate([GenerationRequest(text, config)])[0]


def of_generation(subject: Generator, text: str, found: Generation) -> ForwardPass:
    """A prompt and how the model went on.

    Raises:
        InputError: that is too long.
    """
    return of_continuation(subject, [*subject.tokenizer.encode(text), *found.tokens, *[EOS] * (found.reason == "eos")])


def of_continuation(subject: Generator, tokens: list[int]) -> ForwardPass:
    """Tokens, each of which but the first is given those before it."""
    if subject.context is not None:
        check_length(tokens, subject.context + 2)
    ids = torch.tensor([tokens[:-1]], device=subject.device)
    padding_mask = torch.ones_like(ids, dtype=torch.bool)
    tokenizer, model = subject.tokenizer, subject.model
    line = TokenLine(Pieces.of(tokens[:-1], tokenizer), Pieces.of(tokens[1:], tokenizer))
    return ForwardPass(
        model,
        tokenizer,
        {"tgt": line},
        run=lambda: model(ids, padding_mask),
        steps=lambda: stepwise(model.start(ids[:, :1], padding_mask[:, :1]), ids),
    )


def of_filler(subject: Filler, text: str, target: str | None) -> ForwardPass:
    """A text with gaps, or a text or a pair of texts without."""
    tokenizer = subject.tokenizer
    if GAP.search(text) and target is None:
        row = subject.encode(text)
    else:
        second = None if target is None else tokenizer.encode(target)
        row = sequence(tokenizer.encode(text), second, longest=subject.longest)
    return of_row(subject.model, tokenizer, row)


def of_predictor(
    subject: Classifier | Scorer | Tagger | Retriever | Answerer, text: str, target: str | None
) -> ForwardPass:
    """A text or a pair of texts."""
    reader = subject.reader
    return of_row(reader.model, reader.tokenizer, reader.encode(Text(text, target)))


def of_row(model: Model, tokenizer: Tokenizer, row: list[int]) -> ForwardPass:
    """The pass of a backbone with a head."""
    ids, padding_mask = pad([row])
    device = next(model.parameters()).device
    inputs = [torch.from_numpy(x).to(device) for x in (ids, padding_mask, segments(ids))]
    return ForwardPass(model, tokenizer, {model.line: TokenLine(Pieces.of(row, tokenizer))}, lambda: model(*inputs))


def stepwise(state: DecodingState, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T V"]:
    """The logits after each token, fed one after another."""
    return torch.stack([state.step(column) for column in ids.unbind(1)], dim=1)


def check_length(ids: list[int], limit: int, what: str = "a text") -> None:
    """Raise an InputError if with <eos> there are more than `limit` ids."""
    if len(ids) >= limit:
        raise InputError(f"{what} of {len(ids)} tokens, and the model takes {limit - 1}; give one sentence")


READINGS: dict[type, Callable[[Any, str, str | None], ForwardPass]] = {
    Translator: of_translator,
    Generator: of_generator,
    Filler: of_filler,
    **dict.fromkeys((Classifier, Scorer, Tagger, Retriever, Answerer), of_predictor),
}


def model_of(subject: Any) -> nn.Module:
    """The model that a predictor uses.

    Raises:
        InputError: it is no predictor.
    """
    if not isinstance(subject, BasePredictor):
        raise InputError(f"a {type(subject).__name__} cannot be looked into; load a model with heedful.load")
    return subject.model


def tokenizers_of(subject: Any) -> TokenizerPair:
    """The tokenizers of what `subject` reads and of what it writes; often they are one."""
    user = getattr(subject, "reader", subject)
    return user.tokenizers if hasattr(user, "tokenizers") else TokenizerPair(user.tokenizer, user.tokenizer)


def reading(subject: Any, text: str, target: str | None = None) -> ForwardPass:
    """The pass over `text`, and over `target` where a model takes two.

    A translator and a generator read what they write themselves where there is no `target`. Elsewhere it is the second
    text of a pair.

    Raises:
        InputError: the text is empty or too long, or `subject` holds no model that can be looked into.
    """
    if not text.strip():
        raise InputError("there is no text; give one sentence")
    for kind, make in READINGS.items():
        if isinstance(subject, kind):
            return make(subject, text, target)
    raise InputError(f"a {type(subject).__name__} cannot be looked into; load a model with heedful.load")
