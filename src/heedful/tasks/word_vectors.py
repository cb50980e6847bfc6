"""Task of word vectors: words predicted from those around them, by word2vec's objectives (Mikolov et al. 2013a, b)."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.architectures import model_class
from heedful.architectures.word2vec.data import (
    HuffmanCodes,
    NoiseDistribution,
    WordWindows,
    blocks,
    count_words,
    draw_windows,
    huffman_codes,
    keep_probabilities,
    pairs,
    prepare_words,
)
from heedful.architectures.word2vec.model import Word2Vec
from heedful.architectures.word2vec.settings import Word2VecConfig
from heedful.config.schema import Recipe
from heedful.data.preparation.prepared_data import PreparedData
from heedful.data.stream import TokenStream
from heedful.errors import InputError
from heedful.losses import Loss, cross_entropy
from heedful.predictors.word_vectors import WordVectors
from heedful.random_numbers import NOISE, draw
from heedful.tasks.dataset import Report
from heedful.tasks.parts.running_text import RunningText
from heedful.tasks.task import Task
from heedful.text.tokenizer_pair import TokenizerPair

if not torch.sparse.check_sparse_tensor_invariants.is_enabled():
    torch.sparse.check_sparse_tensor_invariants.disable()  # torch 2.11 warns where nobody has chosen


def negative_sampling(
    hidden: Float[Tensor, "B L D"],
    weight: Float[Tensor, "V D"],
    targets: Int[Tensor, "B T"],
    predicted: Bool[Tensor, "B C L"],
    noise: Float[Tensor, "B L"],
    count: int,
) -> Loss:
    """Negative sampling with samples that the words of a block share (Mikolov et al. 2013b, formula 4; Ji et al. 2016).

    Shared samples turn the scores of a block into one matrix product. In the mean the loss is that of independent
    samples. A sample that happens to be a context word counts as a sample nevertheless, as in the formula.

    Args:
        hidden: the vectors that predict.
        weight: the vectors of the predicted words.
        targets: the C words that may be predicted, and after them the negative samples.
        predicted: True where one of the C words is predicted by a hidden vector.
        noise: the weight of each negative sample in the loss of a hidden vector.
        count: the number of predictions.
    """
    total, nll = NegativeSampling.apply(hidden, weight, targets, predicted, noise)
    return Loss(total, nll, count)


class NegativeSampling(torch.autograd.Function):
    """Autograd function of negative sampling: the gradient of a score is its probability less 1 where it is right.

    The gradient of `weight` is sparse: it has a row for each target, and several rows for one that comes several times.
    The loss of a prediction is at most 87 nats, that of the smallest number in float32; its gradient is not bounded.
    """

    @staticmethod
    def forward(
        ctx, hidden: Tensor, weight: Tensor, targets: Tensor, predicted: Tensor, noise: Tensor
    ) -> tuple[Tensor, Tensor]:
        rows = F.embedding(targets, weight)
        probability = torch.bmm(rows, hidden.mT).sigmoid_()  # (B, T, L), so that either part is one piece of memory
        least = torch.finfo(probability.dtype).tiny
        positive, negative = probability[:, : predicted.size(1)], probability[:, predicted.size(1) :]
        right = torch.where(predicted, positive, 1.0).clamp_(min=least).log_().sum()
        wrong = ((1 - negative).clamp_(min=least).log_().sum(1) * noise).sum()
        # From here on the probabilities become the gradients of the scores, in place.
        positive.sub_(1).mul_(predicted)
        negative.mul_(noise[:, None])
        ctx.save_for_backward(hidden, rows, probability, targets)
        ctx.vocabulary = len(weight)
        loss = -(right + wrong)
        nll = loss.clone()
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx, *grad_outputs: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        hidden, rows, errors, targets = ctx.saved_tensors
        errors = errors * grad_outputs[0]
        values = torch.bmm(errors, hidden).flatten(0, 1)
        size = (ctx.vocabulary, values.size(1))
        sparse = torch.sparse_coo_tensor(targets.flatten()[None], values, size, check_invariants=False)
        return torch.bmm(errors.mT, rows), sparse, None, None, None


def hierarchical_softmax(
    hidden: Float[Tensor, "M D"],
    weight: Float[Tensor, "V D"],
    nodes: Int[Tensor, "M P"],
    branches: Bool[Tensor, "M P"],
    lengths: Int[Tensor, " M"],
) -> Loss:
    """Hierarchical softmax: a binary decision at each inner node above the predicted word (Mikolov et al. 2013b, 2.1).

    Args:
        hidden: the vectors that predict.
        weight: the vectors of the inner nodes.
        nodes: the inner nodes above each predicted word.
        branches: the branch to take at each of them.
        lengths: how many of the P nodes are above the word.
    """
    scores = (F.embedding(nodes, weight, sparse=True) @ hidden[:, :, None])[..., 0]
    real = torch.arange(nodes.size(1), device=nodes.device) < lengths[:, None]
    total = (F.softplus(torch.where(branches, scores, -scores)) * real).sum()
    return Loss(total, total.detach(), len(hidden))


BLOCK = 32  # words that share their negative samples; the speed of matrix products depends on it


@dataclass(frozen=True)
class BlockBatch:
    """Batch for negative sampling: blocks of words with the words around them, and shared negative samples."""

    words: Int[Tensor, "B L"]
    around: Int[Tensor, "B C"]
    in_window: Bool[Tensor, "B C L"]
    sizes: Float[Tensor, "B L"]  # of the windows
    samples: Int[Tensor, "B K"]
    tokens: int
    counts: tuple[int, ...]


@dataclass(frozen=True)
class PairBatch:
    """Batch of single predictions: pairs of a centre word and a context word, as places among the words."""

    words: Int[Tensor, " N"]
    centres: Int[Tensor, " M"]
    contexts: Int[Tensor, " M"]
    tokens: int
    counts: tuple[int, ...]


WordBatch = BlockBatch | PairBatch


class WordStream(RunningText[WordBatch]):
    """Running text in pieces, with the words around each word and negative samples drawn anew in each epoch."""

    def __init__(self, recipe: Recipe, text: PreparedData[TokenStream]) -> None:
        super().__init__(recipe, text)
        self.options = options_of(recipe)
        self.counts = count_words(text.stores[0].ids, len(text.tokenizers.source))
        self.keep = keep_probabilities(self.counts, self.options.subsample)
        self.noise = NoiseDistribution(self.counts, self.options.noise_power)

    @classmethod
    def prepare(cls, recipe: Recipe, folder: Path, report: Report, tokenizers: TokenizerPair | None = None) -> Any:
        text = prepare_words(recipe, options_of(recipe), folder, report, tokenizers)
        if np.diff(text.stores[0].offsets).max() <= 2:  # a word and <eos>
            cut = recipe.data.documents
            remedy = "give running text" if cut == "file" else 'set data.documents = "file"'
            raise InputError(
                f'data.documents = "{cut}": no document of the text has two words with vectors, so that none has '
                f"another beside it to learn from; {remedy}"
            )
        data = cls(recipe, text)
        if text.train:
            report(f"an epoch has {len(data.epoch(0)):,} updates")
        return data

    @cached_property
    def codes(self) -> HuffmanCodes:
        return huffman_codes(self.counts)

    def read(self, stream: TokenStream, starts: np.ndarray, key: tuple[int, int], device: torch.device) -> WordBatch:
        length = self.recipe.data.max_length
        places = (starts[:, None] + np.arange(1, length + 1)).ravel()
        places = places[places < len(stream)]
        windows = draw_windows(stream.ids[places], places, length, self.keep, self.options.window, key)
        if self.options.objective != "negative_sampling":
            return pair_batch(windows, len(places), self.options, device)
        return block_batch(windows, len(places), self.options, self.noise, (*key, int(starts[0]) + 1), device)


class WordVectorTraining(Task[WordBatch]):
    """Word vectors task: learns a vector for each word from the words around it."""

    families = ("word_vectors",)
    command = "heedful vectors nearest"
    example = "WORD"
    dataset = WordStream
    metrics = ("loss",)

    @staticmethod
    def build(recipe: Recipe, tokenizers: TokenizerPair) -> Word2Vec:
        return model_class(recipe.model)(options_of(recipe), len(tokenizers.source))

    @staticmethod
    def use(model: Word2Vec, recipe: Recipe, tokenizers: TokenizerPair) -> WordVectors:
        return WordVectors(model, tokenizers.source, options_of(recipe), recipe.tokenizer)

    def loss(self, model: Word2Vec, batch: WordBatch) -> tuple[Loss, ...]:
        if isinstance(batch, BlockBatch):
            return (sampling_loss(model, batch, self.data.options),)
        hidden, targets = predictions(model, batch, self.data.options)
        if self.data.options.objective == "softmax":
            # Over the whole vocabulary (Mikolov et al. 2013a, formula 2): the cost grows with it.
            return (cross_entropy(hidden, model.output.weight, targets, 0.0),)
        words = targets.cpu().numpy()
        nodes, branches, lengths = (torch.from_numpy(part[words]).to(targets.device) for part in self.data.codes)
        return (hierarchical_softmax(hidden, model.output.weight, nodes, branches, lengths),)


def options_of(recipe: Recipe) -> Word2VecConfig:
    """The settings of word2vec in a recipe."""
    if not isinstance(recipe.model, Word2VecConfig):
        raise InputError(
            f'word vectors are learned by model.architecture = "word2vec", and it is "{recipe.model.architecture}"; '
            "leave it out"
        )
    return recipe.model


def block_batch(
    windows: WordWindows,
    tokens: int,
    options: Word2VecConfig,
    noise: NoiseDistribution,
    key: tuple[int, ...],
    device: torch.device,
) -> BlockBatch:
    """Make a batch for negative sampling; a block has as many samples as a word of skip-gram has in the mean."""
    cut = blocks(windows, options.window, BLOCK)
    each = options.negatives * (options.window + 1)
    samples = noise.draw(draw(len(cut.words) * each, *key, NOISE)).reshape(-1, each)
    count = int(cut.sizes.sum()) if options.kind == "skip_gram" else int((cut.sizes > 0).sum())
    return BlockBatch(
        words=torch.from_numpy(cut.words).to(device),
        around=torch.from_numpy(cut.around.copy()).to(device),
        in_window=torch.from_numpy(cut.in_window).to(device),
        sizes=torch.from_numpy(cut.sizes).to(device, torch.float32),
        samples=torch.from_numpy(samples).to(device),
        tokens=tokens,
        counts=(count,),
    )


def pair_batch(windows: WordWindows, tokens: int, options: Word2VecConfig, device: torch.device) -> PairBatch:
    centres, contexts = pairs(windows)
    # Skip-gram predicts once for each pair, CBOW once for each word with a context.
    count = len(centres) if options.kind == "skip_gram" else int((windows.sizes > 0).sum())
    words, centres, contexts = (torch.from_numpy(part).to(device) for part in (windows.words, centres, contexts))
    return PairBatch(words, centres, contexts, tokens, (count,))


def sampling_loss(model: Word2Vec, batch: BlockBatch, options: Word2VecConfig) -> Loss:
    share = options.negatives / batch.samples.size(1)
    [count] = batch.counts
    if options.kind == "skip_gram":
        hidden = model.embedding(batch.words)
        targets = torch.cat([batch.around, batch.samples], dim=1)
        return negative_sampling(hidden, model.output.weight, targets, batch.in_window, batch.sizes * share, count)
    vectors = model.embedding(batch.around)
    hidden = (batch.in_window / batch.sizes.clamp(min=1)[:, None]).mT @ vectors
    targets = torch.cat([batch.words, batch.samples], dim=1)
    # CBOW: the mean of the words around predicts the word itself, on the diagonal of its block.
    predicts = batch.sizes > 0
    itself = torch.eye(batch.words.size(1), dtype=torch.bool, device=batch.words.device) & predicts[:, None]
    return negative_sampling(hidden, model.output.weight, targets, itself, predicts * share, count)


def predictions(
    model: Word2Vec, batch: PairBatch, options: Word2VecConfig
) -> tuple[Float[Tensor, "M D"], Int[Tensor, " M"]]:
    """The vectors that predict, and the words that they predict: skip-gram by pairs, CBOW by the mean of a context."""
    vectors = model.embedding(batch.words)
    if options.kind == "skip_gram":
        return vectors[batch.centres], batch.words[batch.contexts]
    sizes = batch.centres.bincount(minlength=len(batch.words))
    sums = torch.zeros_like(vectors).index_add(0, batch.centres, vectors[batch.contexts])
    has_context = sizes > 0
    return sums[has_context] / sizes[has_context, None], batch.words[has_context]
