"""`heedful attention`: draw the cross-attention of a translation as a heat map."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import Device
from heedful.errors import InputError, RunError


def attention(
    text: Annotated[str, typer.Argument(help="Sentence in the source language of the model.")],
    model: Annotated[
        str, typer.Option(help="Folder of a model or of a run, or the name of a built-in model.")
    ] = "en-de",
    out: Annotated[Path, typer.Option(help="Picture to write: .png or .svg.")] = Path("attention.png"),
    target: Annotated[
        str | None, typer.Option(help="Translation to draw.", show_default="the model's translation")
    ] = None,
    layer: Annotated[
        int | None, typer.Option(help="Decoder layer, from 1.", show_default="the layer with the sharpest attention")
    ] = None,
    head: Annotated[
        int | None, typer.Option(help="Attention head, from 1.", show_default="the mean of all heads")
    ] = None,
    device: Device = "auto",
) -> None:
    """Draw the cross-attention of a translation: which source words each target word looks at."""
    try:
        from heedful.inspector.pictures.drawing import FORMATS, HeatMap, draw
    except ModuleNotFoundError as error:
        raise InputError(f'drawing needs {error.name}: pip install "heedful[plot]"') from error
    if out.suffix not in FORMATS:
        raise InputError(f"--out {out}: a picture's name ends in {' or '.join(FORMATS)}")
    if not out.parent.is_dir():
        raise InputError(f"--out {out}: there is no folder {out.parent}; make it first")

    from heedful.checkpoint import load_model
    from heedful.decode.translator import Translator
    from heedful.inspector.measures.attention import cross_attention, view

    translator = load_model(model, device).use_as(Translator)
    seen = cross_attention(translator, text, target)
    weights, title = view(seen.by_word(), layer, head)
    picture = HeatMap(weights.numpy(), seen.source.words, seen.target.words, title, f"model {model}")
    try:
        missing = draw(picture, out)
    except OSError as error:
        raise RunError(f"cannot write {out}: {error.strerror or error}") from error
    typer.echo(translator.tokenizers.target.decode(seen.target.ids))
    typer.echo(f"{out}: {title}", err=True)
    if missing:
        characters = " ".join(c if c.isprintable() else ascii(c).strip("'") for c in sorted(missing))
        typer.echo(
            f"Words with {characters} are drawn as their number, as no font here has these characters; install one "
            "that does, such as Noto Sans CJK",
            err=True,
        )
