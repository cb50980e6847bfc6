"""What tasks that write a text from a text share: pairs in, the loss of each target token given all before it.

A task is a class that says how pairs are read and how good outputs are; see `heedful.tasks.translation`.

B batch, S source tokens, T target tokens.
"""

import random
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heedful.config.schema import CorpusConfig, DataConfig, DecodeConfig, Recipe
from heedful.data.batches import BatchPlan, assemble
from heedful.data.bpe_dropout import respell
from heedful.data.corpus import SentencePair, read_pairs
from heedful.data.documents import check_files
from heedful.data.filters import DropReport
from heedful.data.pair_store import PairStore
from heedful.data.prepare import Prepared, check_pairs, prepare, some_pairs
from heedful.data.random_numbers import seed_of
from heedful.decode.translator import Translator
from heedful.evaluate.resampling import Outcomes, mean_outcomes
from heedful.losses import Loss, cross_entropy, perplexity
from heedful.models import EncoderDecoder, SourceToTarget
from heedful.models.word_vectors import place_vectors
from heedful.tasks.task import Mean, Scores, Task
from heedful.text.tokenizer import BOS, PAD
from heedful.text.tokenizer_pair import TokenizerPair

WITHOUT_DECODING = ("loss", "perplexity")  # scores of the right outputs


@dataclass(frozen=True)
class PairBatch:
    """Padded pairs. The decoder's input is the target shifted right, beginning with <bos>."""

    source: Int[Tensor, "B S"]
    source_padding_mask: Bool[Tensor, "B S"]
    target_in: Int[Tensor, "B T"]
    target_out: Int[Tensor, "B T"]
    target_padding_mask: Bool[Tensor, "B T"]
    source_tokens: int
    target_tokens: int

    @property
    def tokens(self) -> int:
        """Real tokens of both sides, <eos> included."""
        return self.source_tokens + self.target_tokens

    @property
    def counts(self) -> tuple[int, ...]:
        """The loss is a mean over target tokens."""
        return (self.target_tokens,)


def collate(source: np.ndarray, target: np.ndarray, device: torch.device) -> PairBatch:
    """Make a batch of padded rows of ids, both sides ending in <eos>."""
    x, y = torch.from_numpy(source), torch.from_numpy(target)
    shifted = torch.nn.functional.pad(y, (1, -1), value=BOS)
    return PairBatch(
        source=x.to(device),
        source_padding_mask=(x != PAD).to(device),
        target_in=shifted.to(device),
        target_out=y.to(device),
        target_padding_mask=(y != PAD).to(device),
        source_tokens=int((source != PAD).sum()),
        target_tokens=int((target != PAD).sum()),
    )


def loss(model: SourceToTarget, batch: PairBatch, smoothing: float) -> Loss:
    """The loss of every real target token, <eos> included."""
    hidden = model.hidden(batch.source, batch.source_padding_mask, batch.target_in, batch.target_padding_mask)
    target = batch.target_out[batch.target_padding_mask]
    return cross_entropy(hidden[batch.target_padding_mask], model.output.weight, target, smoothing, model.output.bias)


