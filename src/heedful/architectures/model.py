"""Base classes of models: the methods through which training, warm starts, search and the inspector use any model.

Code outside of `heedful.architectures` calls these methods and does not depend on the classes of an architecture.
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
from heedful.distributed.shards import copy_into
from heedful.errors import InputError, RunError
from heedful.nn.embedding import Embedding, InputLayer, OutputProjection
from heedful.nn.named_stacks import NamedConvolutionalStack, NamedRecurrentStack, NamedStack

Names = Mapping[str, str]

WEIGHT_TYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
OUTPUT_ROWS = {"output.weight": "target", "output.bias": "target"}  # `token_rows` of a projection to a vocabulary


@runtime_checkable
class DecodingState(Protocol):
    """Interface to a model during decoding: the state of R rows after the tokens that have been fed so far.

    Searches keep the rows of a sentence together and sentences in order: they never select a row of a later sentence
    before a row of an earlier one.
    """

    begin: Int[Tensor, " R"]  # the first token to feed to each row: <bos>, or the last token of a prompt

    def step(self, tokens: Int[Tensor, " R"], /) -> Float[Tensor, "R V"]:
        """Feed one token to each row, `begin` first, and return the logits of the next token."""
        ...

    def select(self, rows: Int[Tensor, " R2"], /) -> None:
        """Keep, reorder or repeat the rows of the decoding state: row i becomes the former row `rows[i]`."""
        ...


@runtime_checkable
class EmbeddingTable(Protocol):
    """Interface to token embeddings: one or more tables with a vector for each token of a vocabulary."""

    weight: nn.Parameter

    def parameters(self) -> Iterator[nn.Parameter]:
        """Iterate over the tables, `weight` first; an embedding with several channels has one table for each."""
        ...


class Model(nn.Module):
    """Base class of models of all architectures, with defaults that suit most of them."""

    logit_axes: ClassVar[tuple[str, ...]] = ("token", "vocab")  # the dimensions of the logits, without the batch
    predicts_tokens: ClassVar[bool] = True  # True if the logits are over a vocabulary
    has_segments: ClassVar[bool] = True  # True if the weights may include segment embeddings

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Check that ids and masks fit the model, and compute `forward`.

        Raises:
            InputError: an argument has the wrong type or shape, or an id is not in the vocabulary; the message names
                it. In training on a GPU, the values of ids are not checked.
        """
        check_arguments(self, args, keywords)
        return super().__call__(*args, **keywords)

    @property
    def side(self) -> str | None:
        """Half of an encoder-decoder that this model can initialise: "encoder" or "decoder"; None: both or neither."""
        return None

    @property
    def line(self) -> str:
        """Text whose tokens the outputs belong to: "src" if the model reads it, "tgt" if the model generates it."""
        return "tgt"

    @property
    def lines(self) -> tuple[str, ...]:
        """Texts that are inputs of the model: "src", "tgt", or both."""
        return (self.line,)

    def named_stacks(self) -> list[NamedStack]:
        """List the stacks of Transformer blocks whose tensors the inspector records."""
        return []

    def recurrent_stacks(self) -> list[NamedRecurrentStack]:
        """List the stacks of recurrent layers whose states and gates the inspector records."""
        return []

    def convolutional_stacks(self) -> list[NamedConvolutionalStack]:
        """List the stacks of convolutions whose outputs and alignments the inspector records."""
        return []

    def head(self, states: Tensor) -> Tensor:
        """Compute logits from hidden states after the last norm."""
        return self.get_submodule("output")(states)

    def head_transform(self) -> nn.Module | None:
        """Return the layer between the last norm and the projection to the vocabulary, if any."""
        return None

    def embedding_of(self, line: str) -> EmbeddingTable | None:
        """Return the token embeddings of an input, "src" or "tgt"; None if the model does not read text there."""
        del line
        return None

    def token_rows(self) -> Names:
        """Map the names of weights with one row per token to their vocabulary, "source" or "target"."""
        return {}

    def warm_start_names(self, start: "Model") -> Names:
        """Map prefixes of weight names in `start`, the model to start from, to prefixes in this model."""
        return {"": ""} if type(start) is type(self) else {}

    def max_positions(self) -> int | None:
        """Return the number of tokens, or other inputs, that the model has positions for; None if there is no limit."""
        return None


