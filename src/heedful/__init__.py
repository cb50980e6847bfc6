"""heedful: the Transformer, whole: train it, translate with it, measure it, look inside.

`heedful.load("en-de").translate(["Where is the train station?"])` uses the model in the box.
"""

from pathlib import Path
from typing import Any

__all__ = ["__version__", "load"]

__version__ = "0.1.0"


def load(model: str | Path, device: str = "auto", precision: str = "float32") -> Any:
    """Open a trained model for use: a `Translator`, or whatever else its task makes of it.

    Args:
        model: a folder: of a model, a checkpoint or a run; or the name of a model in the box, such as "en-de".
        device: where to compute: "auto", "cpu", "cuda".
        precision: "float32", or "int8": up to 2.6 times as fast on a CPU, and not quite the same.

    Raises:
        InputError: there is no such model or precision, its files are damaged, or the device cannot be used.
    """
    from heedful.checkpoint import load_model  # here, so that importing heedful does not import torch
    from heedful.machine import choose_device

    return load_model(model, str(choose_device(device)), precision).use()
