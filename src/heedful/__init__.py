"""heedful: the Transformer, whole: train it, translate with it, measure it, look inside.

`heedful.load("en-de").translate(["Where is the train station?"])` uses the model in the box.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any

__all__ = ["__version__", "load", "look", "trace"]

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


def trace(model: Any, text: str, target: str | None = None, keep: Collection[str] = ("*",)) -> Any:
    """Run a model over a text and keep every number of it: a `heedful.inspect_.capture.trace.Trace`.

    `heedful.trace("en-de", "Two dogs are running.")["dec.0.cross.attn"]` is where each head of the first layer looks.

    Args:
        model: what `load` takes, or what it gives.
        text: what is read; a language model goes on from it.
        target: what a translator or a language model is to have written, instead of what it would write; or the second
            text of a pair.
        keep: names of `heedful.inspect_.capture.taps`, or patterns such as "dec.*.cross.attn".

    Raises:
        InputError: the text is empty or too long, there is no such tap, or as in `load`.
    """
    from heedful.inspect_.capture.trace import trace as look

    return look(load(model) if isinstance(model, str | Path) else model, text, target, keep)


def look(model: str | Path, text: str, target: str | None = None, head: tuple[str, int] | None = None) -> Any:
    """Run a model over a text and open what it computes as a page: a `heedful.inspect_.view.View`.

    A notebook shows it by itself, and `heedful.look("en-de", "Two dogs are running.").save("page.html")` writes a file
    that any browser opens without a server.

    Args:
        model: what `load` takes.
        text: what is read; a language model goes on from it.
        target: as in `trace`.
        head: whose formula can be followed on the page, such as ("dec.1.cross", 2); None: the first of the last block.

    Raises:
        InputError: the text is empty or too long, there is no such model or head, or the page was not built.
    """
    from heedful.inspect_.look import Question
    from heedful.inspect_.view import view

    return view(model, Question(text=text, target=target), head)
