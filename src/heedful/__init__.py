"""heedful: the Transformer, whole: train it, translate with it, measure it, look inside.

`heedful.load("en-de").translate(["Where is the train station?"])` uses the model in the box.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heedful.decode.translator import Translator

__all__ = ["__version__", "load"]

__version__ = "0.1.0"


def load(model: str, device: str = "auto") -> "Translator":
    """Open a trained model for use.

    Args:
        model: a folder: of a model, a checkpoint or a run; or the name of a model in the box, such as "en-de".
        device: where to compute: "auto", "cpu", "cuda".

    Raises:
        InputError: there is no such model, its files are damaged, or the device cannot be used.
    """
    from heedful.decode.translator import load as open_translator  # so that importing heedful does not import torch

    return open_translator(model, device)
