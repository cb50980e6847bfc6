"""`heedful caption`: write a text about each picture with an encoder-decoder."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.files import FileOptions, ReadFiles, SkipBad, Truncated, named_files
from heedful.cli.inputs import shows_bar
from heedful.cli.options import Beam, Device, Force, MaxExtra, Model, NBest, Output
from heedful.cli.output import check_output, json_of_files
from heedful.cli.tables import check_json_output, writing_file_answers
from heedful.cli.translate import alternative_fields, changed
from heedful.errors import InputError
from heedful.progress import show_progress


def caption(
    files: Annotated[
        list[str],
        typer.Argument(help="Pictures, folders of pictures, tables of them, or - for names on standard input."),
    ],
    model: Model,
    output: Output = None,
    beam: Beam = None,
    n_best: NBest = None,
    max_extra: MaxExtra = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write a JSON object for each file, with tokens and scores.")
    ] = False,
    skip_bad: SkipBad = False,
    truncated: Truncated = False,
    device: Device = "auto",
    _force: Force = False,
) -> None:
    r"""Write a caption for each picture; one line out: the file, a tab, and the text.

    A folder stands for all pictures below it, and a table (.csv, .tsv, .jsonl)
    for those that it names. An output file whose name ends in .csv, .tsv or
    .jsonl is a table with "file" and "caption". On a line of other output, a
    tab or a line end in a name or a text is written as \t, \n or \r. Files that
    cannot be read are named at the end,
    and the others are captioned. With --json a line is
    {"file": "...", "captions": [...]} with the best caption first, each {"text",
    "score", "pieces", "token_scores", "complete"}, as `heedful translate` gives
    them.
    """
    from heedful.checkpoint import load_model
    from heedful.machine import prepare_process
    from heedful.predictors.captioner import Captioner
    from heedful.predictors.outputs import CutOutputs

    if n_best and n_best > 1 and not as_json:
        raise InputError(f"--n-best {n_best}: plain output is one caption a line; add --json")
    check_json_output(output, as_json=as_json)
    check_output(output, *map(Path, files))
    prepare_process()
    loaded = FileOptions(skip_bad, truncated).applied(model, load_model(model, device))
    captioner = loaded.use_as(Captioner)
    options = {"beam": beam, "n_best": n_best, "max_extra": max_extra}
    chosen = {key: value for key, value in options.items() if value is not None}
    captioner.config = changed(loaded, "decode", chosen).decode
    read = ReadFiles(named_files(files, loaded.recipe), captioner.reader.decoded)
    check_output(output, *read.files)
    cut = CutOutputs()
    with (
        show_progress("captioning", "files", len(read.files), bar=shows_bar(output)) as progress,
        writing_file_answers(output, () if as_json else ("caption",)) as results,
    ):
        for number, found in enumerate(captioner.alternatives(read, progress.advance)):
            cut.count(found[0].hypothesis.complete)
            file, best = read.read[number], found[0].text
            if as_json:
                captions = [alternative_fields(one, captioner.tokenizers.target) for one in found]
                results.write_line(json_of_files({"file": str(file), "captions": captions}))
            else:
                results.write_file(file, best, {"caption": best})
    if line := cut.line(captioner.config, captioner.model.max_target_positions(), "--max-extra"):
        typer.echo(f"heedful: {line}", err=True)
    read.check(skip_bad=skip_bad)
