"""Image-text retrieval task: learns vectors with which an image finds its text, and a text its image (CLIP).

B images with a text each, N rows of pixels, F features of a row, P vector size.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float32
from torch import Tensor

from heedful.architectures.dual_encoder.model import DualEncoder
from heedful.architectures.input_layers import media_and_text
from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.readers.media_files import MediaFile
from heedful.data.stores import MediaStore
from heedful.losses import Loss, contrastive_loss
from heedful.metrics.retrieval import Matches, Rankings, ranked
from heedful.predictors.image_text_retriever import ImageTextRetriever
from heedful.tasks.dataset import Report
from heedful.tasks.parts.media import MediaFiles, places
from heedful.tasks.parts.texts import PaddedTexts, matching_pairs, number_distinct
from heedful.tasks.readers.media import ImageTextReader
from heedful.tasks.specs import SPECS
from heedful.tasks.task import Evaluation, Task
from heedful.text.sequences import pad, sequence
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.wording import counted


@dataclass(frozen=True)
class ImageTextBatch:
    """Batch of images, each with its text."""

    images: Float32[Tensor, "B N *F"]
    image_mask: Bool[Tensor, "B N"]
    texts: PaddedTexts
    matches: Bool[Tensor, "B B"]  # (image, text): True if some pair of the batch consists of these two
    tokens: int  # positions of the images in the layers, plus real tokens of the texts
    counts: tuple[int, ...]  # the number of pairs


class ImagesWithTexts(MediaFiles[ImageTextBatch]):
    """Images, each with a text about it."""

    reader = ImageTextReader

    @classmethod
    def prepare(cls, recipe: Recipe, folder: Path, report: Report, tokenizers: TokenizerPair | None = None) -> Any:
        data = super().prepare(recipe, folder, report, tokenizers)
        max_length, stores = recipe.data.max_length, data.examples.train
        parts = zip(recipe.data.train, stores, strict=True) if stores else [(data.valid_corpus, data.valid)]
        for corpus, store in parts:
            if full := int((store.lengths[:, 1] == max_length).sum()):
                texts = counted(full, "texts")
                report(
                    f"{corpus.source}: {texts} reach data.max_length = {max_length} tokens; longer ones are truncated"
                )
        return data

    @staticmethod
    def target(file: MediaFile, corpus: CorpusConfig, recipe: Recipe, tokenizers: TokenizerPair) -> list[int]:
        """Encode the text of an image, truncated to `data.max_length` tokens."""
        return sequence(tokenizers.source.encode(file.target), longest=recipe.data.max_length)

    def lengths(self, store: MediaStore) -> np.ndarray:
        """Return the positions of each image, and the length of the longest text, since a batch mixes text lengths."""
        text_length = max(int(each.lengths[:, 1].max()) for each in (*self.examples.train, store))
        return np.stack([store.lengths[:, 0], np.full(len(store), text_length, store.lengths.dtype)], axis=1)

    def read(
        self, stores: Sequence[MediaStore], ids: np.ndarray, epoch: int | None, device: torch.device
    ) -> ImageTextBatch:
        inputs, mask = self.inputs(stores, ids, epoch)
        examples = [(store.content(index), store.target(index).tolist()) for store, index in places(stores, ids)]
        texts, _ = pad([text for _, text in examples])
        images = number_distinct(content for content, _ in examples)
        matches = torch.from_numpy(matching_pairs(images, number_distinct(tuple(text) for _, text in examples)))
        tokens = self.positions(stores, ids) + sum(len(text) for _, text in examples)
        padded = PaddedTexts.of(texts, device)
        return ImageTextBatch(inputs.to(device), mask.to(device), padded, matches.to(device), tokens, (len(ids),))


class ImageTextRetrieval(Task[ImageTextBatch]):
    """Image-text retrieval task: examples are images, each with a text about it (Radford et al. 2021, section 2.3).

    The negatives of an image are the texts of the other images in its batch, and the negatives of a text are the other
    images, except when two images have the same text, or two texts the same image. So the loss depends, by definition,
    on which examples form a batch: here `train.batch_tokens` affects more than speed, and `train.accumulate` adds up
    the gradients of batches without making any of them larger.
    """

    spec = SPECS["image_text_retrieval"]
    dataset = ImagesWithTexts

    @staticmethod
    def build(recipe: Recipe, tokenizers: TokenizerPair) -> DualEncoder:
        return media_and_text(recipe, len(tokenizers.source))

    @staticmethod
    def use(model: DualEncoder, recipe: Recipe, tokenizers: TokenizerPair) -> ImageTextRetriever:
        return ImageTextRetriever(model, tokenizers.source, recipe)

    def loss(self, model: DualEncoder, batch: ImageTextBatch) -> tuple[Loss, ...]:
        """Compute the mean of two cross-entropies: over the texts for each image, and over the images for each text."""
        # (B, B): images by texts. A row has the scores of all texts for an image, a column those of all images for a
        # text.
        logits = model(batch.images, batch.image_mask, batch.texts.ids, batch.texts.padding_mask)
        smoothing = self.recipe.train.label_smoothing
        rows, columns = (contrastive_loss(x, batch.matches, smoothing) for x in (logits, logits.T))
        return (Loss((rows.sum + columns.sum) / 2, (rows.nll + columns.nll) / 2, rows.count),)

    def outputs(self, model: DualEncoder, run: Evaluation) -> Matches:
        """Rank all texts of the validation or test set for each image, and all images for each text."""

        def encode(batch: ImageTextBatch) -> Tensor:
            images = model.pictures(batch.images, batch.image_mask)
            return torch.stack([images, model.texts(batch.texts.ids, batch.texts.padding_mask)], dim=1)

        store = self.data.valid
        vectors = run.per_example(self.data, model, encode)  # (N, 2, P)
        # Digests instead of contents, because the images of a whole set may not fit into memory.
        images = number_distinct(blake2b(store.content(index)).digest() for index in range(len(store)))
        texts = number_distinct(tuple(store.target(index).tolist()) for index in range(len(store)))
        return retrieval(vectors[:, 0], vectors[:, 1], images, texts)


def retrieval(
    images: Float32[np.ndarray, "N P"],
    texts: Float32[np.ndarray, "N P"],
    image_numbers: np.ndarray,
    text_numbers: np.ndarray,
) -> Matches:
    """Rank all distinct texts for the image of each example, and all distinct images for its text.

    In `image_numbers` and `text_numbers`, (N,), equal images and equal texts have the same number: see
    `number_distinct`.
    """
    # The first example with each number represents all that are equal to it.
    distinct_images, distinct_texts = (
        vectors[np.unique(numbers, return_index=True)[1]]
        for vectors, numbers in ((images, image_numbers), (texts, text_numbers))
    )
    matches = np.zeros((len(distinct_images), len(distinct_texts)), bool)
    matches[image_numbers, text_numbers] = True

    def rank(queries: np.ndarray, candidates: np.ndarray, gains: np.ndarray) -> Rankings:
        # The products are cosine similarities, because the vectors have length 1.
        rankings = (ranked(candidates @ query, row) for query, row in zip(queries, gains, strict=True))
        return Rankings.of(rankings, len(candidates))

    return Matches(
        rank(distinct_images, distinct_texts, matches),
        rank(distinct_texts, distinct_images, matches.T),
        image_numbers,
        text_numbers,
    )
