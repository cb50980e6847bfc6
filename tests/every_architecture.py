"""Small models of every architecture, for the tests of what must hold for all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from typing import Any

import torch
from torch import nn

from children import SHAPES, VOCABULARY, shape, stirred
from heedful.architectures import LanguageModel, SequenceClassifier, SourceToTarget, TextClassifier, TokenClassifier
from heedful.architectures.backbone import model_class
from heedful.architectures.bag_of_words.settings import BagOfWordsConfig
from heedful.architectures.bytenet.settings import ByteNetConfig
from heedful.architectures.convolutional.settings import ConvolutionalConfig
from heedful.architectures.input_layers import media_classifier
from heedful.architectures.recurrent.settings import RecurrentConfig
from heedful.architectures.text_cnn.settings import TextCNNConfig
from heedful.config.modalities import AudioConfig, ImageConfig, VideoConfig
from heedful.config.schema import (
    ArchitectureConfig,
    DataConfig,
    DecodeConfig,
    GenerateConfig,
    Modality,
    ModelConfig,
    Recipe,
    TextModelConfig,
)
from heedful.predictors.generator import Generator
from heedful.predictors.translator import Translator
from heedful.text.tokenizer_pair import TokenizerPair
from shown_modules import GATED, gated
from subjects import TOKENIZER

OWN = "class of one's own"

_TRANSFORMER = ModelConfig(d_model=14, d_ff=23, heads=2, encoder_layers=2, decoder_layers=2, tie="output")
_BARE = {"norm": "none", "scale_scores": False, "activation": "identity"}
_DEEPSEEK = replace(
    _TRANSFORMER, norm="pre", positions="rotary", activation="swiglu",
    attention="latent", kv_rank=9, q_rank=8, d_rope=4,
    feed_forward="experts", experts=5, shared_experts=1, d_expert=11,
)  # fmt: skip
_WINDOW = replace(_TRANSFORMER, positions="alibi", window=3)
_LINEAR = replace(_TRANSFORMER, norm="pre", attention="linear", kv_heads=1, d_v=5)
_RECURRENT = RecurrentConfig(d_model=14, layers=2, tie="output")
_CONVOLUTIONAL = ConvolutionalConfig(d_model=14, encoder_layers=2, decoder_layers=2, tie="output")
_BYTENET = ByteNetConfig(d_model=14, encoder_layers=3, decoder_layers=3, max_dilation=2, tie="output")

ENCODER_DECODERS: dict[str, ArchitectureConfig] = {
    "transformer": _TRANSFORMER,
    "transformer without norms, scaling and activation": replace(_TRANSFORMER, **_BARE),
    "transformer without residual connections": replace(_TRANSFORMER, decoder_layers=1, residual=False),
    "transformer of latents and experts": _DEEPSEEK,
    "transformer with a window": _WINDOW,
    "transformer of linear attention": _LINEAR,
    OWN: gated.GatedConfig(architecture=GATED, d_model=14, layers=2),
    "lstm without attention": replace(_RECURRENT, attention="none", bidirectional=False),
    "gru with Bahdanau's attention": replace(_RECURRENT, cell="gru", attention="additive"),
    "lstm with Bahdanau's attention": replace(_RECURRENT, attention="additive", layers=1),
    "elman with dot attention": replace(_RECURRENT, cell="elman", attention="dot", residual=True, layer_norm=True),
    "lstm with general attention": _RECURRENT,
    "gru with concat attention": replace(_RECURRENT, cell="gru", attention="concat", variational_dropout=True),
    "lstm with input feeding": replace(_RECURRENT, input_feeding=True, residual=True, variational_dropout=True),
    "convolutional": _CONVOLUTIONAL,
    "convolutional of even width": replace(_CONVOLUTIONAL, kernel_size=4, channels=11, positions="none"),
    "bytenet": _BYTENET,
    "bytenet of even width": replace(_BYTENET, kernel_size=4, channels=11, target_ratio=1.0, target_extra=2),
}
TRANSFORMERS = {f"transformer: {', '.join(map(str, given))}": shape(*given) for given in SHAPES}
LANGUAGE_MODELS: dict[str, TextModelConfig] = {
    **{name: replace(config, family="decoder") for name, config in TRANSFORMERS.items()},
    "transformer without norms and activation": replace(
        _TRANSFORMER, family="decoder", decoder_layers=1, norm="none", activation="identity"
    ),
    "transformer of latents and experts": replace(_DEEPSEEK, family="decoder"),
    "transformer with a window": replace(_WINDOW, family="decoder"),
    "transformer of linear attention": replace(_LINEAR, family="decoder"),
    "elman": replace(_RECURRENT, family="decoder", cell="elman"),
    "lstm": replace(_RECURRENT, family="decoder", residual=True, layer_norm=True),
    "gru": replace(_RECURRENT, family="decoder", cell="gru", layers=1),
    "convolutional": replace(_CONVOLUTIONAL, family="decoder"),
    "convolutional of even width": replace(_CONVOLUTIONAL, family="decoder", kernel_size=4, positions="none"),
    "bytenet": replace(_BYTENET, family="decoder"),
    "bytenet of even width": replace(_BYTENET, family="decoder", kernel_size=4, channels=11, max_dilation=4),
}
ENCODERS: dict[str, TextModelConfig] = {
    **{name: replace(config, family="encoder", segments=2) for name, config in TRANSFORMERS.items()},
    "transformer with attention over its states": replace(
        _TRANSFORMER, family="encoder", pooler="attention", segments=2
    ),
    "transformer of latents and experts": replace(_DEEPSEEK, family="encoder", segments=2),
    "transformer with a window": replace(_WINDOW, family="encoder", segments=2),
    "transformer of linear attention": replace(_LINEAR, family="encoder", segments=2),
    "transformer decoder": replace(_TRANSFORMER, family="decoder", segments=2),
    "elman": replace(_RECURRENT, family="encoder", cell="elman", layers=1),
    "lstm": replace(_RECURRENT, family="encoder", residual=True, segments=2),
    "lstm in one direction": replace(_RECURRENT, family="encoder", bidirectional=False, pooling="last"),
    "gru": replace(_RECURRENT, family="encoder", cell="gru", layer_norm=True),
    "convolutional": replace(_CONVOLUTIONAL, family="encoder", channels=11, segments=2),
    "bytenet": replace(_BYTENET, family="encoder", channels=11, segments=2),
    "text cnn": TextCNNConfig(d_model=14, kernel_sizes=(1, 3, 4), filters=5, tie="output"),
    "text cnn of two channels": TextCNNConfig(d_model=14, kernel_sizes=(2, 5), filters=7, multichannel=True),
    "bag of words": BagOfWordsConfig(d_model=14),
    "mean of vectors": BagOfWordsConfig(d_model=14, pooling="mean", pooler="dense"),
}

IMAGES = (
    ImageConfig(size=(14, 22), patch=2),
    ImageConfig(size=(14, 22), patch=2, stem="convolutional", positions="learned"),
    ImageConfig(size=(14, 22), patch=2, stem="pooled"),
    ImageConfig(size=(14, 22), patch=2, channels=1, class_token=False),
)
AUDIOS = (
    AudioConfig(mels=5, stem="linear", max_seconds=0.04),
    AudioConfig(mels=5, max_seconds=0.04),
    AudioConfig(features="samples", hop=7, max_seconds=0.04),
)
VIDEOS = (
    (VideoConfig(frames=6, tubelet=2), ImageConfig(size=(4, 6), patch=2)),
    (
        VideoConfig(frames=6, tubelet=3, positions="learned"),
        ImageConfig(size=(4, 6), patch=2, stem="convolutional", positions="learned"),
    ),
    (
        VideoConfig(frames=5, tubelet=1, positions="sinusoidal"),
        ImageConfig(size=(6, 4), patch=2, channels=1, class_token=False),
    ),
)
ONE_CHANNEL = {name: config for name, config in ENCODERS.items() if not getattr(config, "multichannel", False)}


def media_classifiers(modality: Modality, inputs: Sequence[Mapping[str, Any]]) -> dict[str, Recipe]:
    """Recipes of classifiers by architecture; the input layers, tables of a recipe, take turns."""

    def classifier(config: TextModelConfig, tables: Mapping[str, Any]) -> Recipe:
        pools_first = tables.get("image", ImageConfig()).class_token
        model = config if pools_first else replace(config, pooling="mean")
        return Recipe(task=f"{modality}_classification", data=DataConfig(modality=modality), model=model, **tables)

    pairs = zip(ONE_CHANNEL.items(), cycle(inputs), strict=False)
    return {name: classifier(config, tables) for (name, config), tables in pairs}


MEDIA_CLASSIFIERS: dict[str, dict[str, Recipe]] = {  # by task and architecture
    "image_classification": media_classifiers("image", [{"image": image} for image in IMAGES]),
    "audio_classification": media_classifiers("audio", [{"audio": audio} for audio in AUDIOS]),
    "video_classification": media_classifiers("video", [{"video": video, "image": image} for video, image in VIDEOS]),
}


def encoder_decoder(name: str, vocabulary: int = VOCABULARY) -> SourceToTarget:
    """An encoder-decoder with strong opinions; always the same one."""
    torch.manual_seed(3)
    config = ENCODER_DECODERS[name]
    return opinionated(model_class(config)(config, vocabulary, vocabulary))


def language_model(name: str, vocabulary: int = VOCABULARY) -> LanguageModel:
    torch.manual_seed(3)
    return opinionated(LanguageModel(LANGUAGE_MODELS[name], vocabulary))


def text_classifier(name: str, classes: int, vocabulary: int = VOCABULARY) -> TextClassifier:
    torch.manual_seed(3)
    return opinionated(TextClassifier(ENCODERS[name], vocabulary, classes))


def token_classifier(name: str, classes: int, vocabulary: int = VOCABULARY) -> TokenClassifier:
    torch.manual_seed(3)
    return opinionated(TokenClassifier(ENCODERS[name], vocabulary, classes))


def of_media(task: str, name: str, classes: int) -> SequenceClassifier:
    """A classifier of images, of audio files or of videos."""
    torch.manual_seed(3)
    return opinionated(media_classifier(MEDIA_CLASSIFIERS[task][name], classes))


def opinionated(model):
    """Spread the outputs, so that a mistake shows in what is chosen, and stir the vectors."""
    nn.init.normal_(model.output.weight, std=1.0)
    return stirred(model)


def translator(name: str) -> Translator:
    """A translator of that architecture for the texts of `subjects`."""
    pair = TokenizerPair(TOKENIZER, TOKENIZER)
    return Translator(encoder_decoder(name, len(TOKENIZER)), pair, DecodeConfig(beam=3, max_extra=5))


def generator(name: str) -> Generator:
    """A generator of that architecture for the texts of `subjects`."""
    return Generator(language_model(name, len(TOKENIZER)), TOKENIZER, GenerateConfig(max_tokens=7))
