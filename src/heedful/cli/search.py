"""`heedful search` and `heedful encode`: find the nearest texts or images, and write vectors of texts or images."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os.path import isdir, isfile  # these return False, not an error, for a text that is too long for a name
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from heedful.cli.answering import EMPTY, Notes, TextCommand, load, recipe_of
from heedful.cli.files import ReadFiles, SkipBad, check_bad_files, named_files
from heedful.cli.inputs import (
    TextRows,
    check_columns,
    columns_of,
    line_rows,
    table_rows,
    texts_argument,
    texts_of,
    warning_if_unknown,
)
from heedful.cli.options import Device, Engine, Force, InputForm, Model, Output, SourceField, TextsOrTable, Verbose
from heedful.cli.output import check_output, is_table_output, one_cell, one_line, to_json, warn
from heedful.config.schema import Recipe
from heedful.data.preparation.prepared_data import files_digest, text_digest
from heedful.data.readers.columns import PAIR_NAMES
from heedful.data.readers.files import read_lines
from heedful.data.readers.labelled import WholeRow, is_table
from heedful.errors import InputError
from heedful.progress import show_progress
from heedful.tasks import find_task
from heedful.wording import either

if TYPE_CHECKING:
    import numpy as np

    from heedful.checkpoint import LoadedModel
    from heedful.predictors.image_text_retriever import ImageTextRetriever
    from heedful.predictors.retriever import Hit, Retriever

QUERY_COLUMN = "query"  # name of the column for input lines, if the output is a table
VECTOR_ENDINGS = (".jsonl", ".npy", ".npz")
VECTORS_FROM = (
    'Text vectors need a model for the task "ranking": train one on pairs of related texts (see the page "Search, '
    'summaries and dialogue" of the documentation), or convert a sentence encoder (heedful convert FOLDER --task '
    'ranking --out MODEL). Image vectors need a model for the task "image_text_retrieval"'
)


@dataclass(frozen=True)
class Corpus:
    """Corpus to search: the lines of a file, a column of a table, or the images below a folder."""

    path: Path
    items: Sequence[Any]  # the texts, or the paths of the images
    lines: Sequence[int] | None  # line number of each text, from 1; None for images
    digest: str  # of everything that the vectors depend on besides the model

    @property
    def columns(self) -> tuple[str, ...]:
        return ("rank", "score", "file") if self.lines is None else ("rank", "score", "line", "text")

    def fields(self, rank: int, hit: "Hit") -> dict[str, object]:
        """Describe a search hit for a table or JSON: rank, score, and the text with its line or the image file."""
        source = {"file": str(hit.text)} if self.lines is None else {"line": self.lines[hit.number], "text": hit.text}
        return {"rank": rank, "score": hit.score, **source}


def search(
    model: Model,
    corpus: Annotated[
        Path,
        typer.Option(help="File with one text per line, or a table, plain, .gz, .bz2 or .xz; or a folder of images."),
    ],
    query: Annotated[list[str] | None, texts_argument("Texts or images to search for.")] = None,
    source: TextsOrTable = None,
    input_form: InputForm = None,
    source_field: SourceField = None,
    target_field: Annotated[
        str | None,
        typer.Option(
            help="Column or key of the texts to search, if the corpus is a table.",
            show_default="the recipe's target_field or, for a model for another task, its source_field",
        ),
    ] = None,
    output: Output = None,
    count: Annotated[int, typer.Option(min=1, help="Number of texts or images to find per query.")] = 10,
    index: Annotated[
        Path | None,
        typer.Option(help="File with the vectors of the corpus; written on first use, and read afterwards."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write a JSON list for each query.")] = False,
    skip_bad: SkipBad = False,
    device: Device = "auto",
    _force: Force = False,
) -> None:
    r"""Find the texts or images nearest in meaning to a query, with a model trained for ranking or retrieval.

    Each line of the output has a rank, the cosine similarity of query and text,
    and the text; a blank line separates queries. Blank lines in the corpus are
    skipped. With --json, each line is
    [{"rank", "score", "line", "text"}, ...], where "line" is the line number in
    the corpus. Tables are .tsv, .csv and .jsonl files, of which one column is
    read.

    With a model for image_text_retrieval, a query can also be an image file or
    a folder of images. The corpus can be a folder of images too; the output
    then has their file names, in JSON as "file".

    An output file whose name ends in .csv, .tsv or .jsonl is a table with one
    row per hit: the columns of the query's row, and rank, score, line and text.
    In plain-text output, a line feed inside a text is written as \n, a carriage
    return as \r, and a backslash before n, r or a backslash as \\.
    """
    import numpy as np

    check_output(output, source, corpus, index)
    check_output(index, source, corpus, option="--index", updates=True)
    searches_images = recipe_of(model).data.modality == "image"
    command = TextCommand(
        "searching", query, source, input_form, output, source_field, as_json=as_json, may_name_files=searches_images
    )
    check_columns(corpus, "--corpus", target_field)
    loaded, searcher = load_searcher(model, device)
    if corpus.is_dir() and not searches_images:
        raise InputError(
            f"--corpus {corpus}: is a folder, but {model} searches texts; give a file with one text per line, or use a "
            'model for the task "image_text_retrieval", which searches images'
        )
    whole = corpus_of(loaded, corpus, target_field)
    vectors = vectors_of(loaded, searcher, whole, index)
    indices = np.flatnonzero(~np.isnan(vectors).any(axis=1))  # of the items that could be read
    if not len(indices):
        raise InputError(f"{corpus}: none of its files can be read")
    subset = whole
    if len(indices) < len(vectors):
        subset, vectors = replace(whole, items=[whole.items[i] for i in indices.tolist()]), vectors[indices]
    rows, item = queries_of(searcher, command, source_field)
    is_table = not as_json and is_table_output(output)
    each = min(count, len(subset.items)) if is_table else 1
    bad: list[str] = []
    files = len(whole.items) if whole.lines is None else 0
    with command.writing(rows, subset.columns, "queries", each) as (progress, results):
        separator = ""
        for row in progress.over(rows.rows):
            query_item = item(row)
            files += isinstance(query_item, Path)
            try:
                hits = searcher.search(query_item, subset.items, count, vectors)
            except InputError as error:
                if not isinstance(query_item, Path):
                    raise
                bad.append(str(error))
                continue
            if is_table:
                for rank, hit in enumerate(hits, start=1):
                    results.write_answer(row.cells, "", subset.fields(rank, hit))
            elif as_json:
                results.write(to_json([subset.fields(rank, hit) for rank, hit in enumerate(hits, start=1)]))
            else:
                escape = one_line if subset.lines else one_cell
                lines = (f"{n:>3}  {hit.score:7.4f}  {escape(str(hit.text))}" for n, hit in enumerate(hits, start=1))
                results.write(separator + "\n".join(lines))
            separator = "\n"
    items = set(subset.items)
    bad += (f"{item}: not searched" for item in whole.items if item not in items)
    check_bad_files(bad, files, skip_bad=skip_bad)


def encode(
    model: Model,
    text: Annotated[list[str] | None, texts_argument("Texts to encode.")] = None,
    source: TextsOrTable = None,
    input_form: InputForm = None,
    source_field: SourceField = None,
    output: Annotated[
        Path | None,
        typer.Option(help="File to write: .jsonl, .npy or .npz.", show_default="standard output, as .jsonl"),
    ] = None,
    skip_bad: SkipBad = False,
    device: Device = "auto",
    _force: Force = False,
    engine: Engine = "auto",
    _verbose: Verbose = False,
) -> None:
    """Write the vector of each text, for search or clustering, with a model trained for ranking or retrieval.

    The extension of the output file selects the format: .jsonl has a JSON list
    on each line; .npy is a NumPy array with one row per text; .npz contains
    this array under the name "vectors".

    A model for image_text_retrieval also takes image files, and folders of
    images, instead of texts. An image that cannot be read has no vector, and is
    listed at the end.
    """
    import numpy as np

    searches_images = recipe_of(model).data.modality == "image"
    command = TextCommand("encoding", text, source, input_form, output, source_field, may_name_files=searches_images)
    if output and output.suffix not in VECTOR_ENDINGS:
        raise InputError(f"--output {output}: the name of a vector file must end in {either(VECTOR_ENDINGS)}")
    searcher = load_encoder(model, device, engine)
    rows, item = queries_of(searcher, command, source_field)
    bad, files, notes, count = [], 0, Notes(), 0

    def noted(row: WholeRow) -> Any:
        nonlocal count
        text, count = item(row), count + 1
        notes.add(EMPTY, f"line {row.line:,}", isinstance(text, str) and not text.strip())
        return text

    with command.writing(rows, ()) as (progress, results):
        items: Any = map(noted, rows.rows)
        if searches_images:
            items = ReadFiles(list(items), cast("ImageTextRetriever", searcher).read)
            bad, files = items.bad, sum(isinstance(one, Path) for one in items.files)
        if output and output.suffix == ".npy":
            np.save(results.stream, searcher.encode(items, progress.advance), allow_pickle=False)
        elif output and output.suffix == ".npz":
            np.savez(results.stream, vectors=searcher.encode(items, progress.advance))
        else:
            for vector in searcher.encode_lines(items, progress.advance):
                results.write(json.dumps(vector.tolist()))
    notes.warn(count)
    check_bad_files(bad, files, skip_bad=skip_bad)


def load_encoder(model: str, device: str, engine: str) -> "Retriever | ImageTextRetriever":
    from heedful.convert.engine import open_predictor
    from heedful.predictors.ctranslate2_retriever import CTranslate2Retriever

    return open_predictor(CTranslate2Retriever, model, engine, device) or load_searcher(model, device)[1]


def load_searcher(model: str, device: str) -> "tuple[LoadedModel, Retriever | ImageTextRetriever]":
    """Load an embedding model as a retriever of texts, or of images and texts."""
    from heedful.predictors.image_text_retriever import ImageTextRetriever
    from heedful.predictors.retriever import Retriever

    loaded = load(model, device)
    try:
        return loaded, loaded.use_as(ImageTextRetriever if loaded.recipe.data.modality == "image" else Retriever)
    except InputError as error:
        raise InputError(f"{error}. {VECTORS_FROM}") from error


def queries_of(
    searcher: "Retriever | ImageTextRetriever", command: TextCommand, source_field: str | None
) -> "tuple[TextRows, Callable[[WholeRow], Any]]":
    """Return the inputs to encode, and a function from a row to its text or the path of its image.

    The inputs are texts, table rows or, if the model reads images, image files and folders of images.
    """
    recipe = searcher.recipe or Recipe()
    columns = columns_of(recipe)
    reads_images = recipe.data.modality == "image"
    if not reads_images or (command.source and is_table(command.source)):
        field = columns.target_field if reads_images else columns.source_field
        rows = command.rows(texts_of(recipe, source_field, fields=(field,)))
        texts = warning_if_unknown(rows.rows, searcher.tokenizer, lambda row: row.texts[0])
        names = (QUERY_COLUMN,) if rows.unit == "line" else rows.columns
        return replace(rows, rows=texts, columns=names), lambda row: row.texts[0]

    items: list[str | Path] = []
    for text in command.lines:
        if looks_like_image(text) or isdir(text):
            items += named_files([text], recipe)
        else:
            items.append(text)
    item_rows = (WholeRow(number, (str(item),), (str(item),)) for number, item in enumerate(items, start=1))
    texts = warning_if_unknown(
        item_rows, searcher.tokenizer, lambda row: "" if isinstance(items[row.line - 1], Path) else row.texts[0]
    )
    return TextRows(texts, len(items), "line", (QUERY_COLUMN,)), lambda row: items[row.line - 1]


def looks_like_image(text: str) -> bool:
    """Return True if a query is meant as the path of an image, which need not exist.

    Text with the extension of an image is a path if the file exists, or if the text has a slash or has no spaces. Other
    text is a path only if it starts with a folder such as "./" and has no spaces.
    """
    from heedful.media.images import ENDINGS

    if not text.lower().endswith(ENDINGS):
        return text.startswith(("./", "../", "/", "~/")) and not any(map(str.isspace, text))
    return isfile(text) or "/" in text or os.sep in text or not any(map(str.isspace, text))


def corpus_of(loaded: "LoadedModel", path: Path, column: str | None) -> Corpus:
    """Read the corpus to search: the images below a folder, or the lines or a column of a file, except blank ones."""
    if path.is_dir():
        images = named_files([str(path)], loaded.recipe)
        return Corpus(path, images, None, files_digest(images, path))
    columns, digest = columns_of(loaded.recipe), text_digest(path)
    if is_table(path):
        request = replace(texts_of(loaded.recipe, column), option="--target-field")
        # A model for other tasks, such as a classifier, has no column of texts to search besides those that it reads.
        if find_task(loaded.recipe.task).spec.command == "heedful search":
            request = replace(
                request,
                fields=(columns.target_field,),
                target=columns.source_field,
                language=loaded.recipe.data.target_language,
                usual=PAIR_NAMES,
            )
        digest += f", {column or request.fields[0]}"
        rows = table_rows(path, request)
    else:
        rows = line_rows(read_lines(path), path)
    texts, blank = {}, 0
    for row in rows.rows:
        if row.texts[0].strip():
            texts[row.line] = row.texts[0]
        else:
            blank += 1
    if not texts:
        raise InputError(f"{path}: has no text to search; give a file with one text per line")
    if blank:
        warn(f"{path}: {blank:,} blank {'line is' if blank == 1 else 'lines are'} left out")
    return Corpus(path, list(texts.values()), list(texts), digest)


def vectors_of(
    loaded: "LoadedModel", searcher: "Retriever | ImageTextRetriever", corpus: Corpus, index: Path | None
) -> "np.ndarray":
    """Return the vectors of a corpus: read from its index file or, if that does not exist, computed and written to it.

    The vector of an image that cannot be read is NaN, and the image is reported on standard error.
    """
    import numpy as np

    from heedful.predictors.retriever import read_index, write_index

    ingredients = {"model": text_digest(loaded.path / "manifest.json"), "corpus": corpus.digest}
    if index and index.exists():
        vectors = read_index(index, ingredients)
        if len(vectors) != len(corpus.items):
            raise InputError(
                f"{index}: was built with the blank lines of {corpus.path}; delete it to rebuild it without them"
            )
        return vectors
    unit = "images" if corpus.lines is None else "lines"
    with show_progress(f"encoding {corpus.path}", unit, len(corpus.items)) as progress:
        if corpus.lines is None:
            files = ReadFiles(corpus.items, (images := cast("ImageTextRetriever", searcher)).read)
            encoded = list(images.vectors(files, progress.advance))
            vectors = np.full((len(corpus.items), searcher.width), np.nan, np.float32)
            vectors[files.indices] = np.array(encoded, np.float32).reshape(-1, searcher.width)
            for problem in files.bad:
                warn(problem)
        else:
            vectors = searcher.encode(corpus.items, progress.advance)
    if index:
        write_index(index, vectors, ingredients)
    return vectors
