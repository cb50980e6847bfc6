"""The protocol of models: what training, warm start, search and the inspector ask of any architecture.

An architecture answers for itself, so that no code outside of `heedful.architectures` names its classes.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from inspect import signature
from typing import Any, ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from heedful.architectures.parameters import initialise
from heedful.config.schema import TextModelConfig
from heedful.distributed import copy_into
from heedful.errors import InputError, RunError
from heedful.nn.embedding import Embedding, InputLayer, OutputProjection
from heedful.nn.named_stacks import NamedConvolutionalStack, NamedRecurrentStack, NamedStack

Names = Mapping[str, str]

WEIGHT_TYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
OUTPUT_ROWS = {"output.weight": "target", "output.bias": "target"}  # of a projection to a vocabulary


@runtime_checkable
class DecodingState(Protocol):
    """Interface of a model in the middle of decoding, which remembers the tokens that each of R rows was fed so far.

    Rows stay together by sentence, and sentences stay in order: a search never asks for a row of a later sentence
    before one of an earlier sentence.
    """

    begin: Int[Tensor, " R"]  # the token that is fed to each row first: <bos>, or the last token of a prompt

    def step(self, tokens: Int[Tensor, " R"], /) -> Float[Tensor, "R V"]:
        """Feed one token to each row, `begin` first, and return the logits of the next token."""
        ...

    def select(self, rows: Int[Tensor, " R2"], /) -> None:
        """Keep, reorder or repeat the rows of the decoding state: row i becomes what row `rows[i]` was."""
        ...


@runtime_checkable
class EmbeddingTable(Protocol):
    """A table with a vector for each token of a vocabulary."""

    weight: nn.Parameter

    def parameters(self) -> Iterator[nn.Parameter]:
        """Iterate over the tables, `weight` first: an embedding of several channels has several."""
        ...


class Model(nn.Module):
    """Base class of models of any architecture; the answers are those of one to which a question does not apply."""

    logit_axes: ClassVar[tuple[str, ...]] = ("token", "vocab")  # the dimensions of the logits, without the batch
    predicts_tokens: ClassVar[bool] = True  # True if the logits are over a vocabulary
    has_segments: ClassVar[bool] = True  # True if a vector for each segment of a text may be among the weights

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Compute as `forward` does, after a check that the ids and masks fit the model.

        Raises:
            InputError: an argument has a wrong type or shape, or an id is not in the vocabulary; the message names it.
        """
        check_arguments(self, args, keywords)
        return super().__call__(*args, **keywords)

    @property
    def side(self) -> str | None:
        """Side of an encoder-decoder that the weights can begin: "encoder" or "decoder"; None: both, or neither."""
        return None

    @property
    def line(self) -> str:
        """The text that the outputs belong to: "src", which is read, or "tgt", which is written."""
        return "tgt"

    @property
    def lines(self) -> tuple[str, ...]:
        """The texts that the model looks at: "src", "tgt", or both."""
        return (self.line,)

    def named_stacks(self) -> list[NamedStack]:
        """The stacks of blocks whose tensors the inspector names; none in a model that is not a Transformer."""
        return []

    def recurrent_stacks(self) -> list[NamedRecurrentStack]:
        """The stacks of recurrent layers whose states and gates the inspector records; none in most models."""
        return []

    def convolutional_stacks(self) -> list[NamedConvolutionalStack]:
        """The stacks of convolutions whose outputs and alignments the inspector records; none in most models."""
        return []

    def head(self, states: Tensor) -> Tensor:
        """The logits of hidden states that have passed the last norm."""
        return self.get_submodule("output")(states)

    def head_transform(self) -> nn.Module | None:
        """The layer between the last norm and the projection to the vocabulary; None where there is none."""
        return None

    def embedding_of(self, line: str) -> EmbeddingTable | None:
        """The table in which the tokens of a text, "src" or "tgt", are looked up; None where there is none."""
        del line
        return None

    def token_rows(self) -> Names:
        """Weights with a row for each token of a vocabulary, and which vocabulary that is: "source" or "target"."""
        return {}

    def warm_start_names(self, start: "Model") -> Names:
        """Prefixes of the names of weights in the model of a warm start, and of the same weights in this model."""
        return {"": ""} if type(start) is type(self) else {}

    def max_positions(self) -> int | None:
        """The most tokens of a text, or other inputs, that the model has positions for; None: any number."""
        return None


