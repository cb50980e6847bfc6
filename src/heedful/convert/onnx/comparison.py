"""Comparison of a model with its ONNX export: the tokens that both generate, and the numbers that both compute."""

import runpy
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from heedful.checkpoint.load import LoadedModel
from heedful.convert.exporter import CONTINUATION_TOKENS, PROMPT_CHARACTERS, Agreement
from heedful.convert.onnx.settings import EXAMPLES
from heedful.data.readers.labelled import Standardisation
from heedful.predictors.generator import Generator
from heedful.predictors.media_classifier import MediaClassifier
from heedful.predictors.text_predictor import padded_inputs
from heedful.predictors.translator import Translator
from heedful.text.pipeline import BOS, EOS
from heedful.text.sequences import batches, sequence

T = TypeVar("T")

TITLE = "ONNX Runtime"
TEXT_CHARACTERS = 4  # characters of a text that are used, for each token of the context: a document may be a book
COMPARED_INPUTS, COMPARED_TOKENS = 16, 8192  # in one batch
CLASSES = ("classify", "tag", "fill")  # programs whose outputs are logits of classes or tokens
NUMBERS = ("score", "encode", "compare_images")  # programs whose outputs are numbers, without a choice between them


def compare_outputs(loaded: LoadedModel, folder: Path, inputs: Sequence[str]) -> Agreement:
    """Compare the outputs of a model with those of its export, the program run.py in `folder`.

    `inputs` are texts, or names of image or audio files. A model that generates text does so by greedy search on both
    sides, and both score the same tokens. For a model that predicts classes, tags or masked tokens, log-probabilities
    are compared; for other models, the outputs.
    """
    predictor: Any = loaded.use()
    # Run the exported program itself, so that its code is compared as well as the graphs.
    program = runpy.run_path(str(folder / "run.py"))
    if isinstance(predictor, MediaClassifier):
        return _compare_media(predictor, program, inputs)
    compare = {Translator: _compare_translator, Generator: _compare_generator}.get(type(predictor))
    texts = [text for text in inputs if text.strip()]
    return compare(predictor, program, texts) if compare else _compare_texts(loaded, program, texts)


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    items = iter(items)
    while batch := list(islice(items, size)):
        yield batch


def _compare_translator(translator: Translator, program: dict[str, Any], texts: Sequence[str]) -> Agreement:
    lines = list(translator.translate_lines(texts, beam=1))
    outputs = [row for batch in batched(texts, COMPARED_INPUTS) for row in program["predict"](batch)]
    hypotheses = [line.alternatives[0].hypothesis for line in lines]
    equal = sum(list(ours.tokens) == theirs for ours, theirs in zip(hypotheses, outputs, strict=True))

    our_scores = translator.score([(text, line.text) for text, line in zip(texts, lines, strict=True)])
    their_scores = []
    for text, score in zip(texts, our_scores, strict=True):
        ids = np.array([program["SOURCE"].encode(text).ids])
        names = ("cross_keys", "cross_values", "cross_mask")
        encoded = program["ENCODER"].run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})
        keys, values, _ = encoded
        # An empty cache, (L, B, G, 0, K), because all target tokens are scored in one call.
        target = {"past_keys": keys[:, :, :, :0], "past_values": values[:, :, :, :0]}
        row = np.array([[BOS, *score.tokens]])
        logits = program["DECODER"].run(
            None, {**dict(zip(names, encoded, strict=True)), **target, "input_ids": row[:, :-1]}
        )[0]
        their_scores.append(log_probs(logits[0], row[0, 1:]))
    return _agreement(equal, [score.log_probs for score in our_scores], their_scores)


def _compare_generator(generator: Generator, program: dict[str, Any], texts: Sequence[str]) -> Agreement:
    config, model = program["CONFIG"], program["MODEL"]
    texts = [text[: TEXT_CHARACTERS * config["max_tokens"]] for text in texts]
    prompts = [text[: min(PROMPT_CHARACTERS, config["max_tokens"] // 4)] for text in texts]
    # All prompts in a batch are continued to the same length, which the longest prompt limits.
    prompt_tokens = max(map(len, generator.tokenizer.encode_batch(prompts)))
    max_tokens = max(1, min(CONTINUATION_TOKENS, config["max_tokens"] - prompt_tokens))
    outputs = generator.generate(prompts, temperature=0.0, max_tokens=max_tokens)
    theirs = [row for batch in batched(prompts, COMPARED_INPUTS) for row in program["predict"](batch, max_tokens)]
    equal = sum(ours.tokens == row for ours, row in zip(outputs, theirs, strict=True))

    # The graph reads one context; heedful scores long texts in windows, the first of which is this context.
    our_scores = [score.log_probs[: config["max_tokens"]] for score in generator.score(texts)]
    their_scores = []
    for scores, row in zip(our_scores, generator.tokenizer.encode_batch(list(texts)), strict=True):
        tokens = np.array([[EOS, *row[: len(scores)]]])
        sizes = (config["layers"], 1, config["kv_heads"], 0)
        past = {f"past_{name}s": np.zeros((*sizes, config[f"{name}_size"]), np.float32) for name in ("key", "value")}
        ids = tokens[:, :-1]
        logits = model.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids), **past})[0]
        their_scores.append(log_probs(logits[0], tokens[0, 1:]))
    return _agreement(equal, our_scores, their_scores)


