"""Word vectors task: words predict the words around them, by skip-gram or CBOW (Mikolov et al. 2013a, 2013b).

N words, B blocks of L words, C words around a block, K negative samples of a block, M predictions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.config.schema import Recipe
from heedful.config.word2vec import Word2VecConfig
from heedful.data.preparation.prepared_data import PreparedData
from heedful.data.preparation.words import prepare_words
from heedful.data.random_numbers import NOISE, draw
from heedful.data.stream import TokenStream
from heedful.data.word_vectors.huffman import HuffmanCodes, huffman_codes
from heedful.data.word_vectors.word_windows import (
    NoiseDistribution,
    WordWindows,
    blocks,
    count_words,
    draw_windows,
    keep_probabilities,
    pairs,
)
from heedful.errors import InputError
from heedful.losses import Loss
from heedful.models import model_class
from heedful.models.word2vec import Word2Vec
from heedful.predict.word_vectors import WordVectors
from heedful.tasks.parts.running_text import RunningText
from heedful.tasks.task import Task
from heedful.tasks.word2vec_objectives import hierarchical_softmax, negative_sampling, softmax
from heedful.text.tokenizer_pair import TokenizerPair

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
        words = text.train[0] if text.train or text.valid is None else text.valid
        self.counts = count_words(words.ids, len(text.tokenizers.source))
        self.keep = keep_probabilities(self.counts, self.options.subsample)
        self.noise = NoiseDistribution(self.counts, self.options.noise_power)

    @classmethod
    def prepare(
        cls, recipe: Recipe, folder: Path, report: Callable[[str], None], tokenizers: TokenizerPair | None = None
    ) -> Any:
        """Prepare the words of a recipe's text, or open prepared ones."""
        text = prepare_words(recipe, options_of(recipe), folder, report, tokenizers)
        if all(np.diff(part.offsets).max() <= 2 for part in text.train or (text.valid,)):  # a word and <eos>
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
        """The Huffman codes of the words, for hierarchical softmax."""
        return huffman_codes(self.counts)

    def read(self, stream: TokenStream, starts: np.ndarray, key: tuple[int, int], device: torch.device) -> WordBatch:
        """Read pieces of a text as a batch on a device; `key` is a seed and an epoch."""
        length = self.recipe.data.max_length
        places = pieces(stream, starts, length)
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
        """Build the two tables of vectors."""
        return model_class(recipe.model)(options_of(recipe), len(tokenizers.source))

    @staticmethod
    def use(model: Word2Vec, recipe: Recipe, tokenizers: TokenizerPair) -> WordVectors:
        """Create the predictor that compares words by their vectors."""
        return WordVectors(model, tokenizers.source, options_of(recipe), recipe.tokenizer)

    def loss(self, model: Word2Vec, batch: WordBatch) -> tuple[Loss, ...]:
        """Compute the loss of a batch by negative sampling, full or hierarchical softmax, as the recipe says."""
        if isinstance(batch, BlockBatch):
            return (sampling_loss(model, batch, self.data.options),)
        hidden, targets = predictions(model, batch, self.data.options)
        if self.data.options.objective == "softmax":
            return (softmax(hidden, model.output.weight, targets),)
        words = targets.cpu().numpy()
        nodes, branches, lengths = (torch.from_numpy(part[words]).to(targets.device) for part in self.data.codes)
        return (hierarchical_softmax(hidden, model.output.weight, nodes, branches, lengths),)


def options_of(recipe: Recipe) -> Word2VecConfig:
    """The settings of word2vec in a recipe.

    Raises:
        InputError: the recipe's model is of another architecture.
    """
    if not isinstance(recipe.model, Word2VecConfig):
        raise InputError(
            f'word vectors are learned by model.architecture = "word2vec", and it is "{recipe.model.architecture}"; '
            "leave it out"
        )
    return recipe.model


def pieces(stream: TokenStream, starts: np.ndarray, length: int) -> np.ndarray:
    """The places of the tokens of a batch, in the pieces of `length` tokens behind each of the starts of a plan."""
    places = (starts[:, None] + np.arange(1, length + 1)).ravel()
    return places[places < len(stream)]


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
    """Make a batch of single predictions from the words of a batch and their windows."""
    centres, contexts = pairs(windows)
    count = len(centres) if options.kind == "skip_gram" else int((windows.sizes > 0).sum())
    words, centres, contexts = (torch.from_numpy(part).to(device) for part in (windows.words, centres, contexts))
    return PairBatch(words, centres, contexts, tokens, (count,))


def sampling_loss(model: Word2Vec, batch: BlockBatch, options: Word2VecConfig) -> Loss:
    """The loss of negative sampling: each prediction has `options.negatives` samples in the mean."""
    share = options.negatives / batch.samples.size(1)
    [count] = batch.counts
    if options.kind == "skip_gram":
        hidden = model.embedding(batch.words)
        targets = torch.cat([batch.around, batch.samples], dim=1)
        return negative_sampling(hidden, model.output.weight, targets, batch.in_window, batch.sizes * share, count)
    vectors = model.embedding(batch.around)
    hidden = (batch.in_window / batch.sizes.clamp(min=1)[:, None]).mT @ vectors
    targets = torch.cat([batch.words, batch.samples], dim=1)
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
    chosen = sizes > 0
    return sums[chosen] / sizes[chosen, None], batch.words[chosen]
