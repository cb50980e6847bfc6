"""Tasks that learn to write a target text with an encoder-decoder, whatever the source is: text, images or audio.

A task names its data and its metrics; the parts here are pairs of texts, the loss, and the texts that a model writes.

B batch, S source positions, T target tokens, F features of a position.
"""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from heedful.architectures.backbone import model_class
from heedful.architectures.model import SourceToTarget
from heedful.config.decoding import MAX_EXTRA
from heedful.config.schema import EXTRA, CorpusConfig, DataConfig, DecodeConfig, Recipe
from heedful.data.batches import assemble, encode_with_bpe_dropout
from heedful.data.preparation.pairs import PreparedPairs, check_pairs, prepare_pairs, some_pairs
from heedful.data.readers.corpus import SentencePair, read_pairs
from heedful.data.readers.documents import check_files
from heedful.data.readers.filters import DropReport
from heedful.losses import Loss, cross_entropy, perplexity
from heedful.metrics.texts import Texts
from heedful.predictors.outputs import CutOutputs
from heedful.predictors.predictor import AnyPredictor
from heedful.predictors.translator import Translator
from heedful.random_numbers import seed_of
from heedful.tasks.dataset import Dataset, Report
from heedful.tasks.parts.batches import BatchesByLength
from heedful.tasks.task import ALONE, Evaluation, Mean, Results, Scores, Task
from heedful.text.tokenizer import BOS, PAD
from heedful.text.tokenizer_pair import TokenizerPair

LENGTH_QUANTILE = 0.999  # of the training texts the length limit has room for; the rest may be mistakes
LENGTH_MARGIN = 1.25  # times what these need: other texts may be a little longer


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
    # Teacher forcing: the decoder reads the reference, shifted by one, and all tokens are predicted at once.
    hidden = model.hidden(batch.source, batch.source_padding_mask, batch.target_in, batch.target_padding_mask)
    target = batch.target_out[batch.target_padding_mask]
    return cross_entropy(hidden[batch.target_padding_mask], model.output.weight, target, smoothing, model.output.bias)


def with_length_limit(recipe: Recipe, lengths: Sequence[np.ndarray]) -> Recipe:
    """Fill in `decode.max_extra`, unless the recipe has it, so that outputs may be as long as training texts.

    `lengths` are those of sources and targets of each training corpus (n, 2), each with its <eos>.
    """
    if recipe.decode.max_extra is not None or not lengths:
        return recipe
    source, target = np.concatenate(lengths).astype(np.int64).T
    # What the limit counts from: a text without its <eos>, the frames of audio. A caption has its limit, whatever the
    # size of the image.
    base = {"text": source - 1, "audio": source, "image": np.zeros_like(source)}[recipe.data.modality]
    longest = LENGTH_MARGIN * float(np.quantile(target - base, LENGTH_QUANTILE, method="higher"))
    extra = min(max(EXTRA, math.ceil(longest)), MAX_EXTRA)
    return replace(recipe, decode=replace(recipe.decode, max_extra=extra))


class Pairs(BatchesByLength, Dataset[PairBatch]):
    """Pairs of a source text and a target text; a subclass may define `read` for files of another kind."""

    def __init__(self, recipe: Recipe, examples: PreparedPairs) -> None:
        recipe = with_length_limit(recipe, [store.lengths for store in examples.train])
        super().__init__(recipe, examples.tokenizers, examples.digest)
        self.plan_batches(examples, recipe)

    @classmethod
    def check(cls, recipe: Recipe) -> None:
        check_pairs(recipe)

    @classmethod
    def peek(cls, corpus: CorpusConfig, recipe: Recipe, /) -> Iterator[object]:
        check_files(corpus, recipe.data)
        drops = DropReport()
        return some_pairs(cls.read(corpus, recipe.data, drops), corpus.source, drops)

    @classmethod
    def prepare(cls, recipe: Recipe, folder: Path, report: Report, tokenizers: TokenizerPair | None = None) -> Any:
        return cls(recipe, prepare_pairs(recipe, folder, report, cls.read, tokenizers))

    @staticmethod
    def read(corpus: CorpusConfig, data: DataConfig, report: DropReport | None = None, /) -> Iterator[SentencePair]:
        return read_pairs(corpus, data, report)

    def batch(self, ids: np.ndarray, epoch: int, device: torch.device) -> PairBatch:
        """Assemble the pairs of one batch; with BPE dropout in the recipe, words are split into subwords anew."""
        source, target = assemble(self.examples.train, ids)
        if rate := self.recipe.tokenizer.dropout:
            rng = random.Random(seed_of(self.recipe.train.seed, epoch, int(ids[0])))
            model = self.recipe.model
            source_room, target_room = model.learned_positions or math.inf, model.learned_target_positions or math.inf
            source = encode_with_bpe_dropout(source, self.tokenizers.source, rate, rng, source_room)
            target = encode_with_bpe_dropout(target, self.tokenizers.target, rate, rng, target_room)
        return collate(source, target, device)

    def valid_batch(self, ids: np.ndarray, device: torch.device) -> PairBatch:
        return collate(*assemble(self.examples.stores[-1:], ids), device)

    @property
    def references(self) -> list[str]:
        """The target texts of the validation set."""
        return [target for _, target in self.examples.valid_text]


