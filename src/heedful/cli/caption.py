"""`heedful caption`: write a caption for each image with an encoder-decoder."""

from pathlib import Path
from typing import Annotated, Any

import typer

from heedful.cli.answering import AnswerForm, answer_files, check_n_best, load, settings, warn_of_cut_outputs
from heedful.cli.files import FileOptions, ReadFiles, SkipBad, TruncatedImages, named_files
from heedful.cli.options import Beam, Device, Force, MaxExtra, Model, NBest, Output
from heedful.cli.output import check_output, one_line
from heedful.cli.translate import alternative_fields
from heedful.config.schema import DecodeConfig


def caption(
    files: Annotated[
        list[str],
        typer.Argument(help="Image files, image folders, tables of image files, or - for names on standard input."),
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
    truncated: TruncatedImages = False,
    device: Device = "auto",
    _force: Force = False,
) -> None:
    r"""Write a caption for each image; one output line per image: the file, a tab, and the caption.

    A folder stands for all images in it and its subfolders, and a table (.csv,
    .tsv, .jsonl) for the images that it lists. An output file whose name ends
    in .csv, .tsv or .jsonl is a table with the columns "file" and "caption". In
    plain-text output, a tab or line break in a name or a text is written as \t,
    \n or \r. Files that cannot be read are listed at the end; the others are
    captioned. With --json, each line is {"file": "...", "captions": [...]} with
    the best caption first, each {"text", "score", "pieces", "token_scores",
    "complete"}, as in `heedful translate --json`.
    """
    from heedful.predictors.captioner import Captioner
    from heedful.predictors.outputs import CutOutputs

    check_n_best(n_best, "caption", as_json=as_json)
    check_output(output, *map(Path, files), as_json=as_json)
    search = settings(locals(), DecodeConfig)
    loaded = FileOptions(skip_bad, truncated).applied(model, load(model, device))
    captioner = loaded.use_as(Captioner).with_options(**search)
    images = ReadFiles(named_files(files, loaded.recipe), captioner.reader.decoded)
    check_output(output, *images.files)

    tokenizer = captioner.tokenizers.target
    form = AnswerForm[Any](
        columns=("caption",),
        line=lambda captions: one_line(captions[0].text),
        cells=lambda captions: {"caption": captions[0].text},
        json=lambda captions: {"captions": [alternative_fields(each, tokenizer) for each in captions]},
    )
    cut = CutOutputs()
    answer_files(
        "captioning",
        images,
        captioner.alternatives(images),
        form,
        output,
        note=lambda _, captions: cut.count(captions[0].hypothesis.complete),
        as_json=as_json,
    )
    warn_of_cut_outputs(cut, captioner)
    images.check(skip_bad=skip_bad)
