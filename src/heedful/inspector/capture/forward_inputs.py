"""Forward passes to record: inputs, target tokens and the model call, for every predictor and kind of input.

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

    read: Pieces  # the input tokens, image patches or audio frames
    written: Pieces | None = None  # the target tokens, including prompts; None without targets

    @property
    def said(self) -> Pieces:
        """Token labels of hidden states: the target token at each position or, without targets, the input token."""
        return self.written or self.read


@dataclass(frozen=True)
class ForwardPass:
    """Forward pass of a model over a text, an image or audio, ready to run and to record."""

    model: Model
    tokenizer: Tokenizer | None  # for the target, or for the input of a model that does not generate
    lines: dict[str, TokenLine]  # tokens, patches or frames by `NamedStack.sequence`: "src", "tgt" or both
    run: Callable[[], Tensor]  # returns the model's output
    steps: Callable[[], Tensor] | None = None  # the same logits one token at a time, as beam search computes them
    media: MediaInput | None = None

    @property
    def target(self) -> Pieces | None:
        """The target tokens; None for a model that does not generate, or for a pass over a text alone."""
        return next((line.written for line in self.lines.values() if line.written), None)


def reading(subject: Any, value: Input, target: str | None = None) -> ForwardPass:
    """Prepare one forward pass of any predictor over a text, image or audio, with an optional target.

    Args:
        subject: The predictor.
        value: A text; or for an image or audio model, the bytes of a file, its path, or an array.
        target: The output of a translator, captioner or text generator; if None, the model generates one first. For
            other predictors, the second text of a pair.
    """
    if isinstance(value, str) and not value.strip():
        raise InputError("the text is empty; give one sentence")
    match subject:
        case Translator() | Captioner() | Transcriber():
            prepared = writing(subject, value)
            if target is not None:
                return of_output(prepared, prepared.tokenizer.encode(target))
            with torch.inference_mode(), evaluating(prepared.model):
                [hypotheses] = search(prepared.begin(), [prepared.limit], prepared.config)
            return of_output(prepared, hypotheses[0].tokens)
        case Generator():
            text, tokenizer = as_text(value), subject.tokenizer
            if target is None:
                return of_generation(subject, text, greedy_continuation(subject, text))
            return of_continuation(subject, tokenizer.encode(text) + tokenizer.encode_continuation(target))
        case Predictor():
            inputs = subject.model_inputs(value if subject.reads_files else as_text(value), target)
            if inputs is not None:
                return of_inputs(subject, inputs)
    raise InputError(
        f"the inspector does not support a {type(subject).__name__}; "
        "heedful.inspector.capture.recorder.recording records the tensors of any model"
    )


def of_output(prepared: Writing, tokens: list[int]) -> ForwardPass:
    """Prepare the pass of an encoder-decoder over a source and the token ids of an output (teacher forcing)."""
    check_length(tokens, prepared.longest, "the output")
    tokenizer, model, source = prepared.tokenizer, prepared.model, prepared.source
    targets = [*prepared.prompt, *tokens, EOS]
    batch = pair_batch(source.inputs, source.padding_mask, torch.tensor([targets]), source.inputs.device)
    # Position t reads target token t - 1, or <bos>, and predicts target token t.
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


def greedy_continuation(subject: Generator, text: str) -> Generation:
    """Continue a prompt with a language model by greedy decoding, at most to the end of the model's context."""
    config = replace(subject.config, temperature=0.0)
    # The last token is predicted but not read, so a text may have one token more than the context.
    if subject.context is not None:
        prompt = subject.tokenizer.encode(text)
        check_length(prompt, subject.context + 1)
        config = replace(config, max_tokens=min(config.max_tokens, subject.context + 1 - len(prompt)))
    return subject.generate([GenerationRequest(text, config)])[0]


def of_generation(subject: Generator, text: str, generation: Generation) -> ForwardPass:
    """Prepare the pass of a language model over a prompt and the continuation that it generated."""
    end = [EOS] if generation.reason == "eos" else []
    return of_continuation(subject, [*subject.tokenizer.encode(text), *generation.tokens, *end])


