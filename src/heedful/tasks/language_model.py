"""Language modelling: running text in, the loss of each token given those before it (Radford et al. 2018).

B batch, T tokens.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.documents import check_files, document_lines
from heedful.data.one_text import check_documents, fewest_documents
from heedful.data.running_text import RunningText, prepare_running_text
from heedful.data.stream import TokenStream, WindowPlan, windows
from heedful.decode.generator import Generator
from heedful.losses import Loss, cross_entropy, perplexity
from heedful.models import LanguageModel
from heedful.nn.masks import AttentionMask
from heedful.tasks.task import Mean, Scores, Task
from heedful.text.tokenizer import PAD
from heedful.text.tokenizer_pair import TokenizerPair


@dataclass(frozen=True)
class CausalBatch:
    """Windows of a text: what is read, and one token further what is predicted."""

    read: Int[Tensor, "B T"]
    predicted: Int[Tensor, "B T"]
    mask: AttentionMask
    count: int  # real tokens that are predicted

    @property
    def tokens(self) -> int:
        """As many are read as predicted."""
        return self.count

    @property
    def counts(self) -> tuple[int, ...]:
        """The loss is a mean over tokens."""
        return (self.count,)


def collate(ids: np.ndarray, documents: np.ndarray, device: torch.device, *, cross: bool) -> CausalBatch:
    """Make a batch of windows.

    Args:
        ids: tokens, padded at the end, shape (B, T + 1).
        documents: the document of each token, shape (B, T + 1).
        device: where the batch goes.
        cross: whether tokens see across documents.
    """
    rows = torch.from_numpy(ids).to(device)
    read, predicted = rows[:, :-1], rows[:, 1:]
    mask = AttentionMask(read != PAD, read.size(1), causal=True)
    if not cross:
        mask = mask.within(torch.from_numpy(documents[:, :-1]).to(device))
    return CausalBatch(read, predicted, mask, int((ids[:, 1:] != PAD).sum()))


def loss(model: LanguageModel, batch: CausalBatch, smoothing: float) -> Loss:
    """The loss of every real token that is predicted."""
    real = batch.predicted != PAD
    hidden = model.hidden(batch.read, batch.mask)
    return cross_entropy(hidden[real], model.output.weight, batch.predicted[real], smoothing, model.output.bias)


class CausalLanguageModelling(Task[CausalBatch]):
    """The next token of running text."""

    families = ("decoder",)
    command = "heedful generate"
    scores = ("loss", "perplexity", "byte_perplexity")

    def __init__(self, recipe: Recipe, text: RunningText) -> None:
        super().__init__(recipe, TokenizerPair(text.tokenizer, text.tokenizer), text.digest)
        self.text = text
        self.plan = self.plan_of(text.train)

    @classmethod
    def check_recipe(cls, recipe: Recipe) -> None:
        """See `heedful.data.one_text.check_documents`."""
        check_documents(recipe)

    @classmethod
    def resolve(cls, recipe: Recipe) -> Recipe:
        """The recipe as it is, if its training and its validation text are not empty."""
        fewest_documents(replace(recipe, data=replace(recipe.data, documents="line")), most=1)
        return recipe

    @classmethod
    def peek(cls, corpus: CorpusConfig, recipe: Recipe, /) -> Iterator[object]:
        """The lines of a corpus, whatever a document is."""
        check_files(corpus, recipe.data)
        return document_lines(corpus, recipe.data)

    @classmethod
    def prepare(cls, recipe: Recipe, folder: Path, report: Callable[[str], None]) -> "CausalLanguageModelling":
        """See `heedful.data.running_text`."""
        return cls(recipe, prepare_running_text(recipe, folder, report))

    @classmethod
    def build(cls, recipe: Recipe, tokenizers: TokenizerPair) -> LanguageModel:
        """A decoder with its output projection."""
        return LanguageModel(recipe.model, len(tokenizers.source))

    @classmethod
    def use(cls, model: LanguageModel, recipe: Recipe, tokenizers: TokenizerPair) -> Generator:
        """A generator of text."""
        return Generator(model, tokenizers.source, recipe.generate, recipe.data.max_length)

    def plan_of(self, stream: TokenStream) -> WindowPlan:
        """How a text is cut into windows."""
        return WindowPlan(stream, self.recipe.data.max_length, self.recipe.train.batch_tokens, self.recipe.train.seed)

    def epoch(self, number: int) -> list[np.ndarray]:
        """Batches of windows."""
        return self.plan.epoch(number)

    def batch(self, ids: np.ndarray, epoch: int, device: torch.device) -> CausalBatch:
        """The windows of one batch; nothing in it is random."""
        return self.read(self.text.train, ids, device)

    def read(self, stream: TokenStream, starts: np.ndarray, device: torch.device) -> CausalBatch:
        """The windows of a text that begin at `starts`."""
        ids, documents = windows(stream, starts, self.recipe.data.max_length)
        return collate(ids, documents, device, cross=self.recipe.data.cross_documents)

    def loss(self, model: LanguageModel, batch: CausalBatch) -> tuple[Loss, ...]:
        """The loss of the predicted tokens."""
        return (loss(model, batch, self.recipe.train.label_smoothing),)

    def summary(self, means: Sequence[Mean]) -> Scores:
        """Loss and perplexity of a token."""
        return {"loss": means[0].loss, "perplexity": perplexity(means[0].nll)}

    def validate(self, model: LanguageModel) -> Scores | None:
        """Every token of the validation text, each given at most `data.max_length` - 1 others of its window."""
        stream = self.text.valid
        if stream is None:
            return None
        device = next(model.parameters()).device
        starts = self.progress.part("batches", self.plan_of(stream).cover())
        means = self.mean_losses(model, (self.read(stream, some, device) for some in starts))
        return self.summary(means) | {"byte_perplexity": perplexity(means[0].nll * len(stream) / max(1, stream.bytes))}
