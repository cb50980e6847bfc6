# pyright: strict
"""Every use of a loaded model with the type that comes back, which `make check` has pyright hold; it never runs."""

from collections import abc
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import assert_type

import numpy as np
import torch
from numpy.typing import NDArray

import heedful
from heedful.data.word_vectors import Neighbour
from heedful.inspector.capture.trace import Trace
from heedful.inspector.page import View
from heedful.predictors import AnyPredictor, Text
from heedful.predictors.answerer import Answered, Answerer
from heedful.predictors.classifier import Classified, Classifier
from heedful.predictors.filler import Filler, MaskCandidate
from heedful.predictors.generator import Generation, GenerationRequest, Generator
from heedful.predictors.retriever import Hit, Retriever
from heedful.predictors.scorer import Scored, Scorer
from heedful.predictors.tagger import TaggedWords, Tagger
from heedful.predictors.translator import Translation, Translator
from heedful.predictors.word_vectors import WordVectors

TEXT, TEXTS = "a text", ["a text", "another"]
FOLDER = Path("run")


def translations(lines: Iterator[str]) -> None:
    translator = heedful.load("en-de")
    assert_type(translator, Translator)
    assert_type(heedful.load(FOLDER, as_=Translator), Translator)
    assert_type(heedful.load(FOLDER, torch.device("cpu"), "int8", as_=Translator, engine="auto"), Translator)
    assert_type(translator(TEXT), str)
    assert_type(translator(TEXTS, beam=2), list[str])
    assert_type(translator.predict(TEXT), str)
    assert_type(translator.translate(TEXT, beam=2), str)
    assert_type(translator.translate(lines, penalty="average"), list[str])
    assert_type(translator.translate(tuple(TEXTS)), list[str])
    assert_type(translator.translate(line.strip() for line in lines), list[str])
    assert_type(translator.translate_lines(lines, n_best=3), Iterator[Translation])
    assert_type(translator.with_options(beam=1), Translator)
    assert_type(translator.device, torch.device)


def generations(lines: Iterator[str]) -> None:
    generator = heedful.load("run", as_=Generator)
    assert_type(generator(TEXT, temperature=0.7), Generation)
    assert_type(generator.generate(TEXT, stop=["."]), Generation)
    assert_type(generator.generate(TEXTS), list[Generation])
    assert_type(generator.generate(GenerationRequest(TEXT, generator.config)), Generation)
    assert_type(generator.generate_lines(lines, seed=1), Iterator[Generation])
    assert_type(generator.stream(TEXT), abc.Generator[str, None, Generation])


def gaps(lines: Iterator[str]) -> None:
    filler = heedful.load("run", as_=Filler)
    assert_type(filler(TEXT), list[list[MaskCandidate]])
    assert_type(filler.fill(TEXT, count=2), list[list[MaskCandidate]])
    assert_type(filler.fill(TEXTS), list[list[list[MaskCandidate]]])
    assert_type(filler.fill_lines(lines), Iterator[list[list[MaskCandidate]]])


def answers(lines: Iterator[str]) -> None:
    classifier = heedful.load("run", as_=Classifier)
    assert_type(classifier, Classifier)
    assert_type(classifier(TEXT), Classified)
    assert_type(classifier.predict(TEXTS), list[Classified])
    assert_type(classifier.predict(Text(TEXT, TEXT)), Classified)
    assert_type(classifier.predict([(TEXT, TEXT), TEXT]), list[Classified])
    assert_type(classifier.predict_lines(lines), Iterator[Classified])
    assert_type(heedful.load("run", as_=Scorer).predict(TEXT), Scored)
    assert_type(heedful.load("run", as_=Tagger).predict(TEXTS), list[TaggedWords])
    answerer = heedful.load("run", as_=Answerer)
    assert_type(answerer, Answerer)
    assert_type(answerer.predict(Text("Who?", TEXT)), Answered)


def vectors(lines: Iterator[str]) -> None:
    retriever = heedful.load("run", as_=Retriever)
    assert_type(retriever(TEXT), NDArray[np.float32])
    assert_type(retriever.encode(TEXTS), NDArray[np.float32])
    assert_type(retriever.encode_lines(lines), Iterator[NDArray[np.float32]])
    assert_type(retriever.search(TEXT, TEXTS, k=1), list[Hit])
    assert_type(retriever.search(TEXTS, TEXTS, vectors=retriever.encode(TEXTS)), list[list[Hit]])
    words = heedful.load("run", as_=WordVectors)
    assert_type(words, WordVectors)
    assert_type(words("king"), NDArray[np.float32])
    assert_type(words.encode(lines), NDArray[np.float32])
    assert_type(words.analogy("king", "man", "woman", k=1), list[Neighbour])
    assert_type(words.similarity("king", "queen"), float)


def any_task() -> None:
    model = heedful.load("run")
    assert_type(model, AnyPredictor)
    assert_type(heedful.load("run", task="ranking"), AnyPredictor)
    assert_type(model(TEXT), object)
    assert_type(model.predict(TEXTS), Collection[object])
    assert_type(heedful.train("recipe.toml").predictor, AnyPredictor)
    if isinstance(model, Translator):
        assert_type(model.translate(TEXT), str)


def looks() -> None:
    translator = heedful.load("en-de")
    assert_type(heedful.trace(translator, TEXT, keep="enc.norm"), Trace)
    assert_type(heedful.trace("en-de", TEXTS), list[Trace])
    assert_type(heedful.look(translator, TEXT), View)