class SourceToTarget(Model, ABC):
    """Base class of encoder-decoders of any architecture, which read a source and generate a target.

    B batch, N source tokens or other inputs with F features, T target tokens, D model, V target vocabulary.

    Attributes:
        source_embedding: The input layer of the source: token embeddings, or a layer for images, video or audio.
        target_embedding: The embeddings of target tokens.
        output: The projection of hidden states to the target vocabulary.
    """

    output: nn.Linear

    def add_embeddings(self, config: TextModelConfig, source: int | InputLayer, target_vocab: int) -> None:
        """Create the embeddings of source and target; `source` is a vocabulary size, or the source's input layer."""
        self.source_embedding = source if isinstance(source, InputLayer) else Embedding(source, config)
        self.target_embedding = Embedding(target_vocab, config)

    def add_output(self, config: TextModelConfig, target_vocab: int) -> None:
        """Create the output projection, initialise all weights, and tie the matrices according to `config.tie`."""
        self.output = OutputProjection(config.d_model, target_vocab, bias=config.output_bias)
        initialise(self, config)
        # Tied after initialisation, so that a shared matrix is initialised as an embedding, not as a linear layer.
        if config.tie != "none":
            self.output.weight = self.target_embedding.weight
        if config.tie == "all" and isinstance(self.source_embedding, Embedding):
            self.source_embedding = self.target_embedding

    @property
    def lines(self) -> tuple[str, ...]:
        return ("src", "tgt")

    def embedding_of(self, line: str) -> EmbeddingTable | None:
        # A custom class that does not call `add_embeddings` may have no such attribute.
        table = getattr(self, {"src": "source_embedding", "tgt": "target_embedding"}[line], None)
        return table if isinstance(table, Embedding) else None

    def token_rows(self) -> Names:
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
        """Compute the logits of the next token at each target position (teacher forcing).

        Without a mask all inputs are real: `model(source, None, target)`.
        """
        masks = all_real(source, source_padding_mask), all_real(target, target_padding_mask)
        return self.output(self.hidden(source, masks[0], target, masks[1]))

    def max_target_positions(self) -> int | None:
        """Return the number of tokens, <bos> included, that the decoder has positions for; None if there is no limit.

        By default, this is the limit of the source.
        """
        return self.max_positions()

    @abstractmethod
    def hidden(
        self,
        source: Shaped[Tensor, "B N *F"],
        source_padding_mask: Bool[Tensor, "B N"],
        target: Int[Tensor, "B T"],
        target_padding_mask: Bool[Tensor, "B T"],
    ) -> Float[Tensor, "B T D"]:
        """Compute the last hidden states of the decoder, for a loss that is fused with the output projection."""

    @abstractmethod
    def start(self, source: Shaped[Tensor, "B N *F"], padding_mask: Bool[Tensor, "B N"]) -> DecodingState:
        """Return the decoding state before the first target token, with one row for each source sentence."""


def all_real(inputs: Tensor, padding_mask: Bool[Tensor, "B N"] | None) -> Bool[Tensor, "B N"]:
    """Return `padding_mask` or, if it is None, a mask that marks all inputs as real."""
    if padding_mask is not None:
        return padding_mask
    return torch.ones(inputs.shape[:2], dtype=torch.bool, device=inputs.device)


