"""Image-text retrieval: learns vectors by which a picture finds its text, and a text its picture (CLIP).

B pictures with a text each, N rows of pixels, F features of a row, P size of the vectors.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float32
from torch import Tensor

from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.media.media_files import MediaFile
from heedful.data.stores.media_store import MediaStore
from heedful.evaluate.retrieval import hit_rate_at, mean_reciprocal_rank, ranked
from heedful.evaluate.significance import Outcomes, mean_outcomes
from heedful.losses import Loss
from heedful.models.dual_encoder import DualEncoder
from heedful.models.input_layers import media_and_text
from heedful.predict.image_text_retriever import ImageTextRetriever
from heedful.tasks.media import MediaTextTask, places
from heedful.tasks.ranking import PaddedTexts, kinds, pairs_of_kinds, ranking_loss, texts_of
from heedful.tasks.task import Scores
from heedful.text.padding import pad
from heedful.text.sequence import sequence
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.wording import counted

MEASURES = {"mrr": mean_reciprocal_rank} | {f"recall@{k}": partial(hit_rate_at, k=k) for k in (1, 5, 10)}
FOUND = ("text", "image")  # what is ranked: the texts for a picture, or the pictures for a text


@dataclass(frozen=True)
class ImageTextBatch:
    """Batch of pictures, each with its text."""

    pictures: Float32[Tensor, "B N *F"]
    picture_mask: Bool[Tensor, "B N"]
    texts: PaddedTexts
    answers: Bool[Tensor, "B B"]  # True if a text belongs to a picture: some pair holds both
    tokens: int  # positions of the pictures in the stack, and real tokens

    @property
    def counts(self) -> tuple[int, ...]:
        """Divisor of the loss: the number of pictures."""
        return (len(self.answers),)


class ImageTextRetrieval(MediaTextTask[ImageTextBatch]):
    """Image-text retrieval task: examples are pictures, each with a text about it (Radford et al. 2021, section 2.3).

    The negatives of a picture are the texts of the other pictures of its batch, and those of a text their pictures; not
    where two pictures have the same text, or two texts the same picture. So the loss depends, by definition, on which
    examples form a batch: `train.batch_tokens` is more than a matter of speed here, and `train.accumulate` adds up the
    gradients of such batches without making any of them larger.
    """

    modality = "image"
    families = ("encoder",)
    command = "heedful search"
    example = "--corpus FOLDER 'Some text.'"
    scores = ("mrr", *(f"{found}_{name}" for found in FOUND for name in MEASURES), "loss")

    @classmethod
    def prepare(cls, recipe: Recipe, folder: Path, report: Callable[[str], None]) -> Any:
        """Prepare the pictures and texts of a recipe, or read prepared ones; tell of texts that may have been cut."""
        task = super().prepare(recipe, folder, report)
        longest = recipe.data.max_length
        for corpus, store in zip(recipe.data.train, task.examples.train, strict=True):
            if full := int((store.lengths[:, 1] == longest).sum()):
                texts = counted(full, "texts")
                report(f"{corpus.source}: {texts} of data.max_length = {longest} tokens; longer ones lost their end")
        return task

    @staticmethod
    def target(file: MediaFile, corpus: CorpusConfig, recipe: Recipe, tokenizers: TokenizerPair) -> list[int]:
        """Encode the text that belongs to a picture; a text longer than `data.max_length` loses its end."""
        return sequence(tokenizers.source.encode(file.target), longest=recipe.data.max_length)

    @classmethod
    def build(cls, recipe: Recipe, tokenizers: TokenizerPair) -> DualEncoder:
        """Build a dual encoder: one encoder of pictures, and one of texts."""
        return media_and_text(recipe, len(tokenizers.source))

    @classmethod
    def use(cls, model: DualEncoder, recipe: Recipe, tokenizers: TokenizerPair) -> ImageTextRetriever:
        """Create the predictor that encodes pictures and texts as vectors and searches for the nearest."""
        return ImageTextRetriever(model, tokenizers.source, recipe)

    def lengths(self, store: MediaStore) -> np.ndarray:
        """Positions of each picture, and of the longest text: batches hold texts of all lengths, as negatives."""
        longest = max(int(each.lengths[:, 1].max()) for each in (*self.examples.train, store))
        return np.stack([store.lengths[:, 0], np.full(len(store), longest, store.lengths.dtype)], axis=1)

    def read(
        self, stores: Sequence[MediaStore], ids: np.ndarray, epoch: int | None, device: torch.device
    ) -> ImageTextBatch:
        """Read the examples of a batch: pictures, in training augmented, and the tokens of their texts."""
        inputs, mask = self.inputs(stores, ids, epoch)
        examples = [(store.content(index), store.target(index).tolist()) for store, index in places(stores, ids)]
        texts, _ = pad([text for _, text in examples])
        answers = pairs_of_kinds(kinds(content for content, _ in examples), kinds(tuple(text) for _, text in examples))
        tokens = self.positions(stores, ids) + sum(len(text) for _, text in examples)
        return ImageTextBatch(
            inputs.to(device), mask.to(device), texts_of(texts, device), torch.from_numpy(answers).to(device), tokens
        )

    def loss(self, model: DualEncoder, batch: ImageTextBatch) -> tuple[Loss, ...]:
        """Compute the mean of two cross-entropies: of the text of each picture, and of the picture of each text."""
        logits = model(batch.pictures, batch.picture_mask, batch.texts.ids, batch.texts.padding_mask)
        smoothing = self.recipe.train.label_smoothing
        rows, columns = (ranking_loss(x, batch.answers, smoothing) for x in (logits, logits.T))
        return (Loss((rows.sum + columns.sum) / 2, (rows.nll + columns.nll) / 2, rows.count),)

    def validate(self, model: torch.nn.Module) -> Scores | None:
        """Score the model on the validation set, with the mean of both mean reciprocal ranks first."""
        found = super().validate(model)
        return found and {name: found[name] for name in self.scores}

    def outcomes(self, model: DualEncoder) -> Outcomes:
        """Rank all texts of the validation set for each picture, and all pictures for each text."""

        def encode(batch: ImageTextBatch) -> Tensor:
            pictures = model.pictures(batch.pictures, batch.picture_mask)
            return torch.stack([pictures, model.texts(batch.texts.ids, batch.texts.padding_mask)], dim=1)

        _, store = self.valid
        vectors = self.results_of(model, encode)
        pictures = kinds(blake2b(store.content(index)).digest() for index in range(len(store)))
        texts = kinds(tuple(store.target(index).tolist()) for index in range(len(store)))
        return retrieval(vectors[:, 0], vectors[:, 1], pictures, texts)


def retrieval(
    pictures: Float32[np.ndarray, "N P"],
    texts: Float32[np.ndarray, "N P"],
    picture_kinds: np.ndarray,
    text_kinds: np.ndarray,
) -> Outcomes:
    """Rank for the picture of each example all different texts, and for its text all different pictures.

    Examples that share a picture or a text share results, so they are resampled together.

    Args:
        pictures: the vectors of the pictures of N examples.
        texts: the vectors of their texts.
        picture_kinds: (N,), equal for equal pictures; the numbers go from 0 on.
        text_kinds: (N,), equal for equal texts.
    """
    first_picture, first_text = (np.unique(x, return_index=True)[1] for x in (picture_kinds, text_kinds))
    right = np.zeros((len(first_picture), len(first_text)), bool)
    right[picture_kinds, text_kinds] = True
    candidates, queries = texts[first_text], pictures[first_picture]
    rankings = {
        "text": ranking_figures(queries, candidates, right)[picture_kinds],
        "image": ranking_figures(candidates, queries, right.T)[text_kinds],
    }
    named = {f"{found}_{name}": x[:, place] for found, x in rankings.items() for place, name in enumerate(MEASURES)}
    figures = {"mrr": (named["text_mrr"] + named["image_mrr"]) / 2} | named
    return mean_outcomes(figures, connected(picture_kinds, text_kinds))


def connected(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Number groups of pairs, in the order of their first pair: pairs that share a side are in one group.

    Args:
        first: (N,), numbers from 0 of the first sides, equal for equal ones.
        second: (N,), those of the second sides.
    """
    groups = np.arange(len(first))
    while True:
        before = groups
        for sides in (first, second):
            lowest = np.full(sides.max() + 1, len(groups))
            np.minimum.at(lowest, sides, groups)
            groups = lowest[sides]
        if (groups == before).all():
            return np.unique(groups, return_inverse=True)[1]


def ranking_figures(queries: np.ndarray, candidates: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Rank candidates (M, P) for each query (N, P) by cosine similarity; return the measures of each, (N, measures).

    Args:
        queries: vectors of length 1.
        candidates: vectors of length 1.
        right: (N, M), True where a candidate answers a query.
    """
    rankings = (ranked(candidates @ query, gains) for query, gains in zip(queries, right, strict=True))
    return np.array([[measure([ranking]) for measure in MEASURES.values()] for ranking in rankings])
