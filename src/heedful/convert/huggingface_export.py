"""Write a model as a Hugging Face folder in the layout that fits: BERT, CLIP, GPT-2, Llama, Marian, ViT or Whisper."""

import json
from pathlib import Path

from heedful.convert.exporter import Exporter
from heedful.convert.model import PRECISIONS, Model, check_empty
from heedful.convert.transformers_check import compare_with_transformers
from heedful.errors import InputError
from heedful.registry import EXPORTERS, FORMATS
from heedful.tasks import find_task

LAYOUTS = ("bert", "clip", "gpt2", "llama", "marian", "vit", "whisper")
BY_POSITIONS = {"learned": "gpt2", "rotary": "llama"}  # layouts of GPTs, by model.positions


def write(model: Model, folder: Path, precision: str = "float32") -> int:
    """Write a model in the first layout that can represent it, and return the number of values in the weights.

    Raises:
        InputError: No layout fits; the settings that would have to differ are listed for the closest one.
    """
    check_empty(folder)
    refusals = []
    for name in layouts_for(model):
        try:
            return EXPORTERS[name].write(model, folder, precision)
        except InputError as error:
            refusals.append(error)
    # Each message has a line for each setting that would have to differ.
    raise min(refusals, key=lambda error: str(error).count("\n"))


def layouts_for(model: Model) -> list[str]:
    """Return the layouts that support the task of a model. A GPT has two."""
    task = find_task(model.recipe.task)
    names = [name for name in LAYOUTS if issubclass(task, FORMATS[name].tasks)]
    if not names:
        raise InputError(
            f'the model "{model.recipe.name}" cannot be exported: none of the layouts {", ".join(LAYOUTS)} supports '
            f"the task {json.dumps(model.recipe.task)}"
        )
    return names


def changes(model: Model) -> tuple[str, ...]:
    """Return notes that name the layout that fits a model, and say what writing in this layout changes."""
    names = layouts_for(model)
    name = names[0] if len(names) == 1 else BY_POSITIONS[model.recipe.model.positions]
    return (f"the layout is {name}", *EXPORTERS[name].changes(model))


EXPORTER = Exporter(
    title="Hugging Face",
    writer=write,
    precisions=PRECISIONS,
    architecture=None,
    compare=compare_with_transformers,
    engine="transformers",
    changes=changes,
)
