"""The protocol of models: what training, warm start, search and the inspector ask of any architecture.

An architecture answers for itself, so that nobody outside of `heedful.models` has to know which classes there are.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Protocol, runtime_checkable

from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from heedful.models.decoding_state import DecodingState
from heedful.nn.stack import NamedStack

Names = Mapping[str, str]

OUTPUT_ROWS = {"output.weight": "target", "output.bias": "target"}  # of a projection to a vocabulary


@runtime_checkable
class EmbeddingTable(Protocol):
    """A table with a vector for each token of a vocabulary."""

    weight: nn.Parameter


class Model(nn.Module):
    """A model of any architecture. The answers here are those of one that has nothing to say.

    Attributes:
        logit_axes: names of the dimensions of the logits, without that of the batch.
        predicts_tokens: True if the logits are over a vocabulary.
        has_segments: True if a vector for each segment of a text may be among the weights.
    """

    logit_axes: ClassVar[tuple[str, ...]] = ("token", "vocab")
    predicts_tokens: ClassVar[bool] = True
    has_segments: ClassVar[bool] = True

    @property
    def side(self) -> str | None:
        """Side of an encoder-decoder that the weights can begin: "encoder" or "decoder"; None: both, or neither."""
        return None

    @property
    def line(self) -> str:
        """The text that the outputs belong to: "src", which is read, or "tgt", which is written."""
        return "tgt"

    def named_stacks(self) -> list[NamedStack]:
        """The stacks of blocks whose tensors the inspector names; none in a model that is no Transformer."""
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
        """The most tokens of a text that the model has positions for; None: any number."""
        return None


class SourceToTarget(Model, ABC):
    """An encoder-decoder of any architecture: it reads a source and writes a target.

    B batch, N source tokens or other inputs with F features, T target tokens, D model, V target vocabulary.

    Attributes:
        output: the projection of hidden states to the target vocabulary.
    """

    output: nn.Linear

    def forward(
        self,
        source: Shaped[Tensor, "B N *F"],
        source_padding_mask: Bool[Tensor, "B N"],
        target: Int[Tensor, "B T"],
        target_padding_mask: Bool[Tensor, "B T"],
    ) -> Float[Tensor, "B T V"]:
        """Compute the logits of the next token at each target position (teacher forcing)."""
        return self.output(self.hidden(source, source_padding_mask, target, target_padding_mask))

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
