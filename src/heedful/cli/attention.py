"""`heedful attention`: draw the cross-attention of a translation or caption as heat maps."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import Device, Force
from heedful.cli.output import check_output, warn_of_missing_glyphs
from heedful.errors import InputError, RunError

if TYPE_CHECKING:
    from heedful.checkpoint import LoadedModel
    from heedful.inspector.capture.sources import Writer


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
    try:
        from heedful.inspector.plots import FORMATS, HeatMap, draw
    except ModuleNotFoundError as error:
        raise InputError(f'drawing needs {error.name}: pip install "heedful[plot]"') from error
    if out.suffix not in FORMATS:
        raise InputError(f"--out {out}: a picture's name ends in {' or '.join(FORMATS)}")
    check_output(out, option="--out")

    from heedful.checkpoint import load_model
    from heedful.inspector.capture.forward_inputs import tokenizers_of, user_input
    from heedful.inspector.capture.sources import PictureInput
    from heedful.inspector.measures.attention import cross_attention, view
    from heedful.inspector.plots import PictureMaps, draw_maps
    from heedful.storage.written_files import note_written

    subject = writer_of(load_model(model, device))
    seen = cross_attention(subject, user_input(subject, text), target)
    weights, title = view(seen.by_word(), seen.layers, layer, head)
    subtitle = f"model {model}"
    try:
        if isinstance(seen.media, PictureInput):
            maps = seen.media.laid(weights.numpy())
            subtitle += "\nframed: the largest weight, in brackets"
            missing = draw_maps(PictureMaps(seen.media.pixels, maps, seen.target.words, title, subtitle), out)
        else:
            missing = draw(HeatMap(weights.numpy(), seen.source.words, seen.target.words, title, subtitle), out)
        note_written(out)
    except OSError as error:
        raise RunError(f"cannot write {out}: {error.strerror or error}") from error
    typer.echo(tokenizers_of(subject).target.decode(seen.target.ids))
    typer.echo(f"{out}: {title}", err=True)
    warn_of_missing_glyphs("Words", missing)


def writer_of(loaded: "LoadedModel") -> "Writer":
    """Return the translator, captioner or transcriber of a loaded model."""
    from heedful.predictors.captioner import Captioner
    from heedful.predictors.transcriber import Transcriber
    from heedful.predictors.translator import Translator

    kinds = {"text": Translator, "image": Captioner, "audio": Transcriber, "video": Captioner}
    return loaded.use_as(kinds[loaded.recipe.data.modality])
