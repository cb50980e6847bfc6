"""A look that can be opened: in a notebook, or as a file. See `heedful.look`."""

import html
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.checkpoint import LoadedModel, load_model
from heedful.config.schema import Recipe
from heedful.data.atomic_write import replacing
from heedful.decode.predictor import BasePredictor
from heedful.errors import InputError
from heedful.inspector.capture.trace import Trace
from heedful.inspector.look import Look, Question, look
from heedful.inspector.overview import facts, overview
from heedful.inspector.page import Page

HEIGHT = 900  # pixels in a notebook


@dataclass(frozen=True)
class View:
    """A look with what shows it.

    Attributes:
        name: what the model is called.
        model: that was asked, with its recipe.
        seen: what was seen.
        page: in which it is shown.
        head: whose formula can be followed: its block, and its number from 0; None: the first of the last block.
    """

    name: str
    model: LoadedModel | BasePredictor
    seen: Look
    page: Page
    head: tuple[str, int] | None = None

    def __repr__(self) -> str:
        return f"View({self.name!r}, {self.seen.question.text!r}): shown by a notebook, written by save(path)"

    @property
    def trace(self) -> Trace:
        """Every number of the pass."""
        return self.seen.trace

    @property
    def html(self) -> str:
        """One page that needs no server.

        Raises:
            InputError: there is no such head.
        """
        shown = {"model": facts(self.name, recipe_of(self.model), self.model.model), **overview(self.seen)}
        head = self.head or (shown["blocks"][-1]["name"], 0)
        return self.page.holding(shown, self.seen.trace, head)

    def save(self, path: str | Path) -> None:
        """Write the page.

        Raises:
            InputError: there is no such head.
            OSError: it cannot be written.
        """
        content = self.html.encode()
        with replacing(Path(path)) as file:
            file.write(content)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        style = f"width: 100%; height: {HEIGHT}px; border: 0"
        return f'<iframe srcdoc="{html.escape(self.html)}" style="{style}" title="heedful inspector"></iframe>'


def view(model: Any, question: Question, head: tuple[str, int] | None = None, device: str = "cpu") -> View:
    """Look into a model. See `heedful.look`.

    Raises:
        InputError: there is no such model, the text is empty or too long, or the page was not built.
    """
    page = Page.built()
    if isinstance(model, str | Path):
        subject = load_model(model, device).use()
        return View(str(model), subject, look(subject, question), page, head)
    return View(recipe_of(model).name, model, look(model, question), page, head)


def recipe_of(model: Any) -> Recipe:
    """What a model was trained with, which the page shows.

    Raises:
        InputError: it is no model, or one that does not know.
    """
    if isinstance(model, LoadedModel | BasePredictor) and model.recipe is not None:
        return model.recipe
    raise InputError(
        f"a {type(model).__name__} that does not come from a model folder cannot be shown on a page; open one with "
        "heedful.load"
    )
