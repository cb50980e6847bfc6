"""Image-text retrieval: learns vectors by which an image finds its text, and a text its image (CLIP).

B images with a text each, N rows of pixels, F features of a row, P size of the vectors.
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
from heedful.losses import Loss
from heedful.metrics.retrieval import Matches, Rankings, ranked
from heedful.predictors.image_text_retriever import ImageTextRetriever
from heedful.tasks.dataset import Report
from heedful.tasks.parts.matching import PaddedTexts, kinds, pairs_of_kinds, ranking_loss, texts_of
from heedful.tasks.parts.media import MediaFiles, places, tokenizer_of_texts
from heedful.tasks.task import Evaluation, Task
from heedful.text.sequences import pad, sequence
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import given_tokenizer
from heedful.wording import counted


@dataclass(frozen=True)
class ImageTextBatch:
    """Batch of images, each with its text."""

    pictures: Float32[Tensor, "B N *F"]
    picture_mask: Bool[Tensor, "B N"]
    texts: PaddedTexts
    answers: Bool[Tensor, "B B"]  # True if a text belongs to an image: some pair holds both
    tokens: int  # positions of the images in the stack, and real tokens

    @property
    def counts(self) -> tuple[int, ...]:
        return (len(self.answers),)


class ImagesWithTexts(MediaFiles[ImageTextBatch]):
    """Images, each with a text about it."""

    new_tokenizers = staticmethod(tokenizer_of_texts)
    load_tokenizers = staticmethod(TokenizerPair.load)

    @classmethod
    def check(cls, recipe: Recipe) -> None:
        super().check(recipe)
        given_tokenizer(recipe)

    @classmethod
    def prepare(cls, recipe: Recipe, folder: Path, report: Report, tokenizers: TokenizerPair | None = None) -> Any:
        data = super().prepare(recipe, folder, report, tokenizers)
        longest, stores = recipe.data.max_length, data.examples.train
        parts = zip(recipe.data.train, stores, strict=True) if stores else [(data.valid_corpus, data.valid)]
        for corpus, store in parts:
            if full := int((store.lengths[:, 1] == longest).sum()):
                texts = counted(full, "texts")
                report(f"{corpus.source}: {texts} of data.max_length = {longest} tokens; longer ones lost their end")
        return data

    @staticmethod
    def target(file: MediaFile, corpus: CorpusConfig, recipe: Recipe, tokenizers: TokenizerPair) -> list[int]:
        """Encode the text that belongs to an image; a text longer than `data.max_length` loses its end."""
        return sequence(tokenizers.source.encode(file.target), longest=recipe.data.max_length)

    def lengths(self, store: MediaStore) -> np.ndarray:
        """Positions of each image, and of the longest text: batches hold texts of all lengths, as negatives."""
        longest = max(int(each.lengths[:, 1].max()) for each in (*self.examples.train, store))
        return np.stack([store.lengths[:, 0], np.full(len(store), longest, store.lengths.dtype)], axis=1)

    def read(
        self, stores: Sequence[MediaStore], ids: np.ndarray, epoch: int | None, device: torch.device
    ) -> ImageTextBatch:
        inputs, mask = self.inputs(stores, ids, epoch)
        examples = [(store.content(index), store.target(index).tolist()) for store, index in places(stores, ids)]
        texts, _ = pad([text for _, text in examples])
        answers = pairs_of_kinds(kinds(content for content, _ in examples), kinds(tuple(text) for _, text in examples))
        tokens = self.positions(stores, ids) + sum(len(text) for _, text in examples)
        return ImageTextBatch(
            inputs.to(device), mask.to(device), texts_of(texts, device), torch.from_numpy(answers).to(device), tokens
        )


class ImageTextRetrieval(Task[ImageTextBatch]):
    """Image-text retrieval task: examples are images, each with a text about it (Radford et al. 2021, section 2.3).

    The negatives of an image are the texts of the other images of its batch, and those of a text their images; not
    where two images have the same text, or two texts the same image. So the loss depends, by definition, on which
    examples form a batch: `train.batch_tokens` is more than a matter of speed here, and `train.accumulate` adds up the
    gradients of such batches without making any of them larger.
    """

    modality = "image"
    families = ("encoder",)
    command = "heedful search"
    example = "--corpus FOLDER 'Some text.'"
    dataset = ImagesWithTexts
    metrics = (
        "mrr",
        *(f"{side}_{name}" for side in ("text", "image") for name in ("mrr", "recall@1", "recall@5", "recall@10")),
        "loss",
    )
    predicts = Matches

    @staticmethod
    def build(recipe: Recipe, tokenizers: TokenizerPair) -> DualEncoder:
        return media_and_text(recipe, len(tokenizers.source))

    @staticmethod
    def use(model: DualEncoder, recipe: Recipe, tokenizers: TokenizerPair) -> ImageTextRetriever:
        return ImageTextRetriever(model, tokenizers.source, recipe)

    def loss(self, model: DualEncoder, batch: ImageTextBatch) -> tuple[Loss, ...]:
        """Compute the mean of two cross-entropies: of the text of each image, and of the image of each text."""
        # (B, B): images by texts. Rows ask for the text of each image, columns for the image of each text.
        logits = model(batch.pictures, batch.picture_mask, batch.texts.ids, batch.texts.padding_mask)
        smoothing = self.recipe.train.label_smoothing
        rows, columns = (ranking_loss(x, batch.answers, smoothing) for x in (logits, logits.T))
        return (Loss((rows.sum + columns.sum) / 2, (rows.nll + columns.nll) / 2, rows.count),)

    def outputs(self, model: DualEncoder, run: Evaluation) -> Matches:
        """Rank all texts of the validation set for each image, and all images for each text."""

        def encode(batch: ImageTextBatch) -> Tensor:
            pictures = model.pictures(batch.pictures, batch.picture_mask)
            return torch.stack([pictures, model.texts(batch.texts.ids, batch.texts.padding_mask)], dim=1)

        store = self.data.valid
        vectors = run.per_example(self.data, model, encode)
        pictures = kinds(blake2b(store.content(index)).digest() for index in range(len(store)))
        texts = kinds(tuple(store.target(index).tolist()) for index in range(len(store)))
        return retrieval(vectors[:, 0], vectors[:, 1], pictures, texts)


def retrieval(
    pictures: Float32[np.ndarray, "N P"],
    texts: Float32[np.ndarray, "N P"],
    picture_kinds: np.ndarray,
    text_kinds: np.ndarray,
) -> Matches:
    """Rank for the image of each example all different texts, and for its text all different images."""
    first_picture, first_text = (np.unique(x, return_index=True)[1] for x in (picture_kinds, text_kinds))
    right = np.zeros((len(first_picture), len(first_text)), bool)
    right[picture_kinds, text_kinds] = True
    candidates, queries = texts[first_text], pictures[first_picture]
    of_texts, of_pictures = rankings(queries, candidates, right), rankings(candidates, queries, right.T)
    return Matches(of_texts, of_pictures, picture_kinds, text_kinds)


def rankings(queries: np.ndarray, candidates: np.ndarray, right: np.ndarray) -> Rankings:
    """Rank candidates (M, P) for each query (N, P) by cosine similarity."""
    ordered = (ranked(candidates @ query, gains) for query, gains in zip(queries, right, strict=True))
    return Rankings.of(ordered, len(candidates))
