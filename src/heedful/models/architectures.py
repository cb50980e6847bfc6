"""The table of model architectures: which class is built for which family.

A new architecture is a class in a file of its own with its options, and a line here; see the how-to page
docs/how-to/new-architecture.md.
"""

from typing import Any

from heedful.config.architecture_options import KEY, config_of
from heedful.config.schema import ArchitectureConfig, TextModelConfig
from heedful.config.user_code import find_class
from heedful.errors import InputError
from heedful.models.backbone import BACKBONES, Backbone
from heedful.models.bag_of_words import BagOfWords
from heedful.models.convolutional import (
    ConvolutionalEncoder,
    ConvolutionalEncoderDecoder,
    ConvolutionalLanguageBackbone,
)
from heedful.models.dual_encoder import DualEncoder
from heedful.models.model import SourceToTarget
from heedful.models.recurrent import RecurrentEncoder, RecurrentEncoderDecoder, RecurrentLanguageBackbone
from heedful.models.text_cnn import TextCNN
from heedful.models.transformer import EncoderDecoder
from heedful.models.word2vec import Word2Vec
from heedful.nn.embedding import Embedding

ARCHITECTURES: dict[str, dict[str, Any]] = {
    "transformer": {"encoder_decoder": EncoderDecoder, **BACKBONES},
    "recurrent": {
        "encoder_decoder": RecurrentEncoderDecoder,
        "encoder": RecurrentEncoder,
        "decoder": RecurrentLanguageBackbone,
    },
    "convolutional": {
        "encoder_decoder": ConvolutionalEncoderDecoder,
        "encoder": ConvolutionalEncoder,
        "decoder": ConvolutionalLanguageBackbone,
    },
    "text_cnn": {"encoder": TextCNN},
    "bag_of_words": {"encoder": BagOfWords},
    "word2vec": {"word_vectors": Word2Vec},
    "dual_encoder": {"encoder": DualEncoder},
}


def text_backbone(config: TextModelConfig, vocab: int) -> Backbone[Embedding]:
    """Build the backbone of a configuration with embeddings of token ids as its input layer."""
    return model_class(config)(config, Embedding(vocab, config))


def model_class(config: ArchitectureConfig) -> Any:
    """The class of a model, or of its backbone, for the architecture and the family of a configuration.

    Raises:
        InputError: the architecture has no model of this family.
    """
    own = find_class(KEY, config.architecture)
    if own is None:
        families = ARCHITECTURES[config.architecture]
        if config.family not in families:
            raise InputError(
                f'{KEY} = "{config.architecture}" has no model of family "{config.family}"; set model.family = '
                f'"{next(iter(families))}"'
            )
        return families[config.family]
    (family,) = families_of(config.architecture)
    if family != config.family:
        raise InputError(
            f'{KEY} = "{config.architecture}" is of family "{family}", not "{config.family}"; set model.family = '
            f'"{family}"'
        )
    return own


def families_of(architecture: str) -> tuple[str, ...]:
    """The families of which an architecture has models; a class of the user's own has one, by the class it extends.

    Raises:
        InputError: the module of the class has not been imported.
    """
    own = find_class(KEY, architecture)
    if own is None:
        return tuple(ARCHITECTURES[architecture])
    if issubclass(own, Backbone):
        return ("decoder" if own.causal else "encoder",)
    return ("encoder_decoder" if issubclass(own, SourceToTarget) else config_of(own).family,)
