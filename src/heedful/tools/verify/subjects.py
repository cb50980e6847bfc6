"""Subjects of verification: models of each kind with examples, and differences between their results.

Shapes: R rows, N inputs, T tokens, V logits, H rows and Q columns of patches, F pixels per patch.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.architectures import (
    LanguageModel,
    MaskedLanguageModel,
    MaskedPatchModel,
    Model,
    SentenceEncoder,
    SequenceClassifier,
    SourceToTarget,
    TextClassifier,
    TokenClassifier,
)
from heedful.architectures.dual_encoder.model import DualEncoder
from heedful.architectures.model import DecodingState
from heedful.architectures.transformer.masked_models import normalise_patches
from heedful.checkpoint.load import LoadedModel
from heedful.config.schema import Recipe
from heedful.errors import InputError
from heedful.losses import Loss, cross_entropy, squared_error
from heedful.media.image_augmentation import masked_patches
from heedful.nn.masks import AttentionMask
from heedful.registry import ARCHITECTURES
from heedful.text.tokenizer import BOS, EOS, PAD


def relative_difference(actual: Tensor, expected: Tensor) -> float:
    """Return the largest difference relative to the largest value of the second tensor; NaN if either contains NaN.

    Two empty tensors, such as the weights of a missing class token, do not differ.
    """
    if not actual.numel() and actual.shape == expected.shape:
        return 0.0
    return float((actual - expected).abs().max() / expected.abs().max().clamp(min=1e-30))


def largest_difference(actual: Sequence[Tensor], expected: Sequence[Tensor]) -> float:
    """Return the largest relative difference among pairs of tensors; NaN if a tensor contains NaN."""
    return float(torch.tensor([relative_difference(*pair) for pair in zip(actual, expected, strict=True)]).max())


Example = tuple[Tensor, ...]  # the inputs of one example, such as (source, target), (text,) or (image, masked patches)

LENGTHS = ((7, 2), (1, 5), (11, 1), (3, 7))  # tokens in the source and the target of each example
FIRST_WORD = 5  # the first token id that is not special
PADDING_NOISE = 5.0  # value of the padding of media, which must not affect the outputs


class Subject(ABC):
    """A model under verification, in evaluation mode and float32 on the CPU, with its examples."""

    sides: tuple[str, ...] = ("right", "left")  # sides on which rows can be padded

    def __init__(self, model: Model, recipe: Recipe, vocabulary: int, seed: int = 0) -> None:
        self.model: Any = model
        self.recipe = recipe
        self.vocabulary = vocabulary
        self.random = torch.Generator().manual_seed(seed)
        self.examples = [self.example(*lengths) for lengths in LENGTHS]

    def ids(self, length: int) -> Int[Tensor, " T"]:
        return torch.randint(min(FIRST_WORD, self.vocabulary - 1), self.vocabulary, (length,), generator=self.random)

    def media(self, length: int) -> Float[Tensor, "N ..."]:
        """Sample audio with `length` frames, an image with as many rows of patches, or a video with as many tubelets.

        Lengths beyond the recipe's number of patch rows or tubelets start again from 1.
        """
        image, video = self.recipe.image, self.recipe.video
        rows, tubelets = (1 + (length - 1) % most for most in (image.grid[0], video.frames // video.tubelet))
        shapes = {
            "audio": (length, self.recipe.audio.width),
            "image": (rows * image.patch, image.size[1], image.channels),
            "video": (tubelets * video.tubelet, *image.size, image.channels),
        }
        return torch.randn(shapes[self.recipe.data.modality], generator=self.random)

    def example(self, source: int, target: int) -> Example:
        """Sample an example with these lengths: one text of the total length, unless the model reads other inputs."""
        return (self.ids(source + target),)

    @abstractmethod
    def outputs(self, model: Any, examples: Sequence[Example], side: str = "right") -> list[Float[Tensor, "*T V"]]:
        """Compute the outputs of each example in one batch, padded on one side, without the outputs at the padding."""

    @abstractmethod
    def loss(self, model: Any, examples: Sequence[Example]) -> Loss:
        """Compute the loss of all examples in one batch, a sum over tokens or texts as in the tasks."""


class PairSubject(Subject):
    """An encoder-decoder: it reads a text, an image or an audio file, and writes a text."""

    def example(self, source: int, target: int) -> Example:
        if self.recipe.data.modality == "text":
            inputs = torch.cat([self.ids(source), torch.tensor([EOS])])
        else:
            inputs = self.media(source)
        return inputs, torch.cat([torch.tensor([BOS]), self.ids(target)])

    def sources(self, examples: Sequence[Example], side: str = "right") -> tuple[Tensor, Bool[Tensor, "R N"]]:
        """Pad the sources of examples, on `side` if they are texts; return them with their padding mask."""
        rows = [source for source, _ in examples]
        return padded(rows, side) if self.recipe.data.modality == "text" else padded_media(rows)

    def outputs(self, model: SourceToTarget, examples: Sequence[Example], side: str = "right") -> list[Tensor]:
        """Compute the logits of the next token at each target position."""
        targets = padded([target for _, target in examples], side)
        return real_rows(model(*self.sources(examples, side), *targets), targets[1])

    def loss(self, model: SourceToTarget, examples: Sequence[Example]) -> Loss:
        targets = padded([target for _, target in examples], "right")
        labels, _ = padded([torch.cat([target[1:], torch.tensor([EOS])]) for _, target in examples], "right")
        hidden = model.hidden(*self.sources(examples), *targets)[targets[1]]
        return cross_entropy(hidden, model.output.weight, labels[targets[1]], 0.1, model.output.bias)

    def start(self, examples: Sequence[Example]) -> DecodingState:
        return self.model.start(*self.sources(examples))

    def teacher_forced_logits(self, example: Example, targets: Int[Tensor, "R T"]) -> Float[Tensor, "R T V"]:
        """Compute the logits of each token of several targets for one source, all at once."""
        sources = self.sources([example] * len(targets))
        inputs = F.pad(targets[:, :-1], (1, 0), value=BOS)
        return self.model(*sources, inputs, no_padding(inputs))


class TextSubject(Subject):
    """A language model: it continues a text."""

    def outputs(self, model: LanguageModel, examples: Sequence[Example], side: str = "right") -> list[Tensor]:
        """Compute the logits of the next token at each position."""
        tokens, padding_mask = padded([text for (text,) in examples], side)
        return real_rows(model(tokens, padding_mask), padding_mask)

    def loss(self, model: LanguageModel, examples: Sequence[Example]) -> Loss:
        """Compute the cross-entropy of all tokens but the first of each text."""
        tokens, padding_mask = padded([text for (text,) in examples], "right")
        hidden = model.hidden(tokens, AttentionMask(padding_mask, tokens.size(1), causal=True))
        real, labels = padding_mask[:, 1:], tokens[:, 1:]
        return cross_entropy(hidden[:, :-1][real], model.output.weight, labels[real], 0.0, model.output.bias)

    def start(self, examples: Sequence[Example]) -> DecodingState:
        """Start decoding with the texts as prompts."""
        return self.model.start(*padded([text for (text,) in examples], "left"))

    def teacher_forced_logits(self, example: Example, targets: Int[Tensor, "R T"]) -> Float[Tensor, "R T V"]:
        """Compute the logits of each token of several texts after one prompt, all at once."""
        tokens = torch.cat([example[0].expand(len(targets), -1), targets[:, :-1]], dim=1)
        return self.model(tokens, no_padding(tokens))[:, -targets.size(1) :]


Writer = PairSubject | TextSubject  # models that write a text token by token, from a source or from a prompt


class EncoderSubject(Subject):
    """A model with one output vector per text or per token: BERT, classifiers, taggers, sentence encoders."""

    def outputs(self, model: Any, examples: Sequence[Example], side: str = "right") -> list[Tensor]:
        tokens, padding_mask = padded([text for (text,) in examples], side)
        answers = model(tokens, padding_mask, tokens % 2)  # token types for two texts
        return list(answers) if answers.dim() == 2 else real_rows(answers, padding_mask)

    def loss(self, model: Any, examples: Sequence[Example]) -> Loss:
        """Compute the cross-entropy of the first class; for a sentence encoder or a single output, sum the outputs."""
        outputs = torch.cat([rows.reshape(-1, rows.size(-1)) for rows in self.outputs(model, examples)]).float()
        plain = isinstance(model, SentenceEncoder) or outputs.size(-1) == 1
        terms = outputs.sum(-1) if plain else -outputs.log_softmax(-1)[:, 0]
        return Loss(terms.sum(), terms.sum().detach(), len(terms))


class MediaSubject(EncoderSubject):
    """An image, audio or video classifier, with padding only at the end."""

    sides = ("right",)

    def example(self, source: int, target: int) -> Example:
        return (self.media(source + target),)

    def outputs(self, model: Any, examples: Sequence[Example], side: str = "right") -> list[Tensor]:
        del side
        return list(model(*padded_media([rows for (rows,) in examples])))


class DualSubject(EncoderSubject):
    """A dual encoder: an example is an image with a text."""

    sides = ("right",)

    def example(self, source: int, target: int) -> Example:
        return self.media(source), self.ids(source + target)

    def outputs(self, model: Any, examples: Sequence[Example], side: str = "right") -> list[Tensor]:
        """Compute the vectors of the image and the text of each example, times the scale of the similarities."""
        images = model.pictures(*padded_media([rows for rows, _ in examples]))
        texts = model.texts(*padded([text for _, text in examples], side))
        return list(model.scale * torch.stack([images, texts], dim=1))


class PatchSubject(Subject):
    """A masked-patch model, which predicts the pixels of masked patches."""

    sides = ("right",)

    def example(self, source: int, target: int) -> Example:
        """Sample an image, and the mask of its patches."""
        pixels = self.media(source + target)
        grid = len(pixels) // self.recipe.image.patch, self.recipe.image.grid[1]
        masked = masked_patches(grid, self.recipe.masking.rate, self.random.initial_seed(), 0, len(pixels))
        return pixels, torch.from_numpy(masked)

    def predictions(self, model: Any, examples: Sequence[Example]) -> tuple[Float[Tensor, "R H Q F"], Tensor, Tensor]:
        """Predict the pixels of all patches in one batch; return them with the padded inputs and the masks."""
        inputs, padding_mask = padded_media([pixels for pixels, _ in examples])
        masked = torch.nn.utils.rnn.pad_sequence([masked for _, masked in examples], batch_first=True)
        return model(inputs, padding_mask, masked), inputs, masked

    def outputs(self, model: Any, examples: Sequence[Example], side: str = "right") -> list[Tensor]:
        del side  # padding is only at the end
        pixels, _, _ = self.predictions(model, examples)
        return [patches[: len(masked)] for patches, (_, masked) in zip(pixels, examples, strict=True)]

    def loss(self, model: Any, examples: Sequence[Example]) -> Loss:
        """Compute the squared error of the pixels in masked patches."""
        pixels, inputs, masked = self.predictions(model, examples)
        return squared_error(pixels[masked], normalise_patches(inputs, self.recipe.image.patch)[masked])


def padded(rows: Sequence[Int[Tensor, " T"]], side: str) -> tuple[Int[Tensor, "R T"], Bool[Tensor, "R T"]]:
    """Pad rows on one side to the length of the longest; return them with the padding mask, True for real tokens."""
    max_length = max(map(len, rows))
    widths = [(max_length - len(row), 0) if side == "left" else (0, max_length - len(row)) for row in rows]
    tokens = torch.stack([F.pad(row, width, value=PAD) for row, width in zip(rows, widths, strict=True)])
    masks = [F.pad(no_padding(row), width) for row, width in zip(rows, widths, strict=True)]
    return tokens, torch.stack(masks)


def no_padding(tokens: Int[Tensor, "*T"]) -> Bool[Tensor, "*T"]:
    return torch.ones_like(tokens, dtype=torch.bool)


def real_rows(x: Float[Tensor, "R T V"], padding_mask: Bool[Tensor, "R T"]) -> list[Tensor]:
    """Return the outputs of the real tokens in each row."""
    return [row[mask] for row, mask in zip(x, padding_mask, strict=True)]


def padded_media(rows: Sequence[Float[Tensor, "N ..."]]) -> tuple[Float[Tensor, "R N ..."], Bool[Tensor, "R N"]]:
    """Pad inputs at the end to the length of the longest; return them with the padding mask, True for real rows."""
    lengths = torch.tensor([len(row) for row in rows])
    inputs = torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True, padding_value=PADDING_NOISE)
    return inputs, torch.arange(inputs.size(1)) < lengths[:, None]


OF_MEDIA: dict[type, type[Subject]] = {
    SourceToTarget: PairSubject,
    SequenceClassifier: MediaSubject,
    DualEncoder: DualSubject,
    MaskedPatchModel: PatchSubject,
}
OF_TEXT: dict[type, type[Subject]] = {
    SourceToTarget: PairSubject,
    LanguageModel: TextSubject,
    **dict.fromkeys((MaskedLanguageModel, TextClassifier, TokenClassifier, SentenceEncoder), EncoderSubject),
}


def subject_of(loaded: LoadedModel, seed: int = 0) -> Subject:
    """Return the subject for a loaded model. It samples its examples, which differ from seed to seed.

    Raises:
        InputError: The model does not read texts, images, audio or videos, or only looks up single words.
    """
    recipe, vocabulary = loaded.recipe, min(loaded.tokenizers.sizes)
    if recipe.data.modality != "text":
        for kind, subject in OF_MEDIA.items():
            if isinstance(loaded.model, kind):
                return subject(loaded.model, recipe, vocabulary, seed)
    for kind, subject in OF_TEXT.items():
        if isinstance(loaded.model, kind) and vocabulary:
            instance = subject(loaded.model, recipe, vocabulary, seed)
            if ARCHITECTURES.is_custom(recipe.model.architecture):
                instance.sides = ("right",)  # a user's architecture need not support padding on the left
            return instance
    raise InputError(f"{loaded.path}: nothing to verify; give a model that reads texts, images or audio")
