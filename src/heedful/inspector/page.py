"""HTML page of an inspection: a single file for the server, for export or for a notebook (`heedful.look`)."""

import base64
import gzip
import hashlib
import html
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from heedful.checkpoint import LoadedModel
from heedful.checkpoint.ensemble import load_ensemble
from heedful.config.schema import Recipe
from heedful.errors import InputError
from heedful.inspector.capture.trace import Trace
from heedful.inspector.look import Inspection, Question, look
from heedful.inspector.overview import Json, facts, overview
from heedful.predictors import AnyPredictor, Predictor
from heedful.storage.paths import unreadable
from heedful.storage.written_files import own_file
from heedful.wording import shown_name

BUILT = Path(str(files("heedful"))) / "inspector" / "page" / "index.html"
INLINE = re.compile(r"<(script|style)\b[^>]*>(.*?)</\1>", re.DOTALL)
NONE = "'none'"
CONNECT = "connect-src 'self'"  # removed from an exported file, which works without a server
CLOSED = (f"base-uri {NONE}", f"form-action {NONE}")
STATE = re.compile(r"(enc|dec)\.\d+\.(hidden|\w+_gate)")
EXACT = ("q", "k", "v", "score", "bias", "attn", "z")
HEIGHT = 900  # pixels in a notebook