class Written(NamedTuple):
    """Text that a model wrote; whether it is complete, or was cut at the length limit; whether its source was cut."""

    text: str
    complete: bool
    truncated: bool = False


class SequenceToSequence(Task[PairBatch]):
    """Base class of tasks that write a target text: here for a source text; a task names its metrics."""

    families = ("encoder_decoder",)
    command = "heedful write"
    dataset = Pairs
    predicts = Texts

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

    def write(
        self, model: SourceToTarget, config: DecodeConfig, numbers: Sequence[int], run: Evaluation
    ) -> Iterator[Written]:
        """Decode the sources of validation examples, given by their numbers from 0, as the settings say."""
        sources = [self.data.examples.valid_text[number][0] for number in numbers]
        translator = Translator(model, self.tokenizers, config)
        for output in translator.translate_lines(sources, done=run.progress.advance):
            yield Written(output.text, output.complete, output.truncated)

    def outputs(self, model: SourceToTarget, run: Evaluation) -> Texts | None:
        """Decode all sources of the validation set: greedily or, in a test, as the recipe says.

        None in a validation without decoding.
        """
        if not (run.is_test or self.recipe.train.validate_decoding):
            return None
        decode = replace(self.recipe.decode, n_best=1)
        return self.decoded(model, decode if run.is_test else replace(decode, beam=1), run)

    def evaluate(self, model: SourceToTarget, run: Evaluation = ALONE) -> Results | None:
        """Score a model as for other tasks; the losses, which every validation has, come before the scores of texts."""
        results = super().evaluate(model, run)
        if results is None or results.outcomes is None:
            return results
        texts = results.outcomes.whole or {}
        return replace(results, scores={name: x for name, x in results.scores.items() if name not in texts} | texts)

    def decoded(self, model: SourceToTarget, config: DecodeConfig, run: Evaluation) -> Texts:
        """Decode all sources of the validation set as the settings say; each process decodes its share."""
        references = self.data.references
        own = list(run.reducer.shard(range(len(references))))
        run.progress.begin("texts", len(own))
        outputs = [
            Written(*each) for each in run.reducer.all_gather_in_order(list(self.write(model, config, own, run)))
        ]
        cut = CutOutputs()
        for output in outputs:
            cut.count(output.complete)
        if line := cut.line(self.recipe.decode, model.max_target_positions()):
            run.warn(line)
        if truncated := sum(output.truncated for output in outputs):
            limit = Translator(model, self.tokenizers, self.recipe.decode).longest_source - 1
            run.warn(
                f"texts longer than the {limit:,} tokens that the model reads, and cut to that: {truncated:,} of "
                f"{len(outputs):,}"
            )

        texts = texts_of([output.text for output in outputs], references, self.recipe, self.tokenizers)
        if texts.lowercase and any(text != text.lower() for text in references):
            run.warn(
                "scores compare lower-cased text on both sides, as tokenizer.lowercase = true is how the model writes"
            )
        return texts


def texts_of(outputs: Sequence[str], references: Sequence[str], recipe: Recipe, tokenizers: TokenizerPair) -> Texts:
    """Put outputs together with their references, to be compared in the form and the case that a model learns."""
    target = tokenizers.target.config
    form = "NFKC" if target.normalization == "nfkc" else "NFC"
    return Texts(outputs, references, recipe.data.target_language, target.lowercase, form)
