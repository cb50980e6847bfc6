"""The input layer of a recipe for pictures or sound, and models on it."""

from typing import Any

from heedful.config.schema import Recipe
from heedful.models.architectures import model_class
from heedful.models.dual_encoder import DualEncoder
from heedful.models.model import SourceToTarget
from heedful.models.task_heads import SequenceClassifier
from heedful.nn.embedding import InputLayer
from heedful.nn.frames import frame_embedding
from heedful.nn.patches import PatchEmbedding


def media_input(recipe: Recipe) -> InputLayer:
    """Build the input layer of pictures or of sound, as `data.modality` of a recipe says."""
    if recipe.data.modality == "image":
        return PatchEmbedding(recipe.image, recipe.model.d_model)
    return frame_embedding(recipe.audio, recipe.model.d_model)


def media_classifier(recipe: Recipe, classes: int) -> SequenceClassifier:
    """Build a classifier of pictures or sounds: an input layer, a backbone and one output for each class."""
    model: Any = recipe.model
    return SequenceClassifier(model, model_class(model)(model, media_input(recipe)), classes)


def media_to_text(recipe: Recipe, vocabulary: int) -> SourceToTarget:
    """Build an encoder-decoder that reads pictures or sounds and writes text over a vocabulary."""
    return model_class(recipe.model)(recipe.model, media_input(recipe), vocabulary)


def media_and_text(recipe: Recipe, vocabulary: int) -> DualEncoder:
    """Build a dual encoder: one encoder of pictures, and one of texts over a vocabulary."""
    return model_class(recipe.model)(recipe.model, media_input(recipe), vocabulary)
