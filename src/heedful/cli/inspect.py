"""`heedful inspect`: the inspector, as a web page or one HTML file; `heedful attention`: heat maps of attention."""

import secrets
import socket
import webbrowser
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, NamedTuple
from urllib.parse import urlencode

import typer

from heedful.cli.answering import recipe_of
from heedful.cli.evaluate import recipe_test_set
from heedful.cli.options import Device, Force, folder_to_read
from heedful.cli.output import check_output, check_picture, draw_picture, writing
from heedful.config.families import FAMILIES
from heedful.errors import InputError, RunError
from heedful.progress import show_progress
from heedful.storage.paths import unreadable
from heedful.wording import counted, shown_name

if TYPE_CHECKING:
    from heedful.inspector.capture.sources import Writer
    from heedful.inspector.capture.trace import Trace

INPUTS = {
    "text": ("a text", "'A dog barks.'"),
    "image": ("an image file", "dog.jpg"),
    "audio": ("an audio file", "speech.wav"),
    "video": ("a video file", "clip.mp4"),
}
SAMPLE = 200  # sentences on which heads are weighed


def inspect(
    model: Annotated[
        str, typer.Argument(help="Folder of a model or of a run, or the name of a built-in model.")
    ] = "en-de",
    text: Annotated[
        str | None,
        typer.Argument(help="Input text of the model, or the file of a picture or sound; needed with --out."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="HTML file to write, which needs no server; without it, a live page is served.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            help="Output to look at instead of the model's own: a translation or a continuation. For a model that "
            "reads pairs of texts: the second text.",
            show_default="the model's own output",
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(help="Reference translation; the page shows at which step beam search drops it. Only with --out."),
    ] = None,
    head: Annotated[
        str | None,
        typer.Option(
            help="Attention head whose computation is in the file, number by number. Only with --out. dec.1.cross.3 is "
            "head 3 of the cross-attention of decoder layer 2: blocks are counted from 0, heads from 1.",
            show_default="head 1 of the last block",
        ),
    ] = None,
    beside: Annotated[
        list[str] | None, typer.Option(help="Another model to choose on the live page. Can be repeated.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the data files that the recipe names; the worth of heads is measured on the test set.",
            show_default="as in training",
            callback=folder_to_read,
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on. Except on 127.0.0.1, localhost and ::1, visitors need the printed token."
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 8642,
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
    device: Device = "auto",
    _force: Force = False,
) -> None:
    """Look inside a model in the browser: its attention heads, its numbers step by step, and its beam search."""
    if out is None:
        if reference or head:
            raise InputError("--reference and --head are for --out FILE; on the live page they are chosen there")
        from heedful.text.tokenizer import checked

        opened = opened_file(model, text)
        address = {name: value for name, value in (("text", None if opened else text), ("target", target)) if value}
        for value in address.values():
            checked(value)
        opening = Opening(address, opened, sample_of(model, data))
        serve(list(map(served_name, [model, *(beside or [])])), opening, host, port, open_browser, device)
        return
    if beside or data:
        raise InputError("--beside and --data are for the live page; a file shows one look at one model")
    if text is None:
        kind, example = INPUTS[recipe_of(model).data.modality]
        raise InputError(f"--out writes one look, so give {kind}: heedful inspect {model} {example} --out {out}")
    check_output(out, option="--out")
    from heedful.inspector.look import Question
    from heedful.inspector.page import view

    question = Question(text=text, target=target, reference=reference)
    block_and_head = head_of(head) if head else None
    with show_progress(f"looking into {model}"):
        page = view(model, question, block_and_head, device)
        if block_and_head:
            check_head(block_and_head, page.trace)
        html = page.html
    with writing(out) as stream:
        stream.write(html.encode())
    typer.echo(f"{out}: open it in a browser; it needs no internet", err=True)


def served_name(model: str) -> str:
    """Return the name by which a model is served: `.` and `..` would vanish from an address, so they become a path."""
    return str(Path(model).resolve()) if model in (".", "..") else model


class Opening(NamedTuple):
    """First inspection of the live page: the text or file that it opens with."""

    address: dict[str, str]  # text and target
    file: tuple[str, bytes] | None  # name and content of a picture or sound; None: a text
    sample: tuple[list[str], list[str]]  # sentences and references that heads are weighed on


def opened_file(model: str, text: str | None) -> tuple[str, bytes] | None:
    """Read the file that the live page opens with: its name and its content; None for a model of text, or no file."""
    if text is None or recipe_of(model).data.modality == "text":
        return None
    try:
        return shown_name(Path(text)), Path(text).read_bytes()
    except OSError as error:
        raise InputError(unreadable(Path(text), error)) from error


def head_of(text: str) -> tuple[str, int]:
    """Parse the value of `--head`, a block and a head from 1 such as dec.1.cross.3; return the head counted from 0."""
    block, _, number = text.rpartition(".")
    if block.count(".") != 2 or not number.isdecimal() or len(number) > 9 or int(number) < 1:
        raise InputError(f"--head {text}: a head is a block and a number from 1, such as dec.1.cross.1")
    return block, int(number) - 1


def check_head(head: tuple[str, int], trace: "Trace") -> None:
    """Make sure that an attention block in a trace has a head of this number; other blocks are not checked."""
    block, number = head
    attention = f"{block}.attn"
    if attention in trace and number >= (heads := len(trace[attention])):
        raise InputError(f"--head {block}.{number + 1}: {block} has {counted(heads, 'heads')}, counted from 1")


def sample_of(model: str, data: Path | None) -> tuple[list[str], list[str]]:
    """Return sentences and references of a model's test set, to measure heads on; empty lists if it is not here."""
    recipe = recipe_of(model)
    if data is None and (recipe.data.modality != "text" or not FAMILIES[recipe.model.family].pairs):
        return [], []
    try:
        test = recipe_test_set(recipe, data)
    except InputError as error:
        if data:
            raise
        why = f"which --data FOLDER would find: {error}" if recipe.data.test else "as the recipe names no data.test"
        typer.echo(f"heedful: there is no test set to weigh heads on, {why}", err=True)
        return [], []
    [sources], [references] = test.source.values(), test.references.values()
    return sources[:SAMPLE], references[:SAMPLE]


def serve(models: list[str], opening: Opening, host: str, port: int, open_browser: bool, device: str) -> None:
    try:
        from heedful.server.application import LOOPBACK, application
        from heedful.server.engine import Engine
        from heedful.server.inspector.inspections import OpenedFile
        from heedful.server.inspector.routes import inspector_routes
        from heedful.server.limits import Server
    except ModuleNotFoundError as error:
        raise InputError(f'the live page needs {error.name}: pip install "heedful[serve]"') from error
    from heedful.inspector.page import Page
    from heedful.machine import prepare_process

    page = Page.built()
    with listen(host, port) as listening:
        prepare_process()
        engine = Engine.load(models, device)
        token = None if host in LOOPBACK else secrets.token_urlsafe(24)
        address = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}/"
        address += f"?token={token}" * bool(token) + f"#/answer?{urlencode(opening.address)}" * bool(opening.address)

        def ready() -> None:
            typer.echo(f"looking into {', '.join(models)} at {address}   (Ctrl-C ends it)", err=True)
            if open_browser:  # not on the event loop: a browser in the terminal returns when it is closed
                Thread(target=webbrowser.open, args=(address,), daemon=True).start()

        opened = OpenedFile(*opening.file) if opening.file else None
        app = application(inspector_routes(engine, page, opening.sample, opened), token, ready)
        Server(app, engine.close).run(sockets=[listening])


def listen(host: str, port: int) -> socket.socket:
    if not host.strip():
        raise InputError("--host is empty; give an address, such as 127.0.0.1")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        host.encode("idna")
        return socket.create_server((host, port), family=family)
    except UnicodeError as error:
        raise InputError(f"--host {host}: no host can have this name; give an address, such as 127.0.0.1") from error
    except OSError as error:
        raise RunError(
            f"cannot listen at {host}, port {port}: {error.strerror or error}; --port 0 takes a free one"
        ) from error


def attention(
    text: Annotated[str, typer.Argument(help="Sentence in the source language; or the file of a picture or sound.")],
    model: Annotated[
        str, typer.Option(help="Folder of a model or of a run, or the name of a built-in model.")
    ] = "en-de",
    out: Annotated[Path, typer.Option(help="Picture to write: .png or .svg.")] = Path("attention.png"),
    target: Annotated[
        str | None, typer.Option(help="Translation or caption to draw.", show_default="the model's own")
    ] = None,
    layer: Annotated[
        int | None, typer.Option(help="Decoder layer, from 1.", show_default="the layer with the sharpest attention")
    ] = None,
    head: Annotated[
        int | None, typer.Option(help="Attention head, from 1.", show_default="the mean of all heads")
    ] = None,
    device: Device = "auto",
    _force: Force = False,
) -> None:
    """Draw cross-attention: which source words, parts of a picture or times of a sound each target word looks at."""
    check_picture(out, "--out")
    from heedful.checkpoint import load_model
    from heedful.inspector.capture.forward_inputs import user_input
    from heedful.inspector.capture.sources import PictureInput
    from heedful.inspector.measures.attention import cross_attention, view
    from heedful.inspector.plots import HeatMap, PictureMaps, draw, draw_maps
    from heedful.predictors.captioner import Captioner
    from heedful.predictors.transcriber import Transcriber
    from heedful.predictors.translator import Translator

    loaded = load_model(model, device)
    kinds = {"text": Translator, "image": Captioner, "audio": Transcriber, "video": Captioner}
    subject: Writer = loaded.use_as(kinds[loaded.recipe.data.modality])
    weighed = cross_attention(subject, user_input(subject, text), target)
    weights, title = view(weighed.by_word(), weighed.layers, layer, head)
    subtitle = f"model {model}"
    if isinstance(weighed.media, PictureInput):
        maps = weighed.media.laid(weights.numpy())
        subtitle += "\nframed: the largest weight, in brackets"
        pictures = PictureMaps(weighed.media.pixels, maps, weighed.target.words, title, subtitle)
        drawing = partial(draw_maps, pictures)
    else:
        heat_map = HeatMap(weights.numpy(), weighed.source.words, weighed.target.words, title, subtitle)
        drawing = partial(draw, heat_map)
    draw_picture(out, drawing, "Words", title)
    typer.echo(subject.tokenizers.target.decode(weighed.target.ids))
