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
    media_input,
    writing,
)
from heedful.predictors.captioner import Captioner
from heedful.predictors.filler import Filler
from heedful.predictors.generator import Generation, GenerationRequest, Generator
from heedful.predictors.media_reader import SINGLE
from heedful.predictors.predictor import ModelInputs, Predictor, described
from heedful.predictors.predictor import as_text as text_of
from heedful.predictors.transcriber import Transcriber
from heedful.predictors.translator import Translator
from heedful.search.beam import search
from heedful.tasks.parts.sequence_to_sequence import pair_batch
from heedful.text.tokenizer import BOS, EOS, MASK, Tokenizer


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


def of_inputs(subject: Predictor[Model, object], inputs: ModelInputs) -> ForwardPass:
    """Forward pass of a model that generates nothing, such as BERT with a task head, over what its predictor reads."""
    model, media = subject.model, None
    if isinstance(inputs.tokens, list):
        read = Pieces.of(inputs.tokens, subject.tokenizer)
    else:
        media = media_input(subject.reader.medium, inputs.tokens)
        read = Pieces.numbered(media.labels)
    return ForwardPass(
        model, subject.tokenizer, {model.line: TokenLine(read)}, lambda: model(*inputs.arguments), media=media
    )


def stepwise(state: DecodingState, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T V"]:
    """Logits of a decoder after each token, computed one token at a time with the KV cache."""
    return torch.stack([state.step(column) for column in ids.unbind(1)], dim=1)


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
    match subject:
        case Translator() | Captioner() | Transcriber():
            return of_writer(subject, value, target)
        case Generator():
            return of_generator(subject, as_text(value), target)
        case Predictor():
            inputs = subject.model_inputs(value if subject.reads_files else as_text(value), target)
            if inputs is not None:
                return of_inputs(subject, inputs)
    raise InputError(
        f"a {type(subject).__name__} cannot be looked into, as the inspector does not know what it reads; "
        "heedful.inspector.capture.recorder.recording records the tensors of any model"
    )


def model_of(subject: Any) -> Model:
    """Return the model of a predictor, and refuse anything else."""
    if not isinstance(subject, Predictor):
        raise InputError(f"a {type(subject).__name__} cannot be looked into; load a model with heedful.load")
    return subject.model


def user_input(subject: Any, value: object) -> Input:
    """Check what a user gives to a predictor: a text; for a model of images or audio a file, also by its name."""
    if not (isinstance(subject, Predictor) and subject.reads_files):
        return text_of(value)
    if not isinstance(value, SINGLE):
        raise InputError(f"{described(value)} is no {subject.reader.medium.noun}; give the name of a file, or bytes")
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