def of_continuation(subject: Generator, tokens: list[int]) -> ForwardPass:
    """Prepare the pass of a language model that predicts each token but the first from the tokens before it."""
    if subject.context is not None:
        check_length(tokens, subject.context + 2)
    if len(tokens) < 2:
        raise InputError("the text has a single token, so there is nothing to predict; give a longer text")
    written = Pieces.of(tokens[1:], subject.tokenizer)
    return _of_context(subject, tokens[:-1], TokenLine(Pieces.of(tokens[:-1], subject.tokenizer), written))


def of_text(subject: Generator, text: str) -> ForwardPass:
    """Prepare the pass of a language model over a text alone: each position is labelled with its input token."""
    tokens = subject.tokenizer.encode(as_text(text))
    if subject.context is not None:
        check_length(tokens, subject.context + 1)
    return _of_context(subject, tokens, TokenLine(Pieces.of(tokens, subject.tokenizer)))


def _of_context(subject: Generator, tokens: list[int], line: TokenLine) -> ForwardPass:
    ids = torch.tensor([tokens], device=subject.device)
    padding_mask = torch.ones_like(ids, dtype=torch.bool)
    model = subject.model
    return ForwardPass(
        model,
        subject.tokenizer,
        {"tgt": line},
        run=lambda: model(ids, padding_mask),
        # The state starts before the first token, so that every token is one step.
        steps=lambda: stepwise(model.start(ids[:, :1], padding_mask[:, :1]), ids),
    )


def of_inputs(subject: Predictor[Model, object], inputs: ModelInputs) -> ForwardPass:
    """Prepare the pass of a model that does not generate, such as BERT with a task head, over its inputs."""
    model, media = subject.model, None
    if isinstance(inputs.tokens, list):
        read = Pieces.of(inputs.tokens, subject.tokenizer)
    else:
        media = media_input(subject.reader.modality, inputs.tokens)
        read = Pieces.numbered(media.labels)
    return ForwardPass(
        model, subject.tokenizer, {model.line: TokenLine(read)}, lambda: model(*inputs.arguments), media=media
    )


def stepwise(state: DecodingState, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T V"]:
    """Compute the logits of a decoder after each token, one token at a time with the KV cache."""
    # T times (B, V) -> (B, T, V)
    return torch.stack([state.step(column) for column in ids.unbind(1)], dim=1)


def model_of(subject: Any) -> Model:
    """Return the model of a predictor, and reject anything else."""
    if not isinstance(subject, Predictor):
        raise InputError(f"the inspector does not support a {type(subject).__name__}; load a model with heedful.load")
    return subject.model


def user_input(subject: Any, value: object) -> Input:
    """Check a user's input for a predictor: a text or, for an image or audio model, a file or the name of one."""
    if not (isinstance(subject, Predictor) and subject.reads_files):
        return text_of(value)
    if not isinstance(value, SINGLE):
        noun = subject.reader.modality.noun
        raise InputError(f"{described(value)} is not a valid {noun}; give the name of a file, or bytes")
    return Path(value) if isinstance(value, str | PathLike) else cast("Input", value)


def log_probs(forward: ForwardPass) -> list[float]:
    """Compute the log-probability of each target token of a forward pass, in nats, without a search."""
    if forward.target is None:
        raise InputError("this model generates no text, so it cannot take an output")
    targets = torch.tensor(forward.target.ids, device=next(forward.model.parameters()).device)
    return output(forward)[0].float().log_softmax(-1).gather(-1, targets[:, None])[:, 0].tolist()


def gap_log_probs(filler: Filler, forward: ForwardPass) -> Float[Tensor, "G V"]:
    """Compute every token's log-probability for each gap of a masked text; -inf for special tokens, as in `fill`."""
    gaps = torch.tensor([token == MASK for token in forward.lines["src"].read.ids])
    logits = output(forward)[0].float().cpu()[gaps]
    logits[:, : filler.tokenizer.first_piece] = -torch.inf
    return logits.log_softmax(-1)


@torch.no_grad()
def output(forward: ForwardPass) -> Tensor:
    """Run a forward pass in evaluation mode without gradients, and return the model's output."""
    with evaluating(forward.model):
        return forward.run()
