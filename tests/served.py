"""A server over small models, asked without a network, or a real one in a thread."""

import socket
import threading
import time
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

from starlette.testclient import TestClient

import subjects
from heedful.checkpoint import LoadedModel
from heedful.config.schema import DataConfig, Recipe
from heedful.inspector.page import Page
from heedful.server.application import application
from heedful.server.engine import Engine
from heedful.server.inspector.routes import inspector_routes
from heedful.server.limits import Server
from heedful.text.tokenizer_pair import TokenizerPair

PAGE = Page("<!doctype html><html><head><title>p</title></head><body><script>let a = 1</script></body></html>")
SAMPLE = (["the old dog sees the station .", "two women read a book ."], ["der alte Hund sieht .", "den Bahnhof ."])


def models():
    """One of each family that says something, and one that does not."""
    pair, here = TokenizerPair(subjects.TOKENIZER, subjects.TOKENIZER), Path("here")
    return {
        "translator": loaded_translator(seed=1),
        "gpt": LoadedModel(
            Recipe(task="language_model", model=subjects.GPT_SHAPE), subjects.generator().model, pair, here
        ),
        "bert": LoadedModel(Recipe(task="masked_lm", model=subjects.BERT_SHAPE), subjects.filler().model, pair, here),
        "classes": LoadedModel(
            Recipe(
                task="classification",
                model=replace(subjects.SHAPE, family="encoder"),
                data=DataConfig(labels=("a", "b", "c"), max_length=31),
            ),
            subjects.classifier().reader.model,
            pair,
            here,
        ),
    }


def loaded_translator(seed):
    """A translator as it comes from a folder."""
    made = subjects.translator(seed)
    return LoadedModel(Recipe(model=subjects.SHAPE, decode=made.config), made.model, made.tokenizers, Path("here"))


def client(token=None, sample=SAMPLE, base="http://127.0.0.1:8642"):
    """Whoever asks."""
    app = application(inspector_routes(Engine(models()), PAGE, sample), token)
    return TestClient(app, base, follow_redirects=False)


class Live:
    """A server of the inspector in a thread."""

    def __init__(self, models, page=PAGE, sample=SAMPLE):
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self.listening.getsockname()[1]}/"
        engine = Engine(models)
        self.server = Server(application(inspector_routes(engine, page, sample)), engine.close)
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.listening]}, daemon=True)

    def __enter__(self):
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        return self

    def __exit__(self, *_):
        self.server.should_exit = True
        self.thread.join()
        self.listening.close()

    def url(self, page="answer", **selected):
        """The address of a page and what it shows."""
        return f"{self.address}#/{page}?{urlencode(selected)}"