class SequenceToSequence(Task[PairBatch]):
    """A text from a text. What a task adds is `measure`, and `read` where its files are of another kind.

    Attributes:
        means: those of the scores that are means over outputs.
    """

    families = ("encoder_decoder",)
    command = "heedful write"
    means: ClassVar[tuple[str, ...]] = ()

    def __init__(self, recipe: Recipe, prepared: Prepared) -> None:
        super().__init__(recipe, prepared.tokenizers, prepared.digest)
        self.prepared = prepared
        lengths = [store.lengths for store in prepared.train]
        self.plan = BatchPlan(lengths, prepared.weights, recipe.train.batch_tokens, recipe.train.seed)

    @classmethod
    def check_recipe(cls, recipe: Recipe) -> None:
        """See `heedful.data.prepare.check_pairs`."""
        check_pairs(recipe)

    @classmethod
    def peek(cls, corpus: CorpusConfig, recipe: Recipe, /) -> Iterator[object]:
        """The pairs of a corpus."""
        check_files(corpus, recipe.data)
        drops = DropReport()
        return some_pairs(cls.read(corpus, recipe.data, drops), corpus.source, drops)

    @classmethod
    def prepare(cls, recipe: Recipe, folder: Path, report: Callable[[str], None]) -> Any:
        """See `heedful.data.prepare`."""
        return cls(recipe, prepare(recipe, folder, report, cls.read))

    @staticmethod
    def read(corpus: CorpusConfig, data: DataConfig, report: DropReport | None = None, /) -> Iterator[SentencePair]:
        """The pairs of a corpus: two files line by line, or the two fields of one table or list of objects."""
        return read_pairs(corpus, data, report)

    @abstractmethod
    def measure(self, outputs: Sequence[str], references: Sequence[str]) -> Scores:
        """How good outputs are, each beside what it should be."""

    @classmethod
    def build(cls, recipe: Recipe, tokenizers: TokenizerPair) -> SourceToTarget:
        """An encoder-decoder of the recipe's architecture."""
        return EncoderDecoder(recipe.model, len(tokenizers.source), len(tokenizers.target))

    @classmethod
    def use(cls, model: SourceToTarget, recipe: Recipe, tokenizers: TokenizerPair) -> Translator:
        """What writes a text for each text."""
        return Translator(model, tokenizers, recipe.decode)

    @property
    def best(self) -> str:
        """The first of the scores that are measured."""
        measured = self.scores if self.recipe.train.validate_decoding else WITHOUT_DECODING
        return self.recipe.train.best or measured[0]

    def initialise(self, model: SourceToTarget) -> None:
        """Put word vectors where the recipe names some."""
        place_vectors(model, self.recipe, self.tokenizers)

    def epoch(self, number: int) -> list[np.ndarray]:
        """Batches of pairs of similar length."""
        return self.plan.epoch(number)

    def batch(self, ids: np.ndarray, epoch: int, device: torch.device) -> PairBatch:
        """The pairs of one batch, spelled anew if the recipe asks for BPE dropout."""
        source, target = assemble(self.prepared.train, ids)
        if rate := self.recipe.tokenizer.dropout:
            rng = random.Random(seed_of(self.recipe.train.seed, epoch, int(ids[0])))
            source = respell(source, self.tokenizers.source, rate, rng)
            target = respell(target, self.tokenizers.target, rate, rng)
        return collate(source, target, device)

    def loss(self, model: SourceToTarget, batch: PairBatch) -> tuple[Loss, ...]:
        """The loss of the target tokens."""
        return (loss(model, batch, self.recipe.train.label_smoothing),)

    def summary(self, means: Sequence[Mean]) -> Scores:
        """Loss and perplexity of a target token."""
        return {"loss": means[0].loss, "perplexity": perplexity(means[0].nll)}

    def validate(self, model: SourceToTarget) -> Scores | None:
        """Loss and perplexity given the right tokens before; and the scores of greedy outputs, if the recipe asks."""
        if self.prepared.valid is None:
            return None
        scores = self.given(model, self.prepared.valid)
        if not self.recipe.train.validate_decoding:
            return scores
        return scores | self.decoded(model, replace(self.recipe.decode, beam=1, n_best=1))

    def test(self, model: SourceToTarget) -> Scores | None:
        """The same of outputs that are searched for as the recipe says."""
        if self.prepared.valid is None:
            return None
        scores = self.given(model, self.prepared.valid)
        return scores | self.decoded(model, replace(self.recipe.decode, n_best=1))

    def outcomes(self, model: SourceToTarget) -> Outcomes:
        """The scores of each output by itself, as far as the scores of all are means of them.

        Raises:
            InputError: none of them is.
        """
        if not self.means:
            return super().outcomes(model)
        outputs = self.outputs(model, replace(self.recipe.decode, n_best=1))
        found = [self.measure([output], [wanted]) for output, wanted in outputs]
        return mean_outcomes({name: [scores[name] for scores in found] for name in self.means})

    def given(self, model: SourceToTarget, store: PairStore) -> Scores:
        """Loss and perplexity given the right tokens before."""
        return self.summary(self.mean_losses(model, self.valid_batches(store, model)))

    def valid_batches(self, store: PairStore, model: SourceToTarget) -> Iterator[PairBatch]:
        """The validation set."""
        device = next(model.parameters()).device
        plan = BatchPlan([store.lengths], [1.0], self.recipe.train.batch_tokens, seed=0)
        return (collate(*assemble([store], ids), device) for ids in self.progress.part("batches", plan.epoch(0)))

    def decoded(self, model: SourceToTarget, config: DecodeConfig) -> Scores:
        """How good outputs for the raw validation text are."""
        return self.measure(*zip(*self.outputs(model, config), strict=True))

    def outputs(self, model: SourceToTarget, config: DecodeConfig) -> list[tuple[str, str]]:
        """Outputs of a model for the raw validation texts, each with what it should be."""
        sources, references = zip(*self.prepared.valid_text, strict=True)
        translator = Translator(model, self.tokenizers, config)
        self.progress.begin("texts", len(sources))
        found = list(translator.translate_lines(sources, done=self.progress.advance))
        if cut := sum(output.truncated for output in found):
            limit = f"the {translator.longest_source - 1:,} tokens that the model reads"
            self.tell(f"texts longer than {limit}, and cut to that: {cut:,} of {len(found):,}")
        return [(output.text, reference) for output, reference in zip(found, references, strict=True)]
