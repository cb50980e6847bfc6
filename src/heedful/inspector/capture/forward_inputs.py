"""Forward passes to record: inputs, target tokens and the call of the model, for every predictor and what it reads.

B = 1 batch, T target tokens, V vocabulary.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.architectures import Model
from heedful.architectures.model import DecodingState, evaluating
from heedful.errors import InputError
from heedful.inspector.capture.media_inputs import MediaInput
from heedful.inspector.capture.sources import (
    Given,
    Pieces,
    Writer,
    Writing,
    as_text,
    check_length,
    media_source,
    reader_of,
    writing,
)
from heedful.predictors.answerer import Answerer
from heedful.predictors.captioner import Captioner
from heedful.predictors.classifier import Classifier
from heedful.predictors.filler import GAP, Filler
from heedful.predictors.generator import Generation, GenerationRequest, Generator
from heedful.predictors.media_classifier import MediaClassifier
from heedful.predictors.media_reader import SINGLE
from heedful.predictors.predictor import Predictor, described
from heedful.predictors.predictor import as_text as text_of
from heedful.predictors.retriever import Retriever
from heedful.predictors.scorer import Scorer
from heedful.predictors.tagger import Tagger
from heedful.predictors.text_predictor import Text
from heedful.predictors.transcriber import Transcriber
from heedful.predictors.translator import Translator
from heedful.predictors.word_vectors import WordVectors
from heedful.search.beam import search
from heedful.tasks.parts.sequence_to_sequence import pair_batch
from heedful.text.sequences import pad, segments, sequence
from heedful.text.tokenizer import BOS, EOS, Tokenizer
from heedful.text.tokenizer_pair import NoTokenizers, TokenizerPair


@dataclass(frozen=True)
class TokenLine:
    """Input tokens of one stack in a forward pass, with the target token at each position.

    Attributes:
        read: the input tokens; or patches of a picture, or frames of a sound.
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
    """Forward pass of a model over a text, a picture or a sound, ready to run and to record.

    Attributes:
        model: the model, in training or evaluation mode.
        tokenizer: tokenizer of the target text, or of the input for a model that generates nothing; None for a model
            that neither reads nor writes text.
        lines: input and target tokens, or patches or frames, by `NamedStack.sequence`: "src", "tgt" or both.
        run: runs the forward pass and returns the model's output.
        steps: computes the same logits one token at a time, as beam search does; None for a model that generates
            nothing.
        media: the picture or sound that the model reads; None for a text.
    """

    model: Model
    tokenizer: Tokenizer | None
    lines: dict[str, TokenLine]
    run: Callable[[], Tensor]
    steps: Callable[[], Tensor] | None = None
    media: MediaInput | None = None


def of_writer(subject: Writer, given: Given, target: str | None) -> ForwardPass:
    """Forward pass of an encoder-decoder over a source and `target`, or its best output if `target` is None."""
    asked = writing(subject, given)
    return of_output(asked, best_output(asked) if target is None else asked.tokenizer.encode(target))


def of_translation(subject: Translator, text: str, written: list[int]) -> ForwardPass:
    """Forward pass of a translator over a sentence and the token ids of a translation (teacher forcing).

    Raises:
        InputError: the sentence or the translation is too long.
    """
    return of_output(writing(subject, text), written)


@torch.inference_mode()
def best_output(asked: Writing) -> list[int]:
    """Search for the best output about a source: its token ids, without <eos>."""
    with evaluating(asked.model):
        return search(asked.begin(), [asked.limit], asked.config)[0][0].tokens


def of_output(asked: Writing, written: list[int]) -> ForwardPass:
    """Forward pass of an encoder-decoder over a source and the token ids of an output (teacher forcing).

    Raises:
        InputError: the output is too long.
    """
    check_length(written, asked.longest, "an output")
    tokenizer, model, source = asked.tokenizer, asked.model, asked.source
    following = [*asked.prompt, *written, EOS]
    device = source.inputs.device
    batch = pair_batch(source.inputs, source.padding_mask, torch.tensor([following]), device)
    lines = {
        "src": TokenLine(source.read),
        "tgt": TokenLine(Pieces.of([BOS, *following[:-1]], tokenizer), Pieces.of(following, tokenizer)),
    }
    return ForwardPass(
        model,
        tokenizer,
        lines,
        run=lambda: model(batch.source, batch.source_padding_mask, batch.target_in, batch.target_padding_mask),
        steps=lambda: stepwise(model.start(batch.source, batch.source_padding_mask), batch.target_in),
        media=source.media,
    )


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
    if len(tokens) < 2:
        raise InputError("one token says nothing about the next; give a longer text")
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


