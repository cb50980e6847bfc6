"""Sequence-to-sequence tasks: base class for learning a target text from a source text with an encoder-decoder.

A subclass defines how pairs are read and how outputs are scored; see `heedful.tasks.translation`.

B batch, S source tokens, T target tokens.
"""

import math
import random
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar
from unicodedata import normalize

import numpy as np
import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from heedful.config.decoding import MAX_EXTRA
from heedful.config.schema import EXTRA, CorpusConfig, DataConfig, DecodeConfig, Recipe
from heedful.data.batches import BatchPlan, assemble, encode_with_bpe_dropout
from heedful.data.preparation.pairs import PreparedPairs, check_pairs, prepare_pairs, some_pairs
from heedful.data.random_numbers import seed_of
from heedful.data.readers.corpus import SentencePair, read_pairs
from heedful.data.readers.documents import check_files
from heedful.data.readers.filters import DropReport
from heedful.data.stores.pair_store import PairStore
from heedful.decode.cut_outputs import CutOutputs
from heedful.decode.translator import Translator
from heedful.evaluate.significance import Outcomes, mean_outcomes
from heedful.losses import Loss, cross_entropy, perplexity
from heedful.models.architectures import model_class
from heedful.models.model import SourceToTarget
from heedful.tasks.task import Mean, Scores, Task
from heedful.text.tokenizer import BOS, PAD
from heedful.text.tokenizer_pair import TokenizerPair

WITHOUT_DECODING = ("loss", "perplexity")  # scores that need no decoding
NEARLY_ALL = 0.999  # the share of the training texts that the length limit has room for: a few may be mistakes
SPARE = 1.25  # times what these need: other texts may be a little longer


@dataclass(frozen=True)
class PairBatch:
    """Batch of padded source and target pairs. The decoder's input is the target shifted right, after <bos>."""

    source: Shaped[Tensor, "B S *F"]
    source_padding_mask: Bool[Tensor, "B S"]
    target_in: Int[Tensor, "B T"]
    target_out: Int[Tensor, "B T"]
    target_padding_mask: Bool[Tensor, "B T"]
    source_tokens: int
    target_tokens: int

    @property
    def tokens(self) -> int:
        """Number of real tokens of source and target in the batch, <eos> included."""
        return self.source_tokens + self.target_tokens

    @property
    def counts(self) -> tuple[int, ...]:
        """Divisor of the loss: the number of real target tokens in the batch."""
        return (self.target_tokens,)


def collate(source: np.ndarray, target: np.ndarray, device: torch.device) -> PairBatch:
    """Collate padded rows of source and target ids, both ending in <eos>, into a batch with its padding masks."""
    x = torch.from_numpy(source)
    return pair_batch(x, x != PAD, torch.from_numpy(target), device)


def pair_batch(
    source: Shaped[Tensor, "B S *F"],
    padding_mask: Bool[Tensor, "B S"],
    target: Int[Tensor, "B T"],
    device: torch.device,
) -> PairBatch:
    """Make a batch of sources of any kind, with their padding mask, and of rows of target ids that end in <eos>."""
    return PairBatch(
        source=source.to(device),
        source_padding_mask=padding_mask.to(device),
        target_in=torch.nn.functional.pad(target, (1, -1), value=BOS).to(device),
        target_out=target.to(device),
        target_padding_mask=(target != PAD).to(device),
        source_tokens=int(padding_mask.sum()),
        target_tokens=int((target != PAD).sum()),
    )


def loss(model: SourceToTarget, batch: PairBatch, smoothing: float) -> Loss:
    """Compute the cross-entropy of all real target tokens of a batch, <eos> included, for an encoder-decoder."""
    hidden = model.hidden(batch.source, batch.source_padding_mask, batch.target_in, batch.target_padding_mask)
    target = batch.target_out[batch.target_padding_mask]
    return cross_entropy(hidden[batch.target_padding_mask], model.output.weight, target, smoothing, model.output.bias)


