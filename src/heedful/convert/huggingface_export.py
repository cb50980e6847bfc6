"""Write a model as a Hugging Face folder in the layout that fits: BERT, CLIP, GPT-2, Llama, Marian, ViT or Whisper."""

import json
from pathlib import Path

from heedful.convert.exporter import Exporter
from heedful.convert.model import PRECISIONS, Model
from heedful.convert.transformers_check import compare_with_transformers
from heedful.errors import InputError
from heedful.registry import EXPORTERS, FORMATS
from heedful.tasks import find_task

LAYOUTS = ("bert", "clip", "gpt2", "llama", "marian", "vit", "whisper")


def write(model: Model, folder: Path, precision: str = "float32") -> int:
    """Write a model in the first layout that can represent it, and return the number of values in the weights."""
    return EXPORTERS[layout_of(model)].write(model, folder, precision)


def layout_of(model: Model) -> str:
    """Return the first layout that can represent a model.

    Raises:
        InputError: No layout fits; the settings that would have to differ are listed for the closest one.
    """
    refusals = []
    for name in layouts_for(model):
        try:
            EXPORTERS[name].reject_misfit(model)
        except InputError as error:
            refusals.append(error)
        else:
            return name
    # Each message has a line for each setting that would have to differ.
    raise min(refusals, key=lambda error: str(error).count("\n"))


def layouts_for(model: Model) -> list[str]:
    """Return the layouts that support the task of a model. A GPT has two."""
    task = find_task(model.recipe.task)
    names = [name for name in LAYOUTS if issubclass(task, FORMATS[name].tasks)]
    if not names:
        raise InputError(
            f"cannot be exported: none of the layouts {', '.join(LAYOUTS)} supports the task "
            f"{json.dumps(model.recipe.task)}"
        )
    return names


def changes(model: Model) -> tuple[str, ...]:
    """Return notes that name the layout that fits a model, and say what writing in this layout changes."""
    name = layout_of(model)
    return (f"the layout is {name}", *EXPORTERS[name].changes(model))


EXPORTER = Exporter(
    title="Hugging Face",
    writer=write,
    check=layout_of,
    precisions=PRECISIONS,
    architecture=None,
    compare=compare_with_transformers,
    compares_media=False,
    engine="transformers",
    changes=changes,
)
