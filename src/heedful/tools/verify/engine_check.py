"""Check of the inference engine: CTranslate2 gives the same results as torch."""

import math
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from heedful.architectures import weights
from heedful.checkpoint import write_model
from heedful.checkpoint.load import LoadedModel
from heedful.config.schema import GenerateConfig
from heedful.convert.engine import open_predictor
from heedful.predictors.generator import Generator
from heedful.predictors.translator import Translator
from heedful.registry import ENGINE_PREDICTORS
from heedful.tools.verify.subjects import Subject, relative_difference

# Greedy search: a tie due to rounding is unlikely among the most probable tokens, but likely somewhere in a beam.
SEARCHES: dict[type, dict[str, Any]] = {
    Translator: {"beam": 1, "n_best": 1},
    Generator: asdict(GenerateConfig(temperature=0.0, max_tokens=8)),
}


def with_ctranslate2(subject: Subject, loaded: LoadedModel) -> float | None:
    """Compare CTranslate2 with torch: token scores of greedy outputs and of given texts, or vectors of texts.

    Returns None if CTranslate2 does not support the model.
    """
    kind = ENGINE_PREDICTORS.get(loaded.recipe.task)
    if kind is None:
        return None
    options = SEARCHES.get(kind.reference_class, {})
    with TemporaryDirectory() as folder:
        write_model(Path(folder) / "model", loaded.recipe, loaded.tokenizers, weights(loaded.model))
        theirs = open_predictor(kind, Path(folder) / "model", "auto", "cpu", options=options)
        if theirs is None:
            return None
        texts = [loaded.tokenizers.source.decode(ids.tolist()) for ids, *_ in subject.examples]
        ours: Any = loaded.use()
        actual, expected = numbers(theirs, texts), numbers(ours.with_options(**options) if options else ours, texts)
    return relative_difference(actual, expected) if actual.shape == expected.shape else math.inf


def numbers(predictor: Any, texts: list[str]) -> Tensor:
    """Compute the token scores of a predictor's outputs and of given texts; for an encoder, the vectors of texts."""
    if isinstance(predictor, Translator):
        lines = list(predictor.translate_lines(texts))
        outputs = [each.hypothesis.token_scores for line in lines for each in line.alternatives]
        scores = predictor.score(zip(texts, texts[::-1], strict=True))
    elif isinstance(predictor, Generator):
        outputs = [each.token_scores for each in predictor.generate(texts)]
        scores = predictor.score(texts)
    else:
        return torch.from_numpy(predictor.encode(texts))
    return torch.tensor([*chain(*outputs, *(score.log_probs for score in scores))])