@dataclass(frozen=True)
class Page:
    """HTML page of the inspector, with its Content-Security-Policy and export to a standalone file."""

    html: str

    @classmethod
    def built(cls, path: Path = BUILT) -> "Page":
        """Read the inspector page, built by `make page`."""
        try:
            return cls(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise InputError(
                f"{path} is missing: the page of this source tree has not been built; run `make page`, which needs "
                "Node.js 20 or newer, or install heedful from a wheel"
            ) from error

    @property
    def policy(self) -> str:
        """Content-Security-Policy that allows only the page's scripts, styles, `data:` images and server."""
        # The browser runs only scripts with these hashes, and blocks any that a user's text adds to the page.
        hashes: dict[str, list[str]] = {"script": [], "style": []}
        for kind, text in INLINE.findall(self.html):
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            hashes[kind].append(f"'sha256-{digest}'")
        sources = [f"{kind}-src {' '.join(of_kind or [NONE])}" for kind, of_kind in hashes.items()]
        return "; ".join([f"default-src {NONE}", *sources, CONNECT, "img-src data:", *CLOSED])

    def holding(self, overview: Json, trace: Trace, head: tuple[str, int] | None) -> str:
        """Build a standalone HTML page with the data of an inspection.

        All attention weights are stored in one byte each. Outputs and gates of recurrent layers, and outputs of
        convolutional layers, take two bytes per value. The tensors of one attention head are stored in float32.

        Args:
            overview: The result of `heedful.inspector.overview.overview`, with the facts of the model as "model".
            trace: Trace of the inspection.
            head: Attention sublayer such as "dec.1.cross", and number of a head in the sublayer; None for a trace
                without attention.
        """
        parts = {}
        if head is not None:
            block, number = head
            blocks = [name.removesuffix(".attn") for name in trace if name.endswith(".attn")]
            if block not in blocks:
                available = f"choose one of {', '.join(blocks)}" if blocks else "this model has no attention sublayers"
                raise InputError(f"{block} is not an attention sublayer; {available}")
            attention = trace.only("*.attn")
            parts["attention"] = packed(attention.encoded(dict.fromkeys(attention, "sqrt_u8")))
            exact = [name for tap in EXACT if (name := f"{block}.{tap}") in trace]
            parts[f"{block} {number}"] = packed(trace.only(exact, number).encoded())
        if states := [name for name in trace if STATE.fullmatch(name)]:
            parts["states"] = packed(trace.only(states).encoded(dict.fromkeys(states, "f16")))
        parts["overview"] = packed([json.dumps(overview, ensure_ascii=False).encode()])
        # A browser does not run a script of this type, so the policy needs no hash of the data.
        scripts = "".join(
            f'<script type="application/gzip" data-part="{name}">{text}</script>' for name, text in parts.items()
        )
        # A file has no HTTP headers, so its policy is an element of the page.
        policy = self.policy.replace(f"{CONNECT}; ", "")
        meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        return self.html.replace("<head>", f"<head>{meta}", 1).replace("</body>", f"{scripts}</body>", 1)


def packed(parts: Iterable[bytes | memoryview]) -> str:
    """Compress bytes with gzip and encode them as base64 text, to embed in an HTML page."""
    # Without the time, the same inspection gives the same file.
    return base64.b64encode(gzip.compress(b"".join(parts), mtime=0)).decode()


@dataclass(frozen=True)
class View:
    """View of an inspection, which a notebook displays and `save` writes as an HTML page.

    Attributes:
        name: Name of the model.
        model: The model or predictor, with its recipe.
        inspection: The inspection.
        page: HTML page of the inspector.
        head: Attention head whose computation the page shows step by step: its sublayer, and its number from 0;
            None for the first head of the last attention sublayer.
    """

    name: str
    model: LoadedModel | AnyPredictor
    inspection: Inspection
    page: Page
    head: tuple[str, int] | None = None

    def __repr__(self) -> str:
        return f"View({self.name!r}, {self.inspection.question.text!r}): displayed by a notebook, written by save(path)"

    @property
    def seen(self) -> Inspection:
        """Former name of `inspection`."""
        return self.inspection

    @property
    def trace(self) -> Trace:
        """Trace of the forward pass: all recorded tensors."""
        return self.inspection.trace

    @property
    def html(self) -> str:
        """Standalone HTML page of the inspection."""
        model = facts(self.name, recipe_of(self.model), self.model.model)
        contents = {"model": model, **overview(self.inspection)}
        blocks = contents["blocks"]
        head = self.head or ((blocks[-1]["name"], 0) if blocks else None)
        return self.page.holding(contents, self.inspection.trace, head)

    def save(self, path: str | Path, *, replace: bool = False) -> None:
        """Write the inspection as a standalone HTML page to a file.

        Args:
            path: The file. A file that heedful wrote is replaced if it is unchanged.
            replace: Also replace any other file.

        Raises:
            OSError: The file cannot be written.
        """
        content = self.html.encode()
        with own_file(Path(path), replace=replace) as file:
            file.write(content)

    def _repr_html_(self) -> str:
        style = f"width: 100%; height: {HEIGHT}px; border: 0"
        return f'<iframe srcdoc="{html.escape(self.html)}" style="{style}" title="heedful inspector"></iframe>'


def view(model: Any, question: Question, head: tuple[str, int] | None = None, device: str = "auto") -> View:
    """Inspect a model and return a view for a notebook or an HTML page, as `heedful.look` does.

    For an image or audio model, the text of a question without a file is the path to one.
    """
    page = Page.built()
    if not isinstance(model, str | Path | list | tuple):
        return View(recipe_of(model).name, model, look(model, with_file(model, question)), page, head)
    names = [model] if isinstance(model, str | Path) else model
    subject = load_ensemble(names, device).use()
    return View(" and ".join(map(str, names)), subject, look(subject, with_file(subject, question)), page, head)


def check_pair(head: object) -> None:
    """Reject a head that is neither None nor a pair of a block and a number."""
    match head:
        case None:
            return
        case (str(), int() as number) if not isinstance(number, bool):
            return
    raise InputError(f'head = {head!r}: must be a block and a head, counted from 0, such as ("dec.1.cross", 1)')


def with_file(subject: Any, question: Question) -> Question:
    """Read the file of a question from the path in its text, if the model reads images or audio."""
    if question.file is not None or not subject.reads_files:
        return question
    path = Path(question.text)
    try:
        return replace(question, text=shown_name(path), file=path.read_bytes())
    except OSError as error:
        raise InputError(unreadable(path, error)) from error


def recipe_of(model: object) -> Recipe:
    """Return the training recipe of a model or predictor; reject one that was not loaded from a model folder."""
    if isinstance(model, LoadedModel | Predictor) and model.recipe is not None:
        return model.recipe
    raise InputError(
        f"a {type(model).__name__} that was not loaded from a model folder cannot be shown on a page; load one with "
        "heedful.load"
    )
