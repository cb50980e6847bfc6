"""Forward passes to record: inputs, target tokens and the call of the model, for every predictor and what it reads.

B = 1 batch, T target tokens, V vocabulary, G gaps.
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
from heedful.inspector.capture.sources import (
    Input,
    MediaInput,
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
from heedful.text.tokenizer import BOS, EOS, MASK, Tokenizer
from heedful.text.tokenizer_pair import NoTokenizers, TokenizerPair


@dataclass(frozen=True)
class TokenLine:
    """Input tokens of one stack in a forward pass, with the target token at each position."""

    read: Pieces  # the input tokens; or patches of an image, or frames of audio
    written: Pieces | None = None  # the next token, prompts included; None for a model that generates nothing

    @property
    def said(self) -> Pieces:
        """Token labels of hidden states: the target token at each position, or the input token without targets."""
        return self.written or self.read


@dataclass(frozen=True)
class ForwardPass:
    """Forward pass of a model over a text, an image or audio, ready to run and to record."""

    model: Model
    tokenizer: Tokenizer | None  # of the target, or of the input for a model that generates nothing
    lines: dict[str, TokenLine]  # tokens, patches or frames by `NamedStack.sequence`: "src", "tgt" or both
    run: Callable[[], Tensor]  # returns the model's output
    steps: Callable[[], Tensor] | None = None  # the same logits one token at a time, as beam search computes them
    media: MediaInput | None = None

    @property
    def target(self) -> Pieces | None:
        """The target tokens; None for a model that generates nothing."""
        return next((line.written for line in self.lines.values() if line.written), None)


def of_writer(subject: Writer, value: Input, target: str | None) -> ForwardPass:
    """Forward pass of an encoder-decoder over a source and `target`, or its best output if `target` is None."""
    prepared = writing(subject, value)
    if target is not None:
        return of_output(prepared, prepared.tokenizer.encode(target))
    with torch.inference_mode(), evaluating(prepared.model):
        [hypotheses] = search(prepared.begin(), [prepared.limit], prepared.config)
    return of_output(prepared, hypotheses[0].tokens)


def of_output(prepared: Writing, tokens: list[int]) -> ForwardPass:
    """Forward pass of an encoder-decoder over a source and the token ids of an output (teacher forcing)."""
    check_length(tokens, prepared.longest, "an output")
    tokenizer, model, source = prepared.tokenizer, prepared.model, prepared.source
    targets = [*prepared.prompt, *tokens, EOS]
    device = source.inputs.device
    batch = pair_batch(source.inputs, source.padding_mask, torch.tensor([targets]), device)
    lines = {
        "src": TokenLine(source.read),
        "tgt": TokenLine(Pieces.of([BOS, *targets[:-1]], tokenizer), Pieces.of(targets, tokenizer)),
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
    """Continue a prompt with a language model by greedy decoding, at most to the end of the model's context."""
    config = replace(subject.config, temperature=0.0)
    if subject.context is not None:
        prompt = subject.tokenizer.encode(text)
        check_length(prompt, subject.context + 1)
        config = replace(config, max_tokens=min(config.max_tokens, subject.context + 1 - len(prompt)))
    return subject.generate([GenerationRequest(text, config)])[0]


def of_generation(subject: Generator, text: str, generation: Generation) -> ForwardPass:
    """Forward pass of a language model over a prompt and the continuation that the model generated."""
    end = [EOS] if generation.reason == "eos" else []
    return of_continuation(subject, [*subject.tokenizer.encode(text), *generation.tokens, *end])


def of_continuation(subject: Generator, tokens: list[int]) -> ForwardPass:
    """Forward pass of a language model that predicts each token but the first from the tokens before it."""
    if subject.context is not None:
        check_length(tokens, subject.context + 2)
    if len(tokens) < 2:
        raise InputError("one token says nothing about the next; give a longer text")
    written = Pieces.of(tokens[1:], subject.tokenizer)
    return of_context(subject, tokens[:-1], TokenLine(Pieces.of(tokens[:-1], subject.tokenizer), written))


def of_text(subject: Generator, text: str) -> ForwardPass:
    """Forward pass of a language model over a text alone: each position is labelled with the token that it reads."""
    tokens = subject.tokenizer.encode(as_text(text))
    if subject.context is not None:
        check_length(tokens, subject.context + 1)
    return of_context(subject, tokens, TokenLine(Pieces.of(tokens, subject.tokenizer)))


