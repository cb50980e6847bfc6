"""HTML page of a look: one file, for the server, as a standalone file, or displayed in a notebook (`heedful.look`)."""

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

from heedful.checkpoint import LoadedModel, load_model
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
CONNECT = "connect-src 'self'"  # left out of an exported file, which has no server
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
        """Read the inspector page that `make page` built."""
        try:
            return cls(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise InputError(
                f"{path} is not there: this is a source tree whose page was not built; run `make page`, which needs "
                "Node.js 20 or newer, or install heedful from a wheel"
            ) from error

    @property
    def policy(self) -> str:
        """Content-Security-Policy that allows only the page's own scripts, styles, data images and server."""
        hashes: dict[str, list[str]] = {"script": [], "style": []}
        for kind, text in INLINE.findall(self.html):
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            hashes[kind].append(f"'sha256-{digest}'")
        sources = [f"{kind}-src {' '.join(of_kind or [NONE])}" for kind, of_kind in hashes.items()]
        return "; ".join([f"default-src {NONE}", *sources, CONNECT, "img-src data:", *CLOSED])

    def holding(self, overview: Json, trace: Trace, head: tuple[str, int] | None) -> str:
        """Build a standalone HTML page with the data of a look, which needs no server.

        All attention weights are stored in one byte each, states and gates of recurrent layers in two; one head has all
        its tensors in float32.

        Args:
            overview: see `heedful.inspector.overview`, with the facts of the model as "model".
            trace: trace of the look.
            head: attention sublayer such as "dec.1.cross", and number of a head in the sublayer; None for a trace
                without attention.

        Raises:
            InputError: there is no such attention sublayer or head.
        """
        parts = {} if head is None else attention_parts(trace, *head)
        if states := [name for name in trace if STATE.fullmatch(name)]:
            parts["states"] = packed(trace.only(states).encoded(dict.fromkeys(states, "f16")))
        parts["overview"] = packed([json.dumps(overview, ensure_ascii=False).encode()])
        scripts = "".join(
            f'<script type="application/gzip" data-part="{name}">{text}</script>' for name, text in parts.items()
        )
        policy = self.policy.replace(f"{CONNECT}; ", "")
        meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        return self.html.replace("<head>", f"<head>{meta}", 1).replace("</body>", f"{scripts}</body>", 1)


def attention_parts(trace: Trace, block: str, number: int) -> dict[str, str]:
    """Pack the attention weights of all heads, and all tensors of one head, for a standalone page."""
    blocks = [name.removesuffix(".attn") for name in trace if name.endswith(".attn")]
    if block not in blocks:
        there = f"there are {', '.join(blocks)}" if blocks else "this model has no attention sublayers"
        raise InputError(f"there is no block {block} whose heads look at anything; {there}")
    attention = trace.only("*.attn")
    exact = [name for place in EXACT if (name := f"{block}.{place}") in trace]
    return {
        "attention": packed(attention.encoded(dict.fromkeys(attention, "sqrt_u8"))),
        f"{block} {number}": packed(trace.only(exact, number).encoded()),
    }


def packed(parts: Iterable[bytes | memoryview]) -> str:
    """Compress bytes with gzip and encode them as base64 text, to embed in an HTML page."""
    return base64.b64encode(gzip.compress(b"".join(parts), mtime=0)).decode()


@dataclass(frozen=True)
class View:
    """View of a look into a model, which a notebook displays and `save` writes as an HTML page.

    Attributes:
        name: name of the model.
        model: the model or predictor, with its recipe.
        inspection: result of the look.
        page: HTML page that shows the look.
        head: attention head whose computation the page shows step by step: name of the sublayer, and number from 0;
            None: the first head of the last attention sublayer.
    """

    name: str
    model: LoadedModel | AnyPredictor
    inspection: Inspection
    page: Page
    head: tuple[str, int] | None = None

    def __repr__(self) -> str:
        return f"View({self.name!r}, {self.inspection.question.text!r}): shown by a notebook, written by save(path)"

    @property
    def seen(self) -> Inspection:
        """Former name of `inspection`."""
        return self.inspection

    @property
    def trace(self) -> Trace:
        """Trace of the forward pass: all recorded tensors of the look."""
        return self.inspection.trace

    @property
    def html(self) -> str:
        """Standalone HTML page that shows the look without a server.

        Raises:
            InputError: the model has no head `head`.
        """
        model = facts(self.name, recipe_of(self.model), self.model.model)
        contents = {"model": model, **overview(self.inspection)}
        blocks = contents["blocks"]
        head = self.head or ((blocks[-1]["name"], 0) if blocks else None)
        return self.page.holding(contents, self.inspection.trace, head)

    def save(self, path: str | Path, *, replace: bool = False) -> None:
        """Write the look as a standalone HTML page to a file.

        Args:
            path: the file. One that heedful wrote, and that nobody changed since, is replaced.
            replace: also replace any other file.

        Raises:
            InputError: the model has no head `head`, or there is another file and `replace` is False.
            OSError: the file cannot be written.
        """
        content = self.html.encode()
        with own_file(Path(path), replace=replace) as file:
            file.write(content)

    def _repr_html_(self) -> str:
        style = f"width: 100%; height: {HEIGHT}px; border: 0"
        return f'<iframe srcdoc="{html.escape(self.html)}" style="{style}" title="heedful inspector"></iframe>'


def view(model: Any, question: Question, head: tuple[str, int] | None = None, device: str = "auto") -> View:
    """Run a model on a question and return a view of the result for a notebook or an HTML page, as `heedful.look` does.

    For a model of images or audio, the text of a question without a file is the path of a file.
    """
    page = Page.built()
    named = isinstance(model, str | Path)
    subject = load_model(model, device).use() if named else model
    name = str(model) if named else recipe_of(model).name
    return View(name, subject, look(subject, with_file(subject, question)), page, head)


def check_pair(head: object) -> None:
    """Refuse a head that is not named by a block and a number."""
    match head:
        case None:
            return
        case (str(), int() as number) if not isinstance(number, bool):
            return
    raise InputError(f'head = {head!r}: name a block and a head, counted from 0, such as ("dec.1.cross", 1)')


def with_file(subject: Any, question: Question) -> Question:
    """Question whose file is read from the path in its text, if the model reads images or audio and it has none."""
    if question.file is not None or not subject.reads_files:
        return question
    path = Path(question.text)
    try:
        return replace(question, text=shown_name(path), file=path.read_bytes())
    except OSError as error:
        raise InputError(unreadable(path, error)) from error


def recipe_of(model: object) -> Recipe:
    """Return the training recipe of a model or predictor, and refuse what was not loaded from a model folder."""
    if isinstance(model, LoadedModel | Predictor) and model.recipe is not None:
        return model.recipe
    raise InputError(
        f"a {type(model).__name__} that does not come from a model folder cannot be shown on a page; open one with "
        "heedful.load"
    )
