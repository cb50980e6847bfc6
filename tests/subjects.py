"""Small models of every family with what uses them, untrained: something to look into."""

from dataclasses import replace
from pathlib import Path

import torch

import shown_modules
from heedful.architectures import EncoderDecoder, LanguageModel, MaskedLanguageModel
from heedful.architectures.heads import SentenceEncoder, TextClassifier
from heedful.checkpoint import LoadedModel
from heedful.config.schema import DataConfig, DecodeConfig, GenerateConfig, ModelConfig, Recipe, TokenizerConfig
from heedful.predictors.classifier import Classifier
from heedful.predictors.filler import Filler
from heedful.predictors.generator import Generator
from heedful.predictors.retriever import Retriever
from heedful.predictors.translator import Translator
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer

TEXT = "the old dog sees </script> the station ."
GERMAN = "der alte Hund sieht den Bahnhof ."
SHAPE = ModelConfig(d_model=14, d_ff=23, heads=2, encoder_layers=2, decoder_layers=3, tie="none")
GPT_SHAPE = replace(SHAPE, family="decoder", tie="all", positions="relative")
BERT_SHAPE = replace(SHAPE, family="encoder", tie="all", segments=2)
TOKENIZER = train_tokenizer([TEXT, "two women read a book ."], TokenizerConfig(vocab_size=307, mask=True))


def translator(seed=1, **shape):
    pair = TokenizerPair(TOKENIZER, train_tokenizer([GERMAN], TokenizerConfig(vocab_size=301)))
    torch.manual_seed(seed)
    model = EncoderDecoder(replace(SHAPE, **shape), len(pair.source), len(pair.target))
    return Translator(model, pair, DecodeConfig(beam=3, max_extra=5))


def generator(context=None):
    torch.manual_seed(1)
    model = LanguageModel(GPT_SHAPE, len(TOKENIZER))
    return Generator(model, TOKENIZER, GenerateConfig(max_tokens=7), context)


def pre_norm():
    """A GPT in Pre-Norm whose final norm changes every number."""
    torch.manual_seed(1)
    model = LanguageModel(replace(GPT_SHAPE, norm="pre"), len(TOKENIZER))
    norm = model.backbone.stack.norm
    torch.nn.init.uniform_(norm.weight, 0.5, 2)
    torch.nn.init.normal_(norm.bias)
    return Generator(model, TOKENIZER, GenerateConfig(max_tokens=7))


def filler():
    torch.manual_seed(1)
    return Filler(MaskedLanguageModel(BERT_SHAPE, len(TOKENIZER), pairs=True), TOKENIZER, 31)


def classifier(family="encoder"):
    torch.manual_seed(1)
    model = TextClassifier(replace(SHAPE, family=family), len(TOKENIZER), 3)
    return Classifier(model, TOKENIZER, DataConfig(labels=("a", "b", "c"), max_length=31))


def searcher():
    torch.manual_seed(1)
    return Retriever(SentenceEncoder(replace(SHAPE, family="encoder"), len(TOKENIZER)), TOKENIZER, DataConfig())


def gated():
    """The architecture of a how-to page, as a model that comes from a folder."""
    torch.manual_seed(1)
    config = shown_modules.gated.GatedConfig(architecture=shown_modules.GATED, d_model=13)
    model = shown_modules.gated.GatedRecurrent(config, len(TOKENIZER), len(TOKENIZER)).eval()
    recipe = Recipe(model=config, decode=DecodeConfig(beam=3, max_extra=5))
    return LoadedModel(recipe, model, TokenizerPair(TOKENIZER, TOKENIZER), Path("here"))