def of_text(subject: Generator, text: str) -> ForwardPass:
    """Forward pass of a language model over a text alone: each position is labelled with the token that it reads.

    Raises:
        InputError: the text is empty or longer than the context.
    """
    tokens = subject.tokenizer.encode(as_text(text))
    if subject.context is not None:
        check_length(tokens, subject.context + 1)
    ids = torch.tensor([tokens], device=subject.device)
    padding_mask = torch.ones_like(ids, dtype=torch.bool)
    model = subject.model
    return ForwardPass(
        model,
        subject.tokenizer,
        {"tgt": TokenLine(Pieces.of(tokens, subject.tokenizer))},
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


def of_predictor(subject: Classifier | Scorer | Retriever, text: str, target: str | None) -> ForwardPass:
    """Forward pass of a classifier, scorer or retriever over a text or a pair of texts."""
    reader = subject.reader
    return of_row(subject.model, reader.tokenizer, reader.encode(Text(text, target)))


def of_windows(subject: Tagger | Answerer, text: str, target: str | None) -> ForwardPass:
    """Forward pass of a tagger or answerer over the only row in which it reads a text or a pair of texts.

    Raises:
        InputError: the text needs several rows, or is of a kind that the predictor does not read.
    """
    row, *others = subject.windows(Text(text, target))
    if others:
        raise InputError(
            f"the text is read in {len(others) + 1} parts of at most {subject.reader.longest} tokens, of which a look "
            "shows one; give a shorter text"
        )
    return of_row(subject.model, subject.reader.tokenizer, row)


def of_media_classifier(subject: MediaClassifier, given: Given, target: str | None) -> ForwardPass:
    """Forward pass of a classifier of pictures or sounds.

    Raises:
        InputError: the file cannot be read, or there is a second text.
    """
    if target is not None:
        raise InputError("a classifier of files has no output to be given; leave the target out")
    source, model = media_source(subject, given), subject.model
    lines = {model.line: TokenLine(source.read)}
    return ForwardPass(model, None, lines, lambda: model(source.inputs, source.padding_mask), media=source.media)


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


READINGS: dict[type, Callable[[Any, Any, str | None], ForwardPass]] = {
    **dict.fromkeys((Translator, Captioner, Transcriber), of_writer),
    MediaClassifier: of_media_classifier,
    Generator: of_generator,
    Filler: of_filler,
    WordVectors: of_words,
    **dict.fromkeys((Tagger, Answerer), of_windows),
    **dict.fromkeys((Classifier, Scorer, Retriever), of_predictor),
}
OF_MEDIA = (Captioner, Transcriber, MediaClassifier)


def model_of(subject: Any) -> Model:
    """Return the model of a predictor.

    Raises:
        InputError: `subject` is not a predictor.
    """
    if not isinstance(subject, Predictor):
        raise InputError(f"a {type(subject).__name__} cannot be looked into; load a model with heedful.load")
    return subject.model


def tokenizers_of(subject: Any) -> TokenizerPair:
    """Source and target tokenizer of a predictor, the same twice if it has only one; none of a classifier of files."""
    for user in (subject, getattr(subject, "reader", subject)):
        if hasattr(user, "tokenizers"):
            return user.tokenizers
        if getattr(user, "tokenizer", None) is not None:
            return TokenizerPair(user.tokenizer, user.tokenizer)
    return NoTokenizers()


def user_input(subject: Any, value: object) -> Given:
    """Check what a user gives to a predictor: a text; for a model of pictures or sound a file, also by its name.

    Raises:
        InputError: the value is none of these.
    """
    if not isinstance(subject, OF_MEDIA):
        return text_of(value)
    if not isinstance(value, SINGLE):
        raise InputError(
            f"{described(value)} is no {reader_of(subject).medium.noun}; give the name of a file, or bytes"
        )
    return Path(value) if isinstance(value, str | PathLike) else cast("Given", value)


def reading(subject: Any, given: Given, target: str | None = None) -> ForwardPass:
    """Prepare one forward pass of any predictor over a text, picture or sound, and `target`.

    Args:
        subject: the predictor.
        given: a text; or for a model of pictures or sound the bytes of a file, its path, or an array.
        target: the output of a translator, captioner or text generator; None: the model generates an output first. For
            other predictors the second text of a pair.

    Raises:
        InputError: the text is empty or too long, a file cannot be read, or the model reads something else; or
            `subject` is a predictor that the inspector does not support.
    """
    if isinstance(given, str) and not given.strip():
        raise InputError("there is no text; give one sentence")
    for kind, make in READINGS.items():
        if isinstance(subject, kind):
            return make(subject, given if isinstance(subject, OF_MEDIA) else as_text(given), target)
    raise InputError(
        f"a {type(subject).__name__} cannot be looked into, as the inspector does not know what it reads; "
        "heedful.inspector.capture.recorder.recording records the tensors of any model"
    )