def of_context(subject: Generator, tokens: list[int], line: TokenLine) -> ForwardPass:
    ids = torch.tensor([tokens], device=subject.device)
    padding_mask = torch.ones_like(ids, dtype=torch.bool)
    model = subject.model
    return ForwardPass(
        model,
        subject.tokenizer,
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


def of_predictor(subject: Classifier | Scorer | Retriever, text: str, target: str | None) -> ForwardPass:
    """Forward pass of a classifier, scorer or retriever over a text or a pair of texts."""
    reader = subject.reader
    return of_row(subject.model, reader.tokenizer, reader.encode(Text(text, target)))


def of_windows(subject: Tagger | Answerer, text: str, target: str | None) -> ForwardPass:
    """Forward pass of a tagger or answerer over the only row in which it reads a text or a pair of texts."""
    row, *others = subject.windows(Text(text, target))
    if others:
        raise InputError(
            f"the text is read in {len(others) + 1} parts of at most {subject.reader.longest} tokens, of which a look "
            "shows one; give a shorter text"
        )
    return of_row(subject.model, subject.reader.tokenizer, row)


def of_media_classifier(subject: MediaClassifier, value: Input, target: str | None) -> ForwardPass:
    """Forward pass of a classifier of images, audio or videos."""
    if target is not None:
        raise InputError("a classifier of files has no output to be given; leave the target out")
    source, model = media_source(subject, value), subject.model
    lines = {model.line: TokenLine(source.read)}
    return ForwardPass(model, None, lines, lambda: model(source.inputs, source.padding_mask), media=source.media)


def of_words(subject: WordVectors, text: str, target: str | None) -> ForwardPass:
    """Forward pass of word vectors over a text: the vector of each word that has one."""
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


def reading(subject: Any, value: Input, target: str | None = None) -> ForwardPass:
    """Prepare one forward pass of any predictor over a text, image or audio, and `target`.

    Args:
        subject: the predictor.
        value: a text; or for a model of images or audio the bytes of a file, its path, or an array.
        target: the output of a translator, captioner or text generator; None: the model generates an output first. For
            other predictors the second text of a pair.

    Raises:
        InputError: the text is empty or too long, a file cannot be read, or the model reads something else; or
            `subject` is a predictor that the inspector does not support.
    """
    if isinstance(value, str) and not value.strip():
        raise InputError("there is no text; give one sentence")
    for kind, prepare in READINGS.items():
        if isinstance(subject, kind):
            return prepare(subject, value if isinstance(subject, OF_MEDIA) else as_text(value), target)
    raise InputError(
        f"a {type(subject).__name__} cannot be looked into, as the inspector does not know what it reads; "
        "heedful.inspector.capture.recorder.recording records the tensors of any model"
    )


def model_of(subject: Any) -> Model:
    """Return the model of a predictor, and refuse anything else."""
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


def user_input(subject: Any, value: object) -> Input:
    """Check what a user gives to a predictor: a text; for a model of images or audio a file, also by its name."""
    if not isinstance(subject, OF_MEDIA):
        return text_of(value)
    if not isinstance(value, SINGLE):
        raise InputError(
            f"{described(value)} is no {reader_of(subject).medium.noun}; give the name of a file, or bytes"
        )
    return Path(value) if isinstance(value, str | PathLike) else cast("Input", value)


def log_probs(forward: ForwardPass) -> list[float]:
    """Log-probability of each target token of a forward pass (teacher forcing), in nats, without a search."""
    if forward.target is None:
        raise InputError("the model writes nothing, so that nothing can be given to it to write")
    targets = torch.tensor(forward.target.ids, device=next(forward.model.parameters()).device)
    return output(forward)[0].float().log_softmax(-1).gather(-1, targets[:, None])[:, 0].tolist()


def gap_log_probs(filler: Filler, forward: ForwardPass) -> Float[Tensor, "G V"]:
    """Log-probability of every token id for each gap of a masked text; special tokens get -inf, as in `Filler.fill`."""
    gaps = torch.tensor([token == MASK for token in forward.lines["src"].read.ids])
    logits = output(forward)[0].float().cpu()[gaps]
    logits[:, : filler.tokenizer.first_piece] = -torch.inf
    return logits.log_softmax(-1)


@torch.no_grad()
def output(forward: ForwardPass) -> Tensor:
    """Run a forward pass in evaluation mode without gradients, and return the model's output."""
    with evaluating(forward.model):
        return forward.run()
