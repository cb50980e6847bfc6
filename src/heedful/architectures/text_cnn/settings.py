"""Settings of the text CNN (Kim 2014), and their rules."""

from dataclasses import dataclass
from typing import Literal, cast

from heedful.config.keys import KEYS
from heedful.config.model import Dropout, Poolers, TextModelConfig, Width
from heedful.config.rules import RULES, Rule
from heedful.config.schema import Recipe
from heedful.config.setting import Count
from heedful.wording import counted


@dataclass(frozen=True, kw_only=True)
class TextCNNConfig(TextModelConfig):
    """Text CNN settings: a text model with one layer of convolutions; the defaults are those of Kim (2014).

    The word vectors are random, static (`source_vectors` with `freeze_vectors`), non-static (`source_vectors` alone) or
    in two channels (`source_vectors` with `multichannel`).
    """

    architecture: str = "text_cnn"
    family: Literal["encoder"] = "encoder"
    d_model: Width = 300
    """Size of the word vectors."""

    kernel_sizes: tuple[int, ...] = (3, 4, 5)
    """Filter widths in tokens, with one layer of filters for each."""

    filters: Count = 100
    """Number of filters of each width."""

    multichannel: bool = False
    """If `true`, a word is the sum of a trained vector and a frozen one, as read from the file."""

    dropout: Dropout = 0.5
    """Dropout on the pooled vector of a text."""

    scale_embeddings: bool = False
    pooler: Poolers = "none"

    @property
    def hidden_size(self) -> int:
        return self.filters * len(self.kernel_sizes)

    def shape(self) -> str:
        sizes = ", ".join(map(str, self.kernel_sizes))
        return f"kernel sizes {sizes}, {counted(self.filters, 'filters')} of each, d_model {self.d_model}"


def text_cnn(recipe: Recipe) -> TextCNNConfig:
    return cast("TextCNNConfig", recipe.model)


RULES[TextCNNConfig] = (
    Rule(
        text_cnn(KEYS).kernel_sizes,
        lambda r: min(text_cnn(r).kernel_sizes, default=0) < 1,
        "model.kernel_sizes must list at least one window size in tokens, and none below 1; for example [3, 4, 5]",
    ),
    Rule(
        text_cnn(KEYS).multichannel,
        lambda r: text_cnn(r).multichannel and r.model.freeze_vectors,
        "model.multichannel = true trains one of two channels, but model.freeze_vectors = true trains none; "
        "set one of them to false",
    ),
    Rule(
        text_cnn(KEYS).multichannel,
        lambda r: text_cnn(r).multichannel and r.data.modality != "text",
        "model.multichannel = true needs word vectors, but the task {r.task} reads no words; set it to false",
    ),
)
