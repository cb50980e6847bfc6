"""Masked language modelling: hidden tokens, and whether two passages are neighbours (Devlin et al. 2019, section 3.1).

B batch, S tokens.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.documents import check_files, document_lines
from heedful.data.masking import mask_tokens
from heedful.data.one_text import fewest_documents
from heedful.data.passages import PassagePlan, SentenceStore, assemble, check_count
from heedful.data.pretraining import Passages, check_passages, prepare_passages
from heedful.decode.filler import Filler
from heedful.losses import Loss, cross_entropy, label_cross_entropy, perplexity
from heedful.models import MaskedLanguageModel
from heedful.tasks.task import Mean, Scores, Task
from heedful.text.tokenizer import PAD
from heedful.text.tokenizer_pair import TokenizerPair


@dataclass(frozen=True)
class MaskedBatch:
    """Padded passages with some of their tokens hidden."""

    inputs: Int[Tensor, "B S"]
    padding_mask: Bool[Tensor, "B S"]
    segments: Int[Tensor, "B S"]
    chosen: Bool[Tensor, "B S"]  # the tokens to be predicted
    targets: Int[Tensor, "B S"]
    strange: Int[Tensor, " B"]  # 0 where the second passage follows the first, 1 where it does not
    pairs: bool
    tokens: int

    @property
    def counts(self) -> tuple[int, ...]:
        """One loss is a mean over hidden tokens, the other one over pairs."""
        hidden = int(self.chosen.sum())
        return (hidden, len(self.inputs)) if self.pairs else (hidden,)


@dataclass
class Accuracy:
    """The share of decisions that are right."""

    right: int = 0
    count: int = 0

    def add(self, logits: Float[Tensor, "N C"], wanted: Int[Tensor, " N"]) -> None:
        """Take the likeliest of each row for the decision."""
        self.right += int((logits.argmax(-1) == wanted).sum())
        self.count += len(wanted)

    @property
    def value(self) -> float:
        """From 0 to 1."""
        return self.right / max(self.count, 1)


class MaskedLanguageModelling(Task[MaskedBatch]):
    """Hidden tokens from all others, and neighbours from strangers."""

    families = ("encoder",)
    command = "heedful fill"
    example = "'The man [MASK] a bike.'"
    scores = ("loss", "perplexity", "accuracy", "next_sentence_loss", "next_sentence_accuracy")

    def __init__(self, recipe: Recipe, passages: Passages) -> None:
        super().__init__(recipe, TokenizerPair(passages.tokenizer, passages.tokenizer), passages.digest)
        self.passages = passages
        self.plan = self.plan_of(passages.train, recipe.train.seed)
        self.valid_plan = self.plan_of(passages.valid, seed=0) if passages.valid else None

    @classmethod
    def check_recipe(cls, recipe: Recipe) -> None:
        """See `heedful.data.pretraining.check_passages`."""
        check_passages(recipe)

    @classmethod
    def resolve(cls, recipe: Recipe) -> Recipe:
        """The recipe as it is, if its training and its validation text have enough documents."""
        check_count(fewest_documents(recipe, most=2), recipe.masking)
        return recipe

    @classmethod
    def peek(cls, corpus: CorpusConfig, recipe: Recipe, /) -> Iterator[object]:
        """The lines of a corpus, whatever a document is."""
        check_files(corpus, recipe.data)
        return document_lines(corpus, recipe.data)

    @classmethod
    def prepare(cls, recipe: Recipe, folder: Path, report: Callable[[str], None]) -> "MaskedLanguageModelling":
        """See `heedful.data.pretraining`."""
        return cls(recipe, prepare_passages(recipe, folder, report))

    @classmethod
    def build(cls, recipe: Recipe, tokenizers: TokenizerPair) -> MaskedLanguageModel:
        """An encoder with its heads."""
        return MaskedLanguageModel(recipe.model, len(tokenizers.source), pairs=recipe.masking.next_sentence)

    @classmethod
    def use(cls, model: MaskedLanguageModel, recipe: Recipe, tokenizers: TokenizerPair) -> Filler:
        """What fills gaps in."""
        return Filler(model, tokenizers.source, recipe.data.max_length)

    def plan_of(self, store: SentenceStore, seed: int) -> PassagePlan:
        """How a text is cut into passages."""
        recipe = self.recipe
        return PassagePlan(store, recipe.masking, recipe.data.max_length, recipe.train.batch_tokens, seed)

    def epoch(self, number: int) -> list[np.ndarray]:
        """Batches of passages, cut anew in each epoch."""
        return self.plan.epoch(number)

    def batch(self, ids: np.ndarray, epoch: int, device: torch.device) -> MaskedBatch:
        """The passages of one batch, with masks that are drawn anew in each epoch."""
        return self.hide(self.passages.train, ids, (self.recipe.train.seed, epoch), device)

    def hide(self, store: SentenceStore, rows: np.ndarray, key: tuple[int, int], device: torch.device) -> MaskedBatch:
        """Read passages and hide some of their tokens; `key` is a seed and an epoch."""
        masking, tokenizer = self.recipe.masking, self.tokenizers.source
        ids, segments, is_next = assemble(store, rows)
        words = self.words(ids) if masking.whole_words else None
        keys = [(*key, int(number)) for number in rows["number"]]
        inputs, chosen = mask_tokens(ids, words, masking, len(tokenizer), tokenizer.first_word, keys)
        return MaskedBatch(
            inputs=torch.from_numpy(inputs).to(device),
            padding_mask=torch.from_numpy(ids != PAD).to(device),
            segments=torch.from_numpy(segments).to(device),
            chosen=torch.from_numpy(chosen).to(device),
            targets=torch.from_numpy(ids).to(device),
            strange=torch.from_numpy(~is_next).long().to(device),
            pairs=masking.next_sentence,
            tokens=int((ids != PAD).sum()),
        )

    def words(self, ids: np.ndarray) -> np.ndarray:
        """The number of each token's word."""
        return np.array([self.tokenizers.source.word_of_piece(row) for row in ids.tolist()])

    def loss(self, model: MaskedLanguageModel, batch: MaskedBatch) -> tuple[Loss, ...]:
        """The loss of the hidden tokens and, of pairs, that of telling neighbours."""
        states = model.backbone(batch.inputs, batch.padding_mask, batch.segments)
        hidden = model.transform(states[batch.chosen])
        smoothing = self.recipe.train.label_smoothing
        tokens = cross_entropy(hidden, model.output.weight, batch.targets[batch.chosen], smoothing, model.output.bias)
        if model.next_sentence is None:
            return (tokens,)
        return tokens, label_cross_entropy(model.next_sentence(states, batch.padding_mask), batch.strange)

    def summary(self, means: Sequence[Mean]) -> Scores:
        """The sum of both losses, the perplexity of a hidden token, and the loss of telling neighbours."""
        neighbours = {"next_sentence_loss": means[1].loss} if len(means) > 1 else {}
        return {"loss": sum(mean.loss for mean in means), "perplexity": perplexity(means[0].nll), **neighbours}

    def validate(self, model: MaskedLanguageModel) -> Scores | None:
        """Passages and masks of the validation text that are always the same."""
        if self.valid_plan is None:
            return None
        means = self.mean_losses(model, self.batches_of(self.valid_plan, model))
        return self.summary(means) | self.accuracies(model, self.batches_of(self.valid_plan, model))

    def batches_of(self, plan: PassagePlan, model: MaskedLanguageModel) -> Iterator[MaskedBatch]:
        """The passages of a plan, always the same and with the same masks."""
        device = next(model.parameters()).device
        return (self.hide(plan.store, rows, (0, 0), device) for rows in self.progress.part("batches", plan.epoch(0)))

    def accuracies(self, model: MaskedLanguageModel, batches: Iterable[MaskedBatch]) -> Scores:
        """How often the likeliest token is the hidden one, and the likelier answer the right one."""
        tokens, pairs = Accuracy(), Accuracy()
        for batch in batches:
            states = model.backbone(batch.inputs, batch.padding_mask, batch.segments)
            tokens.add(model.output(model.transform(states[batch.chosen])), batch.targets[batch.chosen])
            if model.next_sentence is not None:
                pairs.add(model.next_sentence(states, batch.padding_mask), batch.strange)
        neighbours = {"next_sentence_accuracy": pairs.value} if pairs.count else {}
        return {"accuracy": tokens.value, **neighbours}
