"""Construction of image, audio and video models, with the input layer that a recipe describes."""

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
    return INPUT_LAYERS[recipe.data.modality](recipe)


def media_classifier(recipe: Recipe, classes: int) -> SequenceClassifier:
    model: Any = recipe.model
    return SequenceClassifier(model, model_class(model)(model, media_input(recipe)), classes)


def media_to_text(recipe: Recipe, vocabulary: int) -> SourceToTarget:
    return model_class(recipe.model)(recipe.model, media_input(recipe), vocabulary)


def media_and_text(recipe: Recipe, vocabulary: int) -> DualEncoder:
    return model_class(recipe.model)(recipe.model, media_input(recipe), vocabulary)
