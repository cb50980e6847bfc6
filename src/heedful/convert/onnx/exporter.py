"""Export of models to ONNX, for ONNX Runtime and other programs.

The folder contains the graphs, config.json with what a program needs to know about them, the tokenizer as
tokenizer.json, and run.py, which runs the graphs without torch or heedful.
"""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from heedful.architectures.model import load_weights
from heedful.config.schema import ModelConfig, Recipe
from heedful.convert.exporter import Exporter
from heedful.convert.model import Model, check_empty, count_values
from heedful.convert.onnx.comparison import TITLE, compare_outputs
from heedful.convert.onnx.graphs import (
    Graph,
    Restored,
    audio_graphs,
    encoder_decoder_graphs,
    image_graph,
    language_model_graph,
    text_graph,
    without_branches,
)
from heedful.convert.onnx.settings import EXAMPLES, config_of
from heedful.convert.onnx.tracing import check_graph, quantise, write_graph
from heedful.data.readers.labelled import Standardisation
from heedful.errors import InputError
from heedful.storage.atomic import atomic_folder, named_write_errors
from heedful.tasks import find_task
from heedful.text.hugging_face import to_hugging_face

PRECISIONS = ("float32", "int8")
PACKAGES = ("onnx", "onnxscript", "onnxruntime")
MISSING = 'the export needs onnx, onnxscript and onnxruntime: pip install "heedful[onnx]"'
ARCHITECTURES = ("transformer", "dual_encoder", "bag_of_words")


def write(model: Model, folder: Path, precision: str) -> int:
    """Write a model as ONNX graphs to a new or empty folder; return the number of values in the weights.

    Raises:
        InputError: The task or the architecture cannot be exported, or a package is not installed.
        RunError: The folder cannot be written, or a graph differs from the model.
    """
    check_empty(folder)
    check_packages()
    graphs = graphs_of(model)
    with named_write_errors(folder), atomic_folder(folder.resolve()) as writer:
        write_tokenizers(model, writer.path)
        for name, graph in graphs.items():
            write_graph(graph, writer.path / f"{name}.onnx")
            # Check before quantisation, which changes outputs by more than rounding. The features graph, which has no
            # trained weights, is not quantised.
            check_graph(graph, writer.path / f"{name}.onnx")
            if precision == "int8" and name != "features":
                quantise(writer.path / f"{name}.onnx")
        config = json.dumps(config_of(model), ensure_ascii=False, indent=2) + "\n"
        writer.write("config.json", [config.encode("utf-8")])
        writer.write("run.py", [example(model.recipe).encode("utf-8")])
    return count_values(model.weights)


def example(recipe: Recipe) -> str:
    """Return the program that runs a recipe's exported model; it needs neither torch nor heedful."""
    name = EXAMPLES[recipe.task]
    return (Path(__file__).parent / "examples" / f"{name}.py").read_text(encoding="utf-8")


def reject_recipe(recipe: Recipe) -> None:
    if recipe.task not in EXAMPLES:
        raise InputError(
            f'cannot be exported to ONNX: its task is "{recipe.task}"; the export supports {", ".join(EXAMPLES)}'
        )
    architecture = recipe.model.architecture
    if architecture not in ARCHITECTURES:
        raise InputError(
            f'cannot be exported to ONNX: its architecture is "{architecture}", whose graph depends on the padding of '
            f"its inputs; the export supports {', '.join(ARCHITECTURES)}"
        )
    for key in ("attention", "feed_forward"):
        value = getattr(recipe.model, key, None)
        if value in ("latent", "linear", "experts"):
            raise InputError(
                f'cannot be exported to ONNX: its model.{key} is "{value}"; the export supports only '
                f'"{getattr(ModelConfig, key)}"'
            )
    if window := getattr(recipe.model, "window", None):
        raise InputError(
            f"cannot be exported to ONNX: its model.window is {window}; the export supports only attention to all "
            "tokens, without model.window"
        )


def check_packages() -> None:
    if not all(map(find_spec, PACKAGES)):
        raise InputError(MISSING)


def graphs_of(model: Model) -> dict[str, Graph]:
    """Build a model with its weights, and return its graphs by file name."""
    recipe = model.recipe
    built: Any = find_task(recipe.task).build(recipe, model.tokenizers)
    load_weights(built, model.weights)
    without_branches(built)
    name, segments = EXAMPLES[recipe.task], recipe.model.segments > 0
    if name == "write":
        return encoder_decoder_graphs(built)
    if name == "generate":
        return {"model": language_model_graph(built)}
    if name == "classify_images":
        return {"model": image_graph(built, recipe.image, "logits")}
    if name == "classify_audio":
        return audio_graphs(built, recipe.audio)
    if name == "compare_images":
        images = image_graph(built.pictures, recipe.image, "vectors")
        return {"images": images, "texts": text_graph(built.texts, "vectors", segments=False)}
    if name == "score":
        labels = Standardisation.of(recipe.data)
        built = Restored(built, labels.mean, labels.scale)
    output = {"score": "scores", "encode": "vectors"}.get(name, "logits")
    return {"model": text_graph(built, output, segments=segments)}


def write_tokenizers(model: Model, folder: Path) -> None:
    recipe, tokenizers = model.recipe, model.tokenizers
    if recipe.data.modality != "text" and EXAMPLES[recipe.task] != "compare_images":
        return
    # A model that reads whole texts gets <bos> and <eos> around them, even if it is a GPT with a head.
    writes = EXAMPLES[recipe.task] in ("write", "generate")
    family = recipe.model.family if writes else "encoder"
    segments = recipe.model.segments > 0 or writes
    to_hugging_face(tokenizers.source, folder, family, recipe.data.max_length, segments=segments)
    if not tokenizers.joint:
        to_hugging_face(tokenizers.target, folder / "target", family, recipe.data.max_length)


EXPORTER = Exporter(
    title=TITLE,
    writer=write,
    check=lambda model: reject_recipe(model.recipe),
    precisions=PRECISIONS,
    compare=compare_outputs,
    architecture=None,
)
