"""A server over small models, asked without a network."""

from pathlib import Path

from starlette.testclient import TestClient

import subjects
from heedful.checkpoint import LoadedModel
from heedful.config.schema import DataConfig, Recipe
from heedful.inspect_.page import Page
from heedful.serve.inspector import Inspector, application
from heedful.text.pair import TokenizerPair

PAGE = Page("<!doctype html><html><head><title>p</title></head><body><script>let a = 1</script></body></html>")
SAMPLE = (["the old dog sees the station .", "two women read a book ."], ["der alte Hund sieht .", "den Bahnhof ."])


def models():
    """One of each family that says something, and one that does not."""
    pair = TokenizerPair(subjects.TOKENIZER, subjects.TOKENIZER)
    translator, here = subjects.translator(), Path("here")
    return {
        "translator": LoadedModel(
            Recipe(model=subjects.SHAPE, decode=translator.config), translator.model, translator.tokenizers, here
        ),
        "gpt": LoadedModel(Recipe(task="language_model"), subjects.generator().model, pair, here),
        "bert": LoadedModel(Recipe(task="masked_lm"), subjects.filler().model, pair, here),
        "classes": LoadedModel(
            Recipe(task="classification", data=DataConfig(labels=("a", "b", "c"), max_length=31)),
            subjects.classifier().reader.model,
            pair,
            here,
        ),
    }


def client(token=None, sample=SAMPLE, base="http://127.0.0.1:8642"):
    """Whoever asks."""
    return TestClient(application(Inspector(models(), PAGE, sample), token), base, follow_redirects=False)