class SourceToTarget(Model, ABC):
    """An encoder-decoder of any architecture: it reads a source and writes a target.

    B batch, N source tokens or other inputs with F features, T target tokens, D model, V target vocabulary.

    Attributes:
        source_embedding: the input layer of the source: embeddings, or that of images or audio.
        target_embedding: the embeddings of target tokens.
        output: the projection of hidden states to the target vocabulary.
    """

    output: nn.Linear

    def add_embeddings(self, config: TextModelConfig, source: int | InputLayer, target_vocab: int) -> None:
        """Create the input layer of the source, of a number of tokens unless it is given, and that of the target."""
        self.source_embedding = source if isinstance(source, InputLayer) else Embedding(source, config)
        self.target_embedding = Embedding(target_vocab, config)

    def add_output(self, config: TextModelConfig, target_vocab: int) -> None:
        """Create the output projection, draw all weights, and tie the matrices that `tie` names."""
        self.output = OutputProjection(config.d_model, target_vocab, bias=config.output_bias)
        initialise(self, config)
        # Tied after the draw, so that a matrix with several purposes is that of an embedding, not of a linear layer.
        if config.tie != "none":
            self.output.weight = self.target_embedding.weight
        if config.tie == "all" and isinstance(self.source_embedding, Embedding):
            self.source_embedding = self.target_embedding

    @property
    def lines(self) -> tuple[str, ...]:
        return ("src", "tgt")

    def embedding_of(self, line: str) -> EmbeddingTable | None:
        """The embeddings of the source or of the target; None for a source that is not a text."""
        table = getattr(self, {"src": "source_embedding", "tgt": "target_embedding"}[line], None)
        return table if isinstance(table, Embedding) else None

    def token_rows(self) -> Names:
        """Embeddings of the vocabularies and the output; nothing where a class has embeddings of another kind."""
        if not isinstance(self.embedding_of("tgt"), Embedding):
            return {}
        source = {"source_embedding.weight": "source"} if isinstance(self.embedding_of("src"), Embedding) else {}
        return source | {"target_embedding.weight": "target"} | OUTPUT_ROWS

    def forward(
        self,
        source: Shaped[Tensor, "B N *F"],
        source_padding_mask: Bool[Tensor, "B N"] | None,
        target: Int[Tensor, "B T"],
        target_padding_mask: Bool[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B T V"]:
        """Compute the logits of the next token at each target position (teacher forcing); without masks all are real.

        `model(source, None, target)` is a batch without padding.
        """
        masks = all_real(source, source_padding_mask), all_real(target, target_padding_mask)
        return self.output(self.hidden(source, masks[0], target, masks[1]))

    def max_target_positions(self) -> int | None:
        """The most tokens that the decoder has positions for, <bos> included; None: any number."""
        return self.max_positions()

    @abstractmethod
    def hidden(
        self,
        source: Shaped[Tensor, "B N *F"],
        source_padding_mask: Bool[Tensor, "B N"],
        target: Int[Tensor, "B T"],
        target_padding_mask: Bool[Tensor, "B T"],
    ) -> Float[Tensor, "B T D"]:
        """The last hidden states of the decoder, for a loss that fuses the output projection."""

    @abstractmethod
    def start(self, source: Shaped[Tensor, "B N *F"], padding_mask: Bool[Tensor, "B N"]) -> DecodingState:
        """The decoding state before the first target token: one row a source sentence."""


def all_real(inputs: Tensor, padding_mask: Bool[Tensor, "B N"] | None) -> Bool[Tensor, "B N"]:
    """Return a padding mask; without one, that of a batch whose inputs are all real."""
    return (
        torch.ones(inputs.shape[:2], dtype=torch.bool, device=inputs.device) if padding_mask is None else padding_mask
    )


def weights(model: nn.Module) -> dict[str, Tensor]:
    """Get the parameters of a model by name, each once: a tied matrix has one name."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def load_weights(model: nn.Module, values: dict[str, Tensor]) -> None:
    """Copy weights, named as by `weights`, into a model; one that is sharded takes its own rows.

    Raises:
        ValueError: names or shapes differ, or a type is not one of weights; the message lists them.
    """
    # All are checked before the first is copied: a model is loaded whole or not at all.
    check_weights(model, values)
    for name, parameter in model.named_parameters():
        copy_into(parameter, values[name])


def check_weights(model: nn.Module, values: dict[str, Tensor]) -> None:
    """Check that weights have the names and shapes of a model's own, and types that weights are stored in.

    Raises:
        ValueError: they differ; the message lists them.
    """
    shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
    if problems := misfits(shapes, {name: value.shape for name, value in values.items()}):
        raise ValueError("; ".join(problems))
    if problem := wrong_types(values):
        raise ValueError(problem)


def wrong_types(values: Mapping[str, Tensor]) -> str:
    """Name the first tensor that is not of a type that weights are stored in; "" if all are.

    torch converts integers and other types silently while it copies them into a parameter, to a model that answers
    differently: so whatever reads weights asks here first.
    """
    for name, value in sorted(values.items()):
        if value.dtype not in WEIGHT_TYPES:
            dtype = str(value.dtype).removeprefix("torch.")
            return f"{name} has the type {dtype}, and weights are floating-point numbers"
    return ""


def misfits(model: Mapping[str, Sequence[int]], values: Mapping[str, Sequence[int]]) -> list[str]:
    """List the weights that a model lacks, has no place for, or needs in another shape, from the shapes by name."""
    problems = [f"missing {name}" for name in model.keys() - values.keys()]
    problems += [f"unexpected {name}" for name in values.keys() - model.keys()]
    problems += [
        f"{name} is {tuple(values[name])}, the model needs {tuple(model[name])}"
        for name in model.keys() & values.keys()
        if tuple(values[name]) != tuple(model[name])
    ]
    return sorted(problems)


MASKS = {  # masks, and segments, by the argument whose shape they have
    "padding_mask": ("tokens", "inputs"),
    "segments": ("tokens", "inputs"),
    "source_padding_mask": ("source",),
    "target_padding_mask": ("target",),
}


@cache
def argument_names(kind: type[nn.Module]) -> tuple[str, ...]:
    """The names of the arguments of a model's forward pass, without `self`."""
    return tuple(signature(kind.forward).parameters)[1:]


def check_arguments(model: Any, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> None:
    """Check the token ids and masks that a `heedful.architectures.Model` is called with, not inputs of other kinds."""
    arguments = dict(zip(argument_names(type(model)), args, strict=False)) | dict(keywords)
    lines = {"tokens": model.line, "inputs": model.line, "source": "src", "target": "tgt"}
    for name, line in lines.items():
        table = model.embedding_of(line) if name in arguments else None
        if table is not None:
            # A training step on a GPU runs ahead of the CPU, which would have to wait for the values of the ids.
            runs_ahead = model.training and table.weight.device.type not in ("cpu", "meta")
            check_ids(name, arguments[name], len(table.weight), with_values=not runs_ahead)
    for name, others in MASKS.items():
        ids = next((arguments[other] for other in others if other in arguments), None)
        if arguments.get(name) is not None and isinstance(ids, Tensor) and model.embedding_of("src") is not None:
            check_mask(name, arguments[name], ids)
    source, target = arguments.get("source"), arguments.get("target")
    if isinstance(source, Tensor) and isinstance(target, Tensor) and len(source) != len(target):
        raise InputError(f"source has {len(source):,} rows and target {len(target):,}; row n of both is a pair")


def check_ids(name: str, ids: object, vocabulary: int, *, with_values: bool) -> None:
    """Check that an argument is a tensor of token ids, (batch, tokens)."""
    if not isinstance(ids, Tensor):
        raise InputError(
            f"{name} is a {type(ids).__name__}, not a tensor; give ids of shape (batch, tokens), such as "
            "torch.tensor([tokenizer.encode(text)])"
        )
    if ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool:
        raise InputError(f"{name} has the type {ids.dtype}; token ids are integers, of type torch.int64")
    if ids.dim() != 2:
        remedy = f"; {name}[None] is a batch of one" if ids.dim() == 1 else ""
        raise InputError(f"{name} has the shape {tuple(ids.shape)}; it is (batch, tokens){remedy}")
    # The values of ids are not there on the device "meta", and a look at them would break a compiled graph.
    if ids.is_meta or torch.compiler.is_compiling() or not with_values:
        return
    if wrong := ((ids < 0) | (ids >= vocabulary)).nonzero().tolist():
        row, column = wrong[0]
        raise InputError(
            f"{name} holds the id {int(ids[row, column])} in row {row}, column {column}; the vocabulary has the ids "
            f"0 to {vocabulary - 1:,}. Encode texts with the tokenizer of this model"
        )


def check_mask(name: str, mask: object, ids: Tensor) -> None:
    """Check that a padding mask, or segments, fit the token ids."""
    if not isinstance(mask, Tensor):
        raise InputError(f"{name} is a {type(mask).__name__}, not a tensor of shape {tuple(ids.shape)}")
    if name != "segments" and mask.dtype != torch.bool:
        raise InputError(f"{name} has the type {mask.dtype}; it is torch.bool, True for real tokens")
    if mask.shape != ids.shape[:2]:
        raise InputError(
            f"{name} has the shape {tuple(mask.shape)}, and the ids have {tuple(ids.shape)}; both are equal"
        )


def batches(rows: Sequence[Sequence[int]], tokens: int) -> Iterator[list[int]]:
    """Group rows of token ids without <eos> into batches of similar length, longest first; empty rows are left out.

    Yields the indices of the rows of a batch, whose size, rows x length of the longest with its <eos>, is at most
    `tokens`; a longer row is a batch by itself.
    """
    batch: list[int] = []
    for index in sorted(filter(rows.__getitem__, range(len(rows))), key=lambda i: -len(rows[i])):
        if batch and (len(batch) + 1) * (len(rows[batch[0]]) + 1) > tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Switch a model to evaluation mode within the block (no dropout), and back to its previous mode afterwards."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def check_numbers(output: Tensor) -> None:
    """Check that an output of a model holds no NaN: a damaged model ends in an error, and not in an answer."""
    if output.isnan().any():
        raise RunError("the model's output is not a number (NaN): its weights are damaged or its training diverged")