class WritingTask(Task[PairBatch]):
    """Base class of tasks that learn to write a target text, whatever the source is; a subclass defines `measure`.

    Attributes:
        means: the names of the scores that are means over outputs.
    """

    families = ("encoder_decoder",)
    means: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def with_length_limit(cls, recipe: Recipe, lengths: Sequence[np.ndarray]) -> Recipe:
        """Fill in `decode.max_extra`, unless the recipe has it, so that outputs may be as long as training texts.

        Args:
            recipe: The recipe.
            lengths: Of each training corpus the lengths of sources and targets (n, 2), each with its <eos>.
        """
        if recipe.decode.max_extra is not None:
            return recipe
        needed = np.concatenate([cls.extra_tokens(each) for each in lengths])
        measured = SPARE * float(np.quantile(needed, NEARLY_ALL, method="higher"))
        extra = min(max(EXTRA, math.ceil(measured)), MAX_EXTRA)
        return replace(recipe, decode=replace(recipe.decode, max_extra=extra))

    @classmethod
    def extra_tokens(cls, lengths: np.ndarray) -> np.ndarray:
        """Compute how many tokens each target (n,) is longer than its source, as `decode.max_extra` counts them."""
        return lengths[:, 1].astype(np.int64) - (lengths[:, 0] - 1)

    def alike(self, texts: Sequence[str]) -> list[str]:
        """Treat texts as the tokenizer treats what the model learns: in one normal form and, if so, in lower case."""
        config = self.tokenizers.target.config
        form = "NFKC" if config.normalization == "nfkc" else "NFC"
        normal = [normalize(form, text) for text in texts]
        return [text.lower() for text in normal] if config.lowercase else normal

    def tell_lower_case(self, references: Sequence[str]) -> None:
        """Report that the case of references does not count, if they have capitals, which the model never learned."""
        if self.tokenizers.target.config.lowercase and any(text != text.lower() for text in references):
            self.tell(
                "scores compare lower-cased text on both sides, as tokenizer.lowercase = true is how the model writes"
            )

    def tell_cut(self, model: SourceToTarget, complete: Sequence[bool]) -> None:
        """Report outputs of the validation set that were cut at their length limit."""
        cut = CutOutputs()
        for each in complete:
            cut.count(each)
        if line := cut.line(self.recipe.decode, model.max_target_positions()):
            self.tell(line)

    @abstractmethod
    def measure(self, outputs: Sequence[str], references: Sequence[str]) -> Scores:
        """Score output texts against their references, with the metrics of the task."""

    @abstractmethod
    def given(self, model: SourceToTarget) -> Scores | None:
        """Compute loss and perplexity of the validation set by teacher forcing; None without a validation set."""

    @abstractmethod
    def outputs(self, model: SourceToTarget, config: DecodeConfig) -> list[tuple[str, str]]:
        """Decode the sources of the validation set as the settings say; return each output with its reference."""

    @abstractmethod
    def write(self, model: SourceToTarget, config: DecodeConfig, number: int) -> object:
        """Decode one source of the validation set, by its number from 0, by itself."""

    @property
    def best(self) -> str:
        """Name of the score that selects the best checkpoint: that of the recipe, else the first that is measured."""
        measured = self.scores if self.recipe.train.validate_decoding else WITHOUT_DECODING
        return self.recipe.train.best or measured[0]

    def loss(self, model: SourceToTarget, batch: PairBatch) -> tuple[Loss, ...]:
        """Compute the loss of the target tokens of a batch."""
        return (loss(model, batch, self.recipe.train.label_smoothing),)

    def summary(self, means: Sequence[Mean]) -> Scores:
        """Compute loss and perplexity per target token from mean losses."""
        return {"loss": means[0].loss, "perplexity": perplexity(means[0].nll)}

    def validate(self, model: Any) -> Scores | None:
        """Score a model on the validation set: loss, perplexity and, if the recipe asks for them, greedy outputs."""
        greedy = replace(self.recipe.decode, beam=1, n_best=1)
        return self.scored(model, greedy) if self.recipe.train.validate_decoding else self.given(model)

    def test(self, model: Any) -> Scores | None:
        """Score a model on the test set, which was prepared in place of the validation set (see `LoadedModel.test`).

        Scores are loss, perplexity, and those of outputs decoded as the recipe says.
        """
        return self.scored(model, replace(self.recipe.decode, n_best=1))

    def scored(self, model: SourceToTarget, config: DecodeConfig) -> Scores | None:
        """Compute loss, perplexity and the scores of outputs on the validation set; None without one."""
        given = self.given(model)
        if given is None:
            return None
        if undefined := self.scores_of_nan(given):
            return undefined
        outputs, references = zip(*self.outputs(model, config), strict=True)
        self.tell_lower_case(references)
        return given | self.measure(outputs, references)

    def outcomes(self, model: SourceToTarget) -> Outcomes:
        """Score each output separately, for significance tests of scores that are means over outputs, such as ROUGE.

        Raises:
            InputError: none of the scores is a mean over outputs.
        """
        if not self.means:
            return super().outcomes(model)
        return self.resampled(*zip(*self.outputs(model, replace(self.recipe.decode, n_best=1)), strict=True))

    def resampled(self, outputs: Sequence[str], references: Sequence[str]) -> Outcomes:
        """Score each output separately, so that the scores of any resample of the outputs can be computed."""
        found = [self.measure([output], [wanted]) for output, wanted in zip(outputs, references, strict=True)]
        return mean_outcomes({name: [scores[name] for scores in found] for name in self.means})


