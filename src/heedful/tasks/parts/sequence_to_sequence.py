"""Tasks that learn to generate a target text with an encoder-decoder, from text, images or audio.

This module contains, in this order, the batch and its loss, the data of text pairs, and the base class of these
tasks, which decodes the validation set. A subclass specifies its data and its metrics.

B batch, S source positions, T target tokens, F features of a position.
"""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from heedful.architectures.backbone import model_class
from heedful.architectures.model import SourceToTarget
from heedful.config.decoding import MAX_EXTRA
from heedful.config.schema import EXTRA, DecodeConfig, Recipe
from heedful.data.batches import assemble, encode_with_bpe_dropout
from heedful.data.lexical_table import lexical_table
from heedful.data.preparation.pairs import PreparedPairs, prepare_pairs
from heedful.data.stores import PairStore
from heedful.losses import Loss, output_cross_entropy, perplexity
from heedful.metrics.texts import Texts
from heedful.predictors.outputs import CutOutputs
from heedful.predictors.predictor import AnyPredictor
from heedful.predictors.translator import Translator
from heedful.random_numbers import seed_of
from heedful.tasks.dataset import Dataset, Report
from heedful.tasks.readers.texts import PairReader
from heedful.tasks.task import ALONE, Evaluation, Mean, Results, Scores, Task
from heedful.text.shortlist import Shortlist, always_allowed
from heedful.text.tokenizer import BOS, PAD
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.wording import part_of, were

# The length limit of outputs is the length that this share of the training texts does not exceed (the rest may be
# mistakes), times a margin, because other texts may be a little longer.
LENGTH_QUANTILE, LENGTH_MARGIN = 0.999, 1.25


@dataclass(frozen=True)
class PairBatch:
    """Batch of padded source and target pairs. The decoder's input is the target shifted right, with <bos> first."""

    source: Shaped[Tensor, "B S *F"]
    source_padding_mask: Bool[Tensor, "B S"]
    target_in: Int[Tensor, "B T"]
    target_out: Int[Tensor, "B T"]
    target_padding_mask: Bool[Tensor, "B T"]
    source_tokens: int
    target_tokens: int

    @property
    def tokens(self) -> int:
        return self.source_tokens + self.target_tokens

    @property
    def counts(self) -> tuple[int, ...]:
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
    """Make a batch from sources of any modality, their padding mask, and rows of target ids that end in <eos>."""
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
    # Teacher forcing: the decoder reads the reference, shifted by one, and all tokens are predicted at once.
    hidden = model.hidden(batch.source, batch.source_padding_mask, batch.target_in, batch.target_padding_mask)
    real = batch.target_padding_mask  # (B, T, D) -> (N, D), without padding
    return output_cross_entropy(hidden[real], model.output, batch.target_out[real], smoothing)


class Pairs(Dataset[PairBatch]):
    """Pairs of a source text and a target text."""

    reader: ClassVar[type[PairReader]] = PairReader
    examples: PreparedPairs

    def __init__(self, recipe: Recipe, examples: PreparedPairs) -> None:
        super().__init__(with_length_limit(recipe, [store.lengths for store in examples.train]), examples)

    @classmethod
    def prepare(cls, recipe: Recipe, folder: Path, report: Report, tokenizers: TokenizerPair | None = None) -> Any:
        return cls(recipe, prepare_pairs(recipe, folder, report, cls.reader.pairs, tokenizers))

    def read(self, stores: Sequence[PairStore], ids: np.ndarray, epoch: int | None, device: torch.device) -> PairBatch:
        """Read the pairs of one batch; in training with BPE dropout, words are split into subwords anew."""
        source, target = assemble(stores, ids)
        dropout = self.recipe.tokenizer.dropout
        if dropout and epoch is not None:
            # Keyed by the first example of the batch, so that workers and resumed runs split words in the same way.
            rng = random.Random(seed_of(self.recipe.train.seed, epoch, int(ids[0])))
            model = self.recipe.model
            # BPE dropout makes texts longer, but a text must not have more tokens than there are learned positions.
            source_room, target_room = model.learned_positions or math.inf, model.learned_target_positions or math.inf
            source = encode_with_bpe_dropout(source, self.tokenizers.source, dropout, rng, source_room)
            target = encode_with_bpe_dropout(target, self.tokenizers.target, dropout, rng, target_room)
        return collate(source, target, device)

    def final_tokenizers(self) -> TokenizerPair:
        size = self.recipe.decode.shortlist
        return with_shortlist(self.tokenizers, self.examples.train, size) if size else self.tokenizers

    @property
    def references(self) -> list[str]:
        """The target texts of the validation or test set."""
        return [target for _, target in self.examples.valid_text]


def with_length_limit(recipe: Recipe, lengths: Sequence[np.ndarray]) -> Recipe:
    """Fill in `decode.max_extra`, unless the recipe sets it, so that outputs may be as long as training texts.

    `lengths` are the source and target lengths in each training corpus, (n, 2), <eos> included.
    """
    if recipe.decode.max_extra is not None or not lengths:
        return recipe
    source, target = np.concatenate(lengths).astype(np.int64).T
    # `max_extra` is added to the length of a text without its <eos>, or to the frames of audio; the limit of a caption
    # does not depend on the size of the image.
    base = {"text": source - 1, "audio": source, "image": np.zeros_like(source)}[recipe.data.modality]
    limit = LENGTH_MARGIN * float(np.quantile(target - base, LENGTH_QUANTILE, method="higher"))
    extra = min(max(EXTRA, math.ceil(limit)), MAX_EXTRA)
    return replace(recipe, decode=replace(recipe.decode, max_extra=extra))