def _compare_texts(loaded: LoadedModel, program: dict[str, Any], texts: Sequence[str]) -> Agreement:
    recipe, tokenizer = loaded.recipe, loaded.tokenizers.source
    name = EXAMPLES[recipe.task]
    is_dual = name == "compare_images"
    model, graph = (loaded.model.texts, program["TEXTS"]) if is_dual else (loaded.model, program["MODEL"])
    labels = Standardisation.of(recipe.data)
    rows = [
        sequence(*(tokenizer.encode(part) for part in text.split("\t")[:2]), longest=recipe.data.max_length)
        for text in texts
    ]
    equal, differences = 0, [0.0]
    for batch in batches(rows, COMPARED_TOKENS):
        arguments = padded_inputs([rows[i] for i in batch], next(model.parameters()).device)
        names = [each.name for each in graph.get_inputs()]
        values = [argument.long().cpu().numpy() for argument in arguments]
        [outputs] = graph.run(None, dict(zip(names, values, strict=False)))
        with torch.no_grad():
            # A model without segments has two inputs: the segments of the batch are left out on both sides.
            our_outputs = model(*arguments[: len(names)]).float().cpu()
        their_outputs = torch.from_numpy(outputs)
        if name in CLASSES:
            our_outputs, their_outputs = our_outputs.log_softmax(-1), their_outputs.log_softmax(-1)
        if name == "score":
            # The graph returns numbers in the unit of the labels, but the model returns standardised ones.
            our_outputs = labels.restored(our_outputs)
        for row, both in zip(batch, zip(our_outputs, their_outputs, strict=True), strict=True):
            # In outputs for each token, (S, ...), those for padding are not compared.
            ours, theirs = (output[: len(rows[row])] if output.dim() == 2 else output for output in both)
            differences.append(float((ours - theirs).abs().max()))
            equal += name in NUMBERS or torch.equal(ours.argmax(-1), theirs.argmax(-1))
    return Agreement(inputs=len(texts), equal=equal, difference=max(differences), program=TITLE)


def _compare_media(classifier: MediaClassifier, program: dict[str, Any], names: Sequence[str]) -> Agreement:
    decoded = [classifier.reader.parts(name)[0] for name in names]  # only the first part of a long audio file
    run = classifier.reader.run
    our_scores = list(run(decoded, lambda *batch: classifier.model(*batch).float().cpu().log_softmax(-1)))
    their_scores = []
    for values in decoded:
        if "FEATURES" in program:
            samples = np.pad(values, (0, max(0, program["CONFIG"]["min_samples"] - len(values))))
            [frames] = program["FEATURES"].run(None, {"samples": samples})
            inputs = {"frames": frames[None], "attention_mask": np.ones((1, len(frames)), np.int64)}
        else:
            inputs = {"pixels": values[None]}
        their_scores.append(torch.from_numpy(program["MODEL"].run(None, inputs)[0][0]).log_softmax(-1))
    pairs = zip(our_scores, their_scores, strict=True)
    equal = sum(int(ours.argmax()) == int(theirs.argmax()) for ours, theirs in pairs)
    return _agreement(equal, [scores.numpy() for scores in our_scores], [scores.numpy() for scores in their_scores])


def log_probs(logits: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """Return the log-probability of each token (T,) from the logits (T, V) that predict it."""
    return torch.from_numpy(logits).log_softmax(-1).numpy()[np.arange(len(tokens)), tokens]


def _agreement(equal: int, our_scores: Sequence[Any], their_scores: Sequence[Any]) -> Agreement:
    """Return how many outputs are equal, and the largest difference in a log-probability."""
    pairs = zip(our_scores, their_scores, strict=True)
    differences = [np.abs(np.subtract(ours, theirs)).max() for ours, theirs in pairs]
    return Agreement(inputs=len(our_scores), equal=equal, difference=float(max(differences)), program=TITLE)
