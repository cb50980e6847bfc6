"""Word vectors task: words are predicted from the words around them, with word2vec's objectives (Mikolov et al. 2013).

Skip-gram predicts each context word from the centre word, CBOW the centre word from the mean of its context.

Shapes in negative sampling: B blocks of L centre words each, C words around a block, K samples per block, T = C + K,
V vocabulary, D vector size. In single predictions: N words, M predictions, P inner nodes above a word.
"""

from collections.abc import Sequence
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
from heedful.tasks.specs import SPECS
from heedful.tasks.task import Task
from heedful.text.tokenizer_pair import TokenizerPair

if not torch.sparse.check_sparse_tensor_invariants.is_enabled():
    torch.sparse.check_sparse_tensor_invariants.disable()  # set explicitly, because torch 2.11 warns otherwise


def negative_sampling(
    hidden: Float[Tensor, "B L D"],
    weight: Float[Tensor, "V D"],
    targets: Int[Tensor, "B T"],
    predicted: Bool[Tensor, "B C L"],
    noise: Float[Tensor, "B L"],
    count: int,
) -> Loss:
    """Compute the loss of negative sampling (Mikolov et al. 2013b, formula 4) with samples shared in each block.

    Shared samples turn the scores of a block into one matrix product (Ji et al. 2016); the expected loss is the same as
    with independent samples. A sample that happens to be a context word still counts as a sample, as in the formula.

    Args:
        hidden: The vectors from which words are predicted.
        weight: The output vectors of all words.
        targets: The C words that may be predicted, followed by the negative samples.
        predicted: True where a hidden vector should predict one of the C words.
        noise: The weight of each negative sample in the loss of a hidden vector.
        count: The number of predictions.
    """
    total, nll = NegativeSampling.apply(hidden, weight, targets, predicted, noise)
    return Loss(total, nll, count)


class NegativeSampling(torch.autograd.Function):
    """Autograd function of negative sampling: the gradient of a score is its sigmoid, minus 1 for a predicted word.

    The gradient of `weight` is sparse: it has a row for each target, repeated for targets that occur several times. A
    sigmoid counts as at least the smallest normal float32 number, which limits the loss of a prediction to 87 nats, but
    does not affect gradients.
    """

    @staticmethod
    def forward(
        ctx, hidden: Tensor, weight: Tensor, targets: Tensor, predicted: Tensor, noise: Tensor
    ) -> tuple[Tensor, Tensor]:
        rows = F.embedding(targets, weight)
        probability = torch.bmm(rows, hidden.mT).sigmoid_()  # (B, T, L), so that both slices of T are contiguous
        least = torch.finfo(probability.dtype).tiny
        positive, negative = probability[:, : predicted.size(1)], probability[:, predicted.size(1) :]
        right = torch.where(predicted, positive, 1.0).clamp_(min=least).log_().sum()
        wrong = ((1 - negative).clamp_(min=least).log_().sum(1) * noise).sum()
        # In place, the probabilities now become the gradients of the scores.
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
        # (B, T, L) x (B, L, D) -> (B * T, D): a row of the sparse gradient for each target.
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
    """Compute the loss of a hierarchical softmax, with a binary decision at each inner node above the predicted word.

    See Mikolov et al. 2013b, section 2.1.

    Args:
        hidden: The vectors from which words are predicted.
        weight: The vectors of the inner nodes.
        nodes: The inner nodes above each predicted word, padded to P.
        branches: The branch to take at each of them.
        lengths: The number of nodes above each word, without padding.
    """
    # (M, P, D) x (M, D, 1) -> (M, P)
    scores = (F.embedding(nodes, weight, sparse=True) @ hidden[:, :, None])[..., 0]
    real = torch.arange(nodes.size(1), device=nodes.device) < lengths[:, None]
    # softplus(x) = -log sigmoid(-x): a score is the logit of the branch False.
    total = (F.softplus(torch.where(branches, scores, -scores)) * real).sum()
    return Loss(total, total.detach(), len(hidden))


BLOCK_WORDS = 32  # number of words that share negative samples; the speed of matrix products depends on it


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
    """Batch of single predictions: pairs of a centre word and a context word, as indices into `words`."""

    words: Int[Tensor, " N"]
    centres: Int[Tensor, " M"]
    contexts: Int[Tensor, " M"]
    tokens: int
    counts: tuple[int, ...]


WordBatch = BlockBatch | PairBatch


