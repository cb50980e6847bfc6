"""`heedful caption`: write a text about each picture with an encoder-decoder."""

from pathlib import Path
from typing import Annotated, Any

import typer

from heedful.cli.answering import (
    AnswerForm,
    answer_files,
    changed,
    check_n_best,
    load,
    settings,
    warn_of_cut_outputs,
)
from heedful.cli.files import FileOptions, ReadFiles, SkipBad, Truncated, named_files
from heedful.cli.options import Beam, Device, Force, MaxExtra, Model, NBest, Output
from heedful.cli.output import check_json_output, check_output, one_line
from heedful.cli.translate import alternative_fields


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
    from heedful.predictors.captioner import Captioner
    from heedful.predictors.outputs import CutOutputs

    check_n_best(n_best, "caption", as_json=as_json)
    check_json_output(output, as_json=as_json)
    check_output(output, *map(Path, files))
    loaded = FileOptions(skip_bad, truncated).applied(model, load(model, device))
    captioner = loaded.use_as(Captioner)
    captioner.config = changed(loaded, "decode", settings(beam=beam, n_best=n_best, max_extra=max_extra)).decode
    pictures = ReadFiles(named_files(files, loaded.recipe), captioner.reader.decoded)
    check_output(output, *pictures.files)

    tokenizer = captioner.tokenizers.target
    form = AnswerForm[Any](
        columns=("caption",),
        line=lambda captions: one_line(captions[0].text),
        cells=lambda captions: {"caption": captions[0].text},
        json=lambda captions: {"captions": [alternative_fields(one, tokenizer) for one in captions]},
    )
    cut = CutOutputs()
    answer_files(
        "captioning",
        pictures,
        captioner.alternatives(pictures),
        form,
        output,
        note=lambda _, captions: cut.count(captions[0].hypothesis.complete),
        as_json=as_json,
    )
    warn_of_cut_outputs(cut, captioner.config, captioner.model.max_target_positions())
    pictures.check(skip_bad=skip_bad)
