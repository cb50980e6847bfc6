"""`heedful fill` with a model of masked patches: pictures, what the model saw of them, and what it fills in."""

from pathlib import Path

import typer

from heedful.cli.files import FileOptions, ReadFiles, named_files
from heedful.cli.output import check_output, writing
from heedful.errors import InputError
from heedful.progress import show_progress
from heedful.wording import counted


def fill_pictures(model: str, names: list[str] | None, output: Path | None, device: str, reading: FileOptions) -> None:
    """Write a PNG with a row for each picture: as it is, with patches hidden, and with these filled in.

    Args:
        model: A model folder or a run.
        names: Pictures, or folders of pictures.
        output: The PNG to write.
        device: The device to compute on.
        reading: How files are read.

    Raises:
        InputError: No pictures are named, some cannot be read, or `output` is not the name of a PNG, or is one
            of the pictures.
    """
    import numpy as np

    from heedful.checkpoint import load_model
    from heedful.data.media.pictures import png
    from heedful.machine import prepare_process
    from heedful.predict.patch_filler import GAP, WHITE, PatchFiller

    prepare_process()
    loaded = reading.applied(model, load_model(model, device))
    filler = loaded.use_as(PatchFiller)
    if output is None or output.suffix.lower() != ".png":
        raise InputError("a model of masked patches fills in pictures: name the one to write, --output FILE.png")
    files = ReadFiles(named_files(names, loaded.recipe), filler.reader.decoded)
    check_output(output, *files.files)
    with show_progress("filling", "files", len(files.files)) as progress:
        rows = []
        for found in filler.answers(files):
            rows.append(np.pad(found.side_by_side(), ((0, GAP), (0, 0), (0, 0)), constant_values=WHITE))
            progress.advance()
    if rows:
        with writing(output) as stream:
            stream.write(png(np.concatenate(rows)))
        typer.echo(f"{output}: {counted(len(rows), 'pictures')}, each as it is, with hidden patches, and filled in")
    files.check(skip_bad=reading.skip_bad)