class WordStream(RunningText[WordBatch]):
    """Running text in pieces; window sizes and negative samples are sampled anew in each epoch."""

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
                f'data.documents = "{cut}": no document in the text has two words with vectors, so there are no '
                f"context words to learn from; {remedy}"
            )
        data = cls(recipe, text)
        if text.train:
            report(f"an epoch has {len(data.epoch(0)):,} updates")
        return data

    @cached_property
    def codes(self) -> HuffmanCodes:
        return huffman_codes(self.counts)

    def read(
        self, streams: Sequence[TokenStream], starts: np.ndarray, epoch: int | None, device: torch.device
    ) -> WordBatch:
        [stream], length, key = streams, self.recipe.data.max_length, self.key(epoch)
        # As in a language model, a window that starts at s has the tokens from s + 1 on (`WindowPlan`).
        positions = (starts[:, None] + np.arange(1, length + 1)).ravel()
        positions = positions[positions < len(stream)]
        windows = draw_windows(stream.ids[positions], positions, length, self.keep, self.options.window, key)
        options, is_skip_gram = self.options, self.options.kind == "skip_gram"
        # Skip-gram predicts once per pair, CBOW once per word with a context.
        if options.objective != "negative_sampling":
            words, centres, contexts = (torch.from_numpy(x).to(device) for x in (windows.words, *pairs(windows)))
            count = len(centres) if is_skip_gram else int((windows.sizes > 0).sum())
            return PairBatch(words, centres, contexts, len(positions), (count,))

        cut = blocks(windows, options.window, BLOCK_WORDS)
        count = int(cut.sizes.sum()) if is_skip_gram else int((cut.sizes > 0).sum())
        # A block has as many samples as a skip-gram word has on average.
        num_samples = options.negatives * (options.window + 1)
        # The first window starts at -1, and keys are not negative.
        numbers = draw(len(cut.words) * num_samples, *key, int(starts[0]) + 1, NOISE)
        samples = self.noise.draw(numbers).reshape(-1, num_samples)
        return BlockBatch(
            words=torch.from_numpy(cut.words).to(device),
            around=torch.from_numpy(cut.around.copy()).to(device),
            in_window=torch.from_numpy(cut.in_window).to(device),
            sizes=torch.from_numpy(cut.sizes).to(device, torch.float32),
            samples=torch.from_numpy(samples).to(device),
            tokens=len(positions),
            counts=(count,),
        )


class WordVectorTraining(Task[WordBatch]):
    """Word vectors task: learns a vector for each word from the words around it."""

    spec = SPECS["word_vectors"]
    dataset = WordStream

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
    """Return the word2vec settings of a recipe."""
    if not isinstance(recipe.model, Word2VecConfig):
        raise InputError(
            f'word vectors need model.architecture = "word2vec", not "{recipe.model.architecture}"; leave this key out'
        )
    return recipe.model


def sampling_loss(model: Word2Vec, batch: BlockBatch, options: Word2VecConfig) -> Loss:
    # With this weight, the K shared samples count as `negatives` samples for each prediction.
    share = options.negatives / batch.samples.size(1)
    [count] = batch.counts
    if options.kind == "skip_gram":
        hidden = model.embedding(batch.words)
        targets = torch.cat([batch.around, batch.samples], dim=1)
        return negative_sampling(hidden, model.output.weight, targets, batch.in_window, batch.sizes * share, count)
    vectors = model.embedding(batch.around)
    # (B, L, C) x (B, C, D) -> (B, L, D), the mean of the context of each word.
    hidden = (batch.in_window / batch.sizes.clamp(min=1)[:, None]).mT @ vectors
    targets = torch.cat([batch.words, batch.samples], dim=1)
    # CBOW: the mean of the context predicts the centre word, which is on the diagonal of its block.
    has_context = batch.sizes > 0
    centre = torch.eye(batch.words.size(1), dtype=torch.bool, device=batch.words.device) & has_context[:, None]
    return negative_sampling(hidden, model.output.weight, targets, centre, has_context * share, count)


def predictions(
    model: Word2Vec, batch: PairBatch, options: Word2VecConfig
) -> tuple[Float[Tensor, "M D"], Int[Tensor, " M"]]:
    """Return the vectors from which words are predicted, and these words."""
    vectors = model.embedding(batch.words)
    if options.kind == "skip_gram":
        return vectors[batch.centres], batch.words[batch.contexts]
    sizes = batch.centres.bincount(minlength=len(batch.words))
    sums = torch.zeros_like(vectors).index_add(0, batch.centres, vectors[batch.contexts])
    has_context = sizes > 0
    return sums[has_context] / sizes[has_context, None], batch.words[has_context]
