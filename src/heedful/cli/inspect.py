"""`heedful inspect`: the inspector, as a web page or one HTML file; `heedful attention`: attention heat maps."""

import secrets
import socket
import webbrowser
from functools import partial
from os.path import isfile  # returns False, not an error, for a text that is too long for a name
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, NamedTuple
from urllib.parse import urlencode

import typer

from heedful.cli.answering import recipe_of
from heedful.cli.evaluate import recipe_test_set
from heedful.cli.options import Beam, Device, Force, FurtherModels, folder_to_read
from heedful.cli.output import check_output, check_plot, draw_plot, warn, writing
from heedful.config.families import FAMILIES
from heedful.errors import InputError, RunError
from heedful.progress import show_progress
from heedful.storage.paths import unreadable
from heedful.wording import counted, shown_name

if TYPE_CHECKING:
    from heedful.inspector.capture.sources import Writer

INPUTS = {
    "text": ("a text", "'A dog barks.'"),
    "image": ("an image file", "dog.jpg"),
    "audio": ("an audio file", "speech.wav"),
    "video": ("a video file", "clip.mp4"),
}
PAGE_ENDINGS = (".html", ".htm")
SAMPLE = 200  # sentences for measuring the importance of heads


def inspect(
    model: Annotated[
        str, typer.Argument(help="Model or run folder, the name of a bundled model, or hf:OWNER/NAME.")
    ] = "en-de",
    text: Annotated[
        str | None,
        typer.Argument(help="Input text of the model, or an image or audio file; required with --out."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="HTML file to write, which needs no server; without it, a live page is served.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            help="Output to inspect instead of the model's own: a translation or a continuation. For a model that "
            "reads text pairs: the second text.",
            show_default="the model's own output",
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(help="Reference translation; the page shows at which step beam search drops it. Only with --out."),
    ] = None,
    others: FurtherModels = None,
    beam: Beam = None,
    head: Annotated[
        str | None,
        typer.Option(
            help="Attention head whose computation is saved with all values. Only with --out. dec.1.cross.3 is "
            "head 3 of the cross-attention of decoder layer 2: blocks are counted from 0, heads from 1.",
            show_default="head 1 of the last block",
        ),
    ] = None,
    beside: Annotated[
        list[str] | None, typer.Option(help="Another model to select on the live page. Can be repeated.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder with the recipe's data files; the importance of heads is measured on the test set.",
            show_default="as in training",
            callback=folder_to_read,
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on; for all but 127.0.0.1, localhost and ::1, visitors need the printed token."
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 selects a free one.")] = 8642,
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
    device: Device = "auto",
    _force: Force = False,
) -> None:
    """Look inside a model in the browser: its attention heads, its computation step by step, and its beam search."""
    if out is None:
        if reference or head:
            option = "--reference" if reference else "--head"
            raise InputError(f"{option} is for --out FILE; on the live page, use its own control instead")
        from heedful.text.tokenizer import require_utf8

        file = opened_file(model, text)
        settings = {"text": None if file else text, "target": target, "beam": None if beam is None else str(beam)}
        query = {name: value for name, value in settings.items() if value}
        for value in query.values():
            require_utf8(value)
        first = FirstPage(query, file, sample_of(model, data))
        ensemble = list(map(served_name, [model, *(others or [])]))
        systems = [ensemble, *([served_name(each)] for each in beside or [])]
        serve(systems, first, host, port, open_browser, device)
        return
    if beside or data:
        option = "--beside" if beside else "--data"
        raise InputError(f"{option} is for the live page, but --out writes one inspection of one model; leave it out")
    if text is None:
        kind, example = INPUTS[recipe_of(model).data.modality]
        raise InputError(f"--out needs {kind} to inspect: heedful inspect {model} {example} --out {out}")
    reject_file(model, text)
    check_page(out, model, {"--reference": reference, "--beam": beam}, target)
    from heedful.inspector.look import Question
    from heedful.inspector.page import view

    question = Question(text=text, target=target, reference=reference, beam=beam)
    block_and_head = head_of(head) if head else None
    with show_progress(f"inspecting {model}"):
        page = view([model, *(others or [])], question, block_and_head, device)
        if block_and_head:
            block, number = block_and_head
            attention = f"{block}.attn"
            sublayers = [name.removesuffix(".attn") for name in page.trace if name.endswith(".attn")]
            if sublayers and block not in sublayers:
                available = ", ".join(sublayers)
                raise InputError(f"--head {head}: {block} is not an attention sublayer; choose one of {available}")
            if attention in page.trace and number >= (heads := len(page.trace[attention])):
                raise InputError(f"--head {head}: {block} has {counted(heads, 'heads')}, counted from 1")
        html = page.html
    with writing(out) as stream:
        stream.write(html.encode())
    typer.echo(f"{out}: open it in a browser; it needs no internet", err=True)


def served_name(model: str) -> str:
    """Return the name for serving a model: `.` and `..` would vanish from a URL, so they become absolute paths."""
    return str(Path(model).resolve()) if model in (".", "..") else model


class FirstPage(NamedTuple):
    """Initial content of the live page: the text or file to inspect, and a sample for measuring attention heads."""

    query: dict[str, str]  # text, target and beam
    file: tuple[str, bytes] | None  # name and content of an image or audio file; None for a text
    sample: tuple[list[str], list[str]]  # sentences and references for measuring heads


def opened_file(model: str, text: str | None) -> tuple[str, bytes] | None:
    """Return the name and content of the file that the live page opens with; None for a text model or no input."""
    if text is not None:
        reject_file(model, text)
    if text is None or recipe_of(model).data.modality == "text":
        return None
    try:
        return shown_name(Path(text)), Path(text).read_bytes()
    except OSError as error:
        raise InputError(unreadable(Path(text), error)) from error


def reject_file(model: str, text: str) -> None:
    """Reject the name of a file where the model reads a text, which the user would otherwise see analysed as one."""
    if recipe_of(model).data.modality == "text" and isfile(text):
        raise InputError(f"{text} is a file, but {model} reads one text here; give the text itself")


def check_page(out: Path, model: str, search: dict[str, object], target: str | None) -> None:
    """Reject a file that is not a page, an empty target, and options of a beam search that is not run."""
    if out.suffix.lower() not in PAGE_ENDINGS:
        raise InputError(f"--out {out}: the name of a page must end in {' or '.join(PAGE_ENDINGS)}")
    reject_empty_target(target)
    for option, value in search.items():
        if value is None:
            continue
        if target is not None:
            raise InputError(f"{option} is for the beam search, which --target replaces; give only one of them")
        if not FAMILIES[recipe_of(model).model.family].pairs:
            raise InputError(f"{option} is for models with a beam search, but {model} has none; leave it out")
    check_output(out, option="--out")


def reject_empty_target(target: str | None) -> None:
    if target is not None and not target.strip():
        raise InputError("--target is empty; give the output to look at, or leave it out for the model's own")


def head_of(text: str) -> tuple[str, int]:
    """Parse the value of `--head`, such as dec.1.cross.3, which counts heads from 1; return the head counted from 0."""
    block, _, number = text.rpartition(".")
    if block.count(".") != 2 or not number.isdecimal() or len(number) > 9 or int(number) < 1:
        raise InputError(f"--head {text}: must be a block and a number from 1, such as dec.1.cross.1")
    return block, int(number) - 1


def sample_of(model: str, data: Path | None) -> tuple[list[str], list[str]]:
    """Return sentences and references from a model's test set, to measure heads; empty lists if that is impossible."""
    recipe = recipe_of(model)
    if data is None and (recipe.data.modality != "text" or not FAMILIES[recipe.model.family].pairs):
        return [], []
    try:
        test = recipe_test_set(model, recipe, data)
    except InputError as error:
        if data:
            raise
        why = f": {error}" if recipe.data.test else ": the recipe has no data.test"
        warn(f"the importance of heads cannot be measured without a test set{why}")
        return [], []
    [sources], [references] = test.source.values(), test.references.values()
    return sources[:SAMPLE], references[:SAMPLE]


def serve(systems: list[list[str]], first: FirstPage, host: str, port: int, open_browser: bool, device: str) -> None:
    try:
        from heedful.server.application import LOOPBACK, application
        from heedful.server.engine import Engine
        from heedful.server.inspector.inspection_handlers import OpenedFile
        from heedful.server.inspector.routes import inspector_routes
        from heedful.server.limits import Server
    except ModuleNotFoundError as error:
        raise InputError(f'the live page needs {error.name}: pip install "heedful[serve]"') from error
    from heedful.inspector.page import Page
    from heedful.machine import prepare_process

    page = Page.built()
    with listen(host, port) as listening:
        prepare_process()
        engine = Engine.load(systems, device)
        token = None if host in LOOPBACK else secrets.token_urlsafe(24)
        address = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}/"
        address += f"?token={token}" if token else ""
        address += f"#/answer?{urlencode(first.query)}" if first.query else ""

        def ready() -> None:
            typer.echo(f"inspecting {', '.join(engine.models)} at {address}   (press Ctrl-C to stop)", err=True)
            if open_browser:  # in a thread, because a browser in the terminal returns only when it is closed
                Thread(target=webbrowser.open, args=(address,), daemon=True).start()

        opened = OpenedFile(*first.file) if first.file else None
        app = application(inspector_routes(engine, page, first.sample, opened), token, ready)
        Server(app, engine.close).run(sockets=[listening])


def listen(host: str, port: int) -> socket.socket:
    if not host.strip():
        raise InputError("--host is empty; give an address, such as 127.0.0.1")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        host.encode("idna")
        return socket.create_server((host, port), family=family)
    except UnicodeError as error:
        raise InputError(f"--host {host}: not a valid host name; give an address, such as 127.0.0.1") from error
    except OSError as error:
        raise RunError(
            f"cannot listen on {host}, port {port}: {error.strerror or error}; --port 0 selects a free one"
        ) from error


def attention(
    text: Annotated[str, typer.Argument(help="Sentence in the source language; or an image or audio file.")],
    model: Annotated[
        str, typer.Option(help="Model or run folder, the name of a bundled model, or hf:OWNER/NAME.")
    ] = "en-de",
    out: Annotated[Path, typer.Option(help="Image file to write: .png or .svg.")] = Path("attention.png"),
    target: Annotated[
        str | None, typer.Option(help="Translation or caption to plot.", show_default="the model's own")
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
    """Plot cross-attention: which source words, image patches or audio frames each target word attends to."""
    check_plot(out, "--out")
    from heedful.checkpoint import load_model
    from heedful.inspector.capture.forward_inputs import user_input
    from heedful.inspector.capture.sources import ImageInput
    from heedful.inspector.measures.attention import cross_attention, view
    from heedful.inspector.plots import HeatMap, ImageMaps, draw, draw_maps
    from heedful.predictors.captioner import Captioner
    from heedful.predictors.transcriber import Transcriber
    from heedful.predictors.translator import Translator

    reject_file(model, text)
    reject_empty_target(target)
    loaded = load_model(model, device)
    kinds = {"text": Translator, "image": Captioner, "audio": Transcriber, "video": Captioner}
    subject: Writer = loaded.use_as(kinds[loaded.recipe.data.modality])
    alignment = cross_attention(subject, user_input(subject, text), target)
    weights, title = view(alignment.by_word(), alignment.layers, layer, head)
    subtitle = f"model {model}"
    if isinstance(alignment.media, ImageInput):
        maps = alignment.media.on_patches(weights.numpy())
        subtitle += "\nframe: the patch with the largest weight; in brackets: that weight"
        drawing = partial(draw_maps, ImageMaps(alignment.media.pixels, maps, alignment.target.words, title, subtitle))
    else:
        heat_map = HeatMap(weights.numpy(), alignment.source.words, alignment.target.words, title, subtitle)
        drawing = partial(draw, heat_map)
    draw_plot(out, drawing, "Words", title)
    typer.echo(subject.tokenizers.target.decode(alignment.target.ids))
