"""Forward passes to record: inputs, target tokens and the call of the model, for every predictor and text.

B = 1 batch, T target tokens, V vocabulary.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.decode.filler import GAP, Filler
from heedful.decode.generator import Generation, GenerationRequest, Generator
from heedful.decode.predictor import Predictor
from heedful.decode.translator import Translator
from heedful.errors import InputError
from heedful.inspector.capture.pieces import Pieces
from heedful.models import Model
from heedful.models.model import DecodingState
from heedful.predict.answerer import Answerer
from heedful.predict.batching import Text
from heedful.predict.classifier import Classifier
from heedful.predict.retriever import Retriever
from heedful.predict.scorer import Scorer
from heedful.predict.tagger import Tagger
from heedful.predict.word_vectors import WordVectors
from heedful.tasks.sequence_to_sequence import collate
from heedful.text.padding import pad
from heedful.text.sequence import segments, sequence
from heedful.text.tokenizer import BOS, EOS, Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair


@dataclass(frozen=True)
class TokenLine:
    """Input tokens of one stack in a forward pass, with the target token at each position.

    Attributes:
        read: the input tokens.
        written: the target token at each position, that is the next token, prompts included; None for a model that
            generates nothing.
    """

    read: Pieces
    written: Pieces | None = None

    @property
    def said(self) -> Pieces:
        """Token labels of hidden states: the target token at each position, or the input token without targets."""
        return self.written or self.read


@dataclass(frozen=True)
class ForwardPass:
    """One forward pass of a model over a text, ready to run and to record.

    Attributes:
        model: the model, in training or evaluation mode.
        tokenizer: tokenizer of the target text, or of the input for a model that generates nothing.
        lines: input and target tokens by `NamedStack.sequence`: "src", "tgt" or both.
        run: runs the forward pass and returns the model's output.
        steps: computes the same logits one token at a time, as beam search does; None for a model that generates
            nothing.
    """

    model: Model
    tokenizer: Tokenizer
    lines: dict[str, TokenLine]
    run: Callable[[], Tensor]
    steps: Callable[[], Tensor] | None = None


def of_translator(subject: Translator, text: str, target: str | None) -> ForwardPass:
    """Forward pass of a translator over a sentence and `target`, or its own best translation if `target` is None."""
    if target is None:
        check_source(subject, text)
        [translation] = subject.translate_lines([text])
        return of_translation(subject, text, translation.alternatives[0].hypothesis.tokens)
    return of_translation(subject, text, subject.tokenizers.target.encode(target))


def of_translation(subject: Translator, text: str, written: list[int]) -> ForwardPass:
    """Forward pass of a translator over a sentence and the token ids of a translation (teacher forcing).

    Raises:
        InputError: the sentence or the translation is too long.
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
    """Encode a source sentence to token ids; raise an InputError if it is too long for the translator."""
    ids = subject.tokenizers.source.encode(text)
    check_length(ids, subject.longest_source)
    return ids


def check_target(subject: Translator, ids: list[int], what: str) -> None:
    """Raise an InputError if there are more token ids than a translation can have; `what` names the text."""
    check_length(ids, subject.longest_source + subject.config.max_extra, what)


def of_generator(subject: Generator, text: str, target: str | None) -> ForwardPass:
    """Forward pass of a text generator over a prompt and `target`, or a greedy continuation if `target` is None."""
    if target is None:
        return of_generation(subject, text, likeliest(subject, text))
    return of_continuation(subject, subject.tokenizer.encode(text) + subject.tokenizer.encode_continuation(target))


def likeliest(subject: Generator, text: str) -> Generation:
    """Continue a prompt with a language model by greedy decoding, at most to the end of the model's context.

    Raises:
        InputError: the prompt is longer than the context.
    """
    config = replace(subject.config, temperature=0.0)
    if subject.context is not None:
        read = subject.tokenizer.encode(text)
        check_length(read, subject.context + 1)
        config = replace(config, max_tokens=min(config.max_tokens, subject.context + 1 - len(read)))
    return subject.generate([GenerationRequest(text, config)])[0]