def weights(model: nn.Module) -> dict[str, Tensor]:
    """Return the parameters of a model by name; a tied matrix occurs once, under one name."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def load_weights(model: nn.Module, values: dict[str, Tensor]) -> None:
    """Copy weights, named as in the result of `weights`, into a model.

    If the model is sharded, each process copies only its own rows.

    Raises:
        ValueError: names or shapes differ, or a tensor is not of a floating-point type; the message says where.
    """
    # All weights are checked before the first is copied: a model is loaded completely or not at all.
    check_weights(model, values)
    for name, parameter in model.named_parameters():
        copy_into(parameter, values[name])


def check_weights(model: nn.Module, values: dict[str, Tensor]) -> None:
    """Check that weights have the names and shapes of a model's parameters, and floating-point types.

    Raises:
        ValueError: names or shapes differ, or a tensor is not of a floating-point type; the message says where.
    """
    shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
    if problems := misfits(shapes, {name: value.shape for name, value in values.items()}):
        raise ValueError("; ".join(problems))
    if problem := dtype_problem(values):
        raise ValueError(problem)


def dtype_problem(values: Mapping[str, Tensor]) -> str:
    """Return a message about the first tensor that is not of a floating-point type, or "" if there is none.

    When torch copies other types to a parameter, it converts them silently, and the model's results would change.
    """
    for name, value in sorted(values.items()):
        if value.dtype not in WEIGHT_TYPES:
            dtype = str(value.dtype).removeprefix("torch.")
            return f"{name} has the type {dtype}, but weights must have a floating-point type"
    return ""


def misfits(model: Mapping[str, Sequence[int]], values: Mapping[str, Sequence[int]]) -> list[str]:
    """List the weights that are missing from `values`, unexpected, or of a different shape than in the model.

    Args:
        model: The shape of each parameter of the model, by name.
        values: The shape of each given weight, by name.
    """
    problems = [f"missing {name} {tuple(model[name])}" for name in model.keys() - values.keys()]
    problems += [f"unexpected {name} {tuple(values[name])}" for name in values.keys() - model.keys()]
    problems += [
        f"{name} is {tuple(values[name])}, but the model needs {tuple(model[name])}"
        for name in model.keys() & values.keys()
        if tuple(values[name]) != tuple(model[name])
    ]
    # Sorted, because the order of a set of names differs between processes, and messages should not.
    return sorted(problems)


MASKS = {  # masks and segments: each must have the shape of the input that has one of these names
    "padding_mask": ("tokens", "inputs"),
    "segments": ("tokens", "inputs"),
    "source_padding_mask": ("source",),
    "target_padding_mask": ("target",),
}


@cache
def argument_names(kind: type[nn.Module]) -> tuple[str, ...]:
    return tuple(signature(kind.forward).parameters)[1:]


def check_arguments(model: Any, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> None:
    """Check the token ids and masks that a `Model` is called with; other inputs are not checked."""
    arguments = dict(zip(argument_names(type(model)), args, strict=False)) | dict(keywords)
    lines = {"tokens": model.line, "inputs": model.line, "source": "src", "target": "tgt"}
    for name, line in lines.items():
        table = model.embedding_of(line) if name in arguments else None
        if table is not None:
            # Checking the values of ids in training on a GPU would make the CPU wait for them.
            runs_ahead = model.training and table.weight.device.type not in ("cpu", "meta")
            check_ids(name, arguments[name], len(table.weight), with_values=not runs_ahead)
    for name, others in MASKS.items():
        other = next((other for other in others if other in arguments), None)
        if other is None or arguments.get(name) is None or model.embedding_of(lines[other]) is None:
            continue
        if isinstance(ids := arguments[other], Tensor):
            check_mask(name, arguments[name], ids)
    source, target = arguments.get("source"), arguments.get("target")
    if isinstance(source, Tensor) and isinstance(target, Tensor) and len(source) != len(target):
        raise InputError(
            f"source has {len(source):,} rows, but target has {len(target):,}; row n of both must correspond"
        )


def check_ids(name: str, ids: object, vocabulary: int, *, with_values: bool) -> None:
    if not isinstance(ids, Tensor):
        raise InputError(
            f"{name} is a {type(ids).__name__}, not a tensor; give ids of shape (batch, tokens), such as "
            "torch.tensor([tokenizer.encode(text)])"
        )
    if ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool:
        raise InputError(f"{name} has dtype {ids.dtype}; token ids must be integers, of type torch.int64")
    if ids.dim() != 2:
        remedy = f"; {name}[None] is a batch of one" if ids.dim() == 1 else ""
        raise InputError(f"{name} has shape {tuple(ids.shape)}; expected (batch, tokens){remedy}")
    # On the meta device, ids have no values, and reading values would break a compiled graph.
    if ids.is_meta or torch.compiler.is_compiling() or not with_values:
        return
    # torch's own error names neither argument nor id, and on a GPU, the process could not use the device afterwards.
    if wrong := ((ids < 0) | (ids >= vocabulary)).nonzero().tolist():
        row, column = wrong[0]
        raise InputError(
            f"{name} contains the id {int(ids[row, column])} in row {row}, column {column}; valid ids are "
            f"0 to {vocabulary - 1:,}; encode texts with the tokenizer of this model"
        )


def check_mask(name: str, mask: object, ids: Tensor) -> None:
    if not isinstance(mask, Tensor):
        raise InputError(f"{name} is a {type(mask).__name__}, not a tensor of shape {tuple(ids.shape)}")
    if name != "segments" and mask.dtype != torch.bool:
        raise InputError(f"{name} has dtype {mask.dtype}; expected torch.bool, True for real tokens")
    if mask.shape != ids.shape[:2]:
        raise InputError(
            f"{name} has shape {tuple(mask.shape)}, but the ids have shape {tuple(ids.shape)}; the shapes must match"
        )


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Switch a model to evaluation mode within the context, and back to its previous mode afterwards."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def check_no_nan(output: Tensor) -> None:
    """Raise a RunError if an output contains NaN: a damaged model must not return results."""
    if output.isnan().any():
        raise RunError("the model's output is not a number (NaN): its weights are damaged or its training diverged")