def with_shortlist(tokenizers: TokenizerPair, stores: Sequence[PairStore], size: int) -> TokenizerPair:
    """Return tokenizers with a shortlist of `size` likely translations of each source token, learned from `stores`."""
    source, target = (each.pieces(range(len(each))) for each in (tokenizers.source, tokenizers.target))
    counts = [np.bincount(store.targets, minlength=len(target)) for store in stores]
    always = always_allowed(np.sum(counts, axis=0), target)
    table = lexical_table(stores, *tokenizers.sizes, size, left_out=always)
    return replace(tokenizers, shortlist=Shortlist.build(table, always, source, target))


class Output(NamedTuple):
    """Generated text, with two facts: was it completed before the length limit, and was its source truncated?"""

    text: str
    complete: bool
    truncated: bool = False


class SequenceToSequence(Task[PairBatch]):
    """Base class of tasks that generate a target text, by default for a source text; a task sets its spec."""

    dataset = Pairs

    @staticmethod
    def build(recipe: Recipe, tokenizers: TokenizerPair) -> SourceToTarget:
        return model_class(recipe.model)(recipe.model, len(tokenizers.source), len(tokenizers.target))

    @staticmethod
    def use(model: SourceToTarget, recipe: Recipe, tokenizers: TokenizerPair) -> AnyPredictor:
        return Translator(model, tokenizers, recipe.decode)

    def loss(self, model: SourceToTarget, batch: PairBatch) -> tuple[Loss, ...]:
        return (loss(model, batch, self.recipe.train.label_smoothing),)

    def summary(self, means: Sequence[Mean]) -> Scores:
        return {"loss": means[0].loss, "perplexity": perplexity(means[0].nll)}

    def evaluate(self, model: SourceToTarget, run: Evaluation = ALONE) -> Results | None:
        """Score a model; losses come first in the scores, because a validation without decoding has no others."""
        results = super().evaluate(model, run)
        if results is None or results.outcomes is None:
            return results
        texts = results.outcomes.whole or {}
        return replace(results, scores={name: x for name, x in results.scores.items() if name not in texts} | texts)

    def outputs(self, model: SourceToTarget, run: Evaluation) -> Texts | None:
        """Decode the validation set greedily or, in a test, as the recipe says; return None if it is not decoded."""
        if not (run.is_test or self.recipe.train.validate_decoding):
            return None
        config = replace(self.recipe.decode, n_best=1)
        return self.decode_all(model, config if run.is_test else replace(config, beam=1), run)

    def decode_all(self, model: SourceToTarget, config: DecodeConfig, run: Evaluation) -> Texts:
        """Decode all sources of the validation or test set; each process decodes its share."""
        references = self.data.references
        numbers = list(run.reducer.shard(range(len(references))))
        run.progress.begin("texts", len(numbers))
        local = list(self.decode(model, config, numbers, run))
        outputs = [Output(*output) for output in run.reducer.all_gather_in_order(local)]

        # Warn about outputs that were cut at the length limit, and about sources that were truncated.
        cut = CutOutputs()
        for output in outputs:
            cut.count(output.complete)
        option = "--max-extra" if run.is_test else "decode.max_extra"
        if line := cut.line(self.recipe.decode, model.max_target_positions(), option, in_training=not run.is_test):
            run.warn(line)
        if truncated := sum(output.truncated for output in outputs):
            limit = Translator(model, self.tokenizers, self.recipe.decode).longest_source - 1
            run.warn(
                f"{part_of(truncated, len(outputs), 'texts')} {were(truncated)} truncated to the {limit:,} tokens that "
                "the model reads"
            )

        texts = texts_of([output.text for output in outputs], references, self.recipe, self.tokenizers)
        if texts.lowercase and any(text != text.lower() for text in references):
            run.warn(
                "scores compare lower-cased text on both sides, as tokenizer.lowercase = true lower-cases the output"
            )
        return texts

    def decode(
        self, model: SourceToTarget, config: DecodeConfig, numbers: Sequence[int], run: Evaluation
    ) -> Iterator[Output]:
        """Decode the sources of the validation examples with the given `numbers`, counted from 0."""
        sources = [self.data.examples.valid_text[number][0] for number in numbers]
        computed = run.predictor.with_options(**asdict(config)) if run.predictor else None
        translator = computed or Translator(model, self.tokenizers, config)
        for output in translator.translate_lines(sources, done=run.progress.advance):
            yield Output(output.text, output.complete, output.truncated)


def texts_of(outputs: Sequence[str], references: Sequence[str], recipe: Recipe, tokenizers: TokenizerPair) -> Texts:
    """Combine outputs with their references, for comparison in the Unicode normal form and case that a model learns."""
    target = tokenizers.target.config
    form = "NFKC" if target.normalization == "nfkc" else "NFC"
    return Texts(outputs, references, recipe.data.target_language, target.lowercase, form)