def of_generation(subject: Generator, text: str, found: Generation) -> ForwardPass:
    """Forward pass of a language model over a prompt and the continuation that the model generated.

    Raises:
        InputError: prompt and continuation are too long for the model's context.
    """
    return of_continuation(subject, [*subject.tokenizer.encode(text), *found.tokens, *[EOS] * (found.reason == "eos")])


def of_continuation(subject: Generator, tokens: list[int]) -> ForwardPass:
    """Forward pass of a language model that predicts each token but the first from the tokens before it."""
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
    """Forward pass of a masked language model over a text with gaps, a plain text, or a pair of texts."""
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
    """Forward pass of a classifier, scorer, tagger, retriever or answerer over a text or a pair of texts."""
    reader = subject.reader
    return of_row(subject.model, reader.tokenizer, reader.encode(Text(text, target)))


def of_words(subject: WordVectors, text: str, target: str | None) -> ForwardPass:
    """Forward pass of word vectors over a text: the vector of each word that has one.

    Raises:
        InputError: no word of the text has a vector, or there is a second text.
    """
    if target is not None:
        raise InputError("word vectors have no output to be given; leave the target out")
    ids = [subject.tokenizer.first_word + row for row in subject.rows(text)]
    if not ids:
        raise InputError("no word of the text has a vector; give others")
    words = torch.tensor([ids], device=subject.model.embedding.weight.device)
    line = TokenLine(Pieces.of(ids, subject.tokenizer))
    return ForwardPass(subject.model, subject.tokenizer, {"src": line}, lambda: subject.model(words))


def of_row(model: Model, tokenizer: Tokenizer, row: list[int]) -> ForwardPass:
    """Forward pass of a model with a backbone, such as BERT with a task head, over one row of token ids."""
    ids, padding_mask = pad([row])
    device = next(model.parameters()).device
    inputs = [torch.from_numpy(x).to(device) for x in (ids, padding_mask, segments(ids))]
    return ForwardPass(model, tokenizer, {model.line: TokenLine(Pieces.of(row, tokenizer))}, lambda: model(*inputs))


def stepwise(state: DecodingState, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T V"]:
    """Logits of a decoder after each token, computed one token at a time with the KV cache."""
    return torch.stack([state.step(column) for column in ids.unbind(1)], dim=1)


def check_length(ids: list[int], limit: int, what: str = "a text") -> None:
    """Raise an InputError if the token ids and <eos> together exceed `limit`; `what` names the text in the message."""
    if len(ids) >= limit:
        raise InputError(f"{what} of {len(ids)} tokens, and the model takes {limit - 1}; give one sentence")


READINGS: dict[type, Callable[[Any, str, str | None], ForwardPass]] = {
    Translator: of_translator,
    Generator: of_generator,
    Filler: of_filler,
    WordVectors: of_words,
    **dict.fromkeys((Classifier, Scorer, Tagger, Retriever, Answerer), of_predictor),
}


def model_of(subject: Any) -> Model:
    """Return the model of a predictor.

    Raises:
        InputError: `subject` is not a predictor.
    """
    if not isinstance(subject, Predictor):
        raise InputError(f"a {type(subject).__name__} cannot be looked into; load a model with heedful.load")
    return subject.model


def tokenizers_of(subject: Any) -> TokenizerPair:
    """Source and target tokenizer of a predictor; the same tokenizer twice if the predictor has only one."""
    user = getattr(subject, "reader", subject)
    return user.tokenizers if hasattr(user, "tokenizers") else TokenizerPair(user.tokenizer, user.tokenizer)


def reading(subject: Any, text: str, target: str | None = None) -> ForwardPass:
    """Prepare one forward pass of any predictor over `text` and `target`.

    For a translator and a text generator `target` is the output; None: the model generates an output first. For other
    predictors `target` is the second text of a pair.

    Raises:
        InputError: the text is empty or too long, or `subject` is a predictor that the inspector does not support.
    """
    if not text.strip():
        raise InputError("there is no text; give one sentence")
    for kind, make in READINGS.items():
        if isinstance(subject, kind):
            return make(subject, text, target)
    raise InputError(
        f"a {type(subject).__name__} cannot be looked into, as the inspector looks into models of text; "
        "heedful.inspector.capture.recorder.recording records the tensors of any model"
    )