class SequenceToSequence(WritingTask):
    """Base class of sequence-to-sequence tasks; a subclass defines `measure`, and `read` for files of another kind."""

    command = "heedful write"

    def __init__(self, recipe: Recipe, prepared: PreparedPairs) -> None:
        lengths = [store.lengths for store in prepared.train]
        recipe = self.with_length_limit(recipe, lengths)
        super().__init__(recipe, prepared.tokenizers, prepared.digest)
        self.prepared = prepared
        self.plan = BatchPlan(lengths, prepared.weights, recipe.train.batch_tokens, recipe.train.seed)

    def check_data(self) -> None:
        """Check that the prepared data has not changed since it was opened."""
        self.prepared.check_unchanged()

    @classmethod
    def check_recipe(cls, recipe: Recipe) -> None:
        """Check that a recipe has what source and target pairs need; see `check_pairs`."""
        check_pairs(recipe)

    @classmethod
    def peek(cls, corpus: CorpusConfig, recipe: Recipe, /) -> Iterator[object]:
        """Iterate over the source and target pairs of a corpus, to find errors in its files early."""
        check_files(corpus, recipe.data)
        drops = DropReport()
        return some_pairs(cls.read(corpus, recipe.data, drops), corpus.source, drops)

    @classmethod
    def prepare(cls, recipe: Recipe, folder: Path, report: Callable[[str], None]) -> Any:
        """Prepare the pairs of a recipe, or read prepared ones, and create the task."""
        return cls(recipe, prepare_pairs(recipe, folder, report, cls.read))

    @staticmethod
    def read(corpus: CorpusConfig, data: DataConfig, report: DropReport | None = None, /) -> Iterator[SentencePair]:
        """Read source and target pairs from two files line by line, or from two fields of one table or JSONL file."""
        return read_pairs(corpus, data, report)

    @classmethod
    def build(cls, recipe: Recipe, tokenizers: TokenizerPair) -> SourceToTarget:
        """Build an encoder-decoder for the vocabularies of source and target."""
        return model_class(recipe.model)(recipe.model, len(tokenizers.source), len(tokenizers.target))

    @classmethod
    def use(cls, model: SourceToTarget, recipe: Recipe, tokenizers: TokenizerPair) -> Translator:
        """Create the predictor that writes a target text for each source text."""
        return Translator(model, tokenizers, recipe.decode)

    def epoch(self, number: int) -> list[np.ndarray]:
        """List the batches of an epoch, with pairs of similar length in each."""
        return self.plan.epoch(number)

    def cells(self, ids: np.ndarray) -> int:
        """Return the size of a batch in tokens of its longest side, padding included."""
        return self.plan.cells(ids)

    def batch(self, ids: np.ndarray, epoch: int, device: torch.device) -> PairBatch:
        """Assemble the pairs of one batch; with BPE dropout in the recipe, words are split into subwords anew."""
        source, target = assemble(self.prepared.train, ids)
        if rate := self.recipe.tokenizer.dropout:
            rng = random.Random(seed_of(self.recipe.train.seed, epoch, int(ids[0])))
            model = self.recipe.model
            longest = [each or math.inf for each in (model.learned_positions, model.learned_target_positions)]
            source = encode_with_bpe_dropout(source, self.tokenizers.source, rate, rng, longest[0])
            target = encode_with_bpe_dropout(target, self.tokenizers.target, rate, rng, longest[1])
        return collate(source, target, device)

    def given(self, model: SourceToTarget) -> Scores | None:
        """Compute loss and perplexity of the validation pairs by teacher forcing; None without them."""
        store = self.prepared.valid
        return self.summary(self.mean_losses(model, self.valid_batches(store, model))) if store is not None else None

    def valid_batches(self, store: PairStore, model: SourceToTarget) -> Iterator[PairBatch]:
        """Iterate over the batches of the validation set, in a fixed order."""
        device = next(model.parameters()).device
        plan = BatchPlan([store.lengths], [1.0], self.recipe.train.batch_tokens, seed=0)
        return (collate(*assemble([store], ids), device) for ids in self.progress.part("batches", plan.epoch(0)))

    def outputs(self, model: SourceToTarget, config: DecodeConfig) -> list[tuple[str, str]]:
        """Decode the raw validation texts; return each output with its reference."""
        sources, references = zip(*self.prepared.valid_text, strict=True)
        translator = Translator(model, self.tokenizers, config)
        own = list(self.reducer.share(sources))
        self.progress.begin("texts", len(own))
        outputs = translator.translate_lines(own, done=self.progress.advance)
        found = self.reducer.in_order([(output.text, output.truncated, output.complete) for output in outputs])
        self.tell_cut(model, [complete for *_, complete in found])
        if cut := sum(truncated for _, truncated, _ in found):
            limit = f"the {translator.longest_source - 1:,} tokens that the model reads"
            self.tell(f"texts longer than {limit}, and cut to that: {cut:,} of {len(found):,}")
        return [(text, reference) for (text, *_), reference in zip(found, references, strict=True)]

    def write(self, model: SourceToTarget, config: DecodeConfig, number: int) -> str:
        """Decode one raw validation text, by its number from 0, by itself."""
        source, _ = self.prepared.valid_text[number]
        return Translator(model, self.tokenizers, config).translate(source)


class TextToText(SequenceToSequence):
    """Text-to-text task: pairs of an input text and the one right output text (Raffel et al. 2020, section 2.4)."""

    scores = ("exact_match", "loss", "perplexity")
    means = ("exact_match",)

    def measure(self, outputs: Sequence[str], references: Sequence[str]) -> Scores:
        """Score outputs by exact match: the share equal to the reference, word for word."""
        return {"exact_match": exact_match(self.alike(outputs), self.alike(references))}


def exact_match(outputs: Sequence[str], references: Sequence[str]) -> float:
    """Compute the share of outputs that equal their references word for word; spaces do not count."""
    right = [output.split() == reference.split() for output, reference in zip(outputs, references, strict=True)]
    return sum(right) / len(right)
