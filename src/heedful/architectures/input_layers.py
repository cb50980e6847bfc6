"""The input layer of a recipe for images, audio or videos, and models on it."""

from collections.abc import Callable
from typing import Any

from heedful.architectures.backbone import model_class
from heedful.architectures.dual_encoder.model import DualEncoder
from heedful.architectures.heads import SequenceClassifier
from heedful.architectures.model import SourceToTarget
from heedful.config.schema import Recipe
from heedful.nn.embedding import InputLayer
from heedful.nn.frames import frame_embedding
from heedful.nn.patches import PatchEmbedding, TubeletEmbedding

INPUT_LAYERS: dict[str, Callable[[Recipe], InputLayer]] = {  # by `data.modality`
    "image": lambda recipe: PatchEmbedding(recipe.image, recipe.model.d_model),
    "audio": lambda recipe: frame_embedding(recipe.audio, recipe.model.d_model),
    "video": lambda recipe: TubeletEmbedding(recipe.video, recipe.image, recipe.model.d_model),
}


def media_input(recipe: Recipe) -> InputLayer:
    """Build the input layer of images, audio or videos, as `data.modality` of a recipe says."""
    return INPUT_LAYERS[recipe.data.modality](recipe)


def media_classifier(recipe: Recipe, classes: int) -> SequenceClassifier:
    """Build a classifier of images, audio or videos: an input layer, a backbone and one output for each class."""
    model: Any = recipe.model
    return SequenceClassifier(model, model_class(model)(model, media_input(recipe)), classes)


def media_to_text(recipe: Recipe, vocabulary: int) -> SourceToTarget:
    """Build an encoder-decoder that reads images or audio and writes text over a vocabulary."""
    return model_class(recipe.model)(recipe.model, media_input(recipe), vocabulary)


def media_and_text(recipe: Recipe, vocabulary: int) -> DualEncoder:
    """Build a dual encoder: one encoder of images, and one of texts over a vocabulary."""
    return model_class(recipe.model)(recipe.model, media_input(recipe), vocabulary)
