"""`heedful search` and `heedful encode`: the nearest texts or pictures, and their vectors, with a model of vectors."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from os.path import isdir, isfile  # False, and no error, for a sentence that is too long for a name
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from heedful.cli.answering import TextCommand, load
from heedful.cli.files import ReadFiles, SkipBad, check_bad_files, named_files
from heedful.cli.inputs import (
    TextRows,
    check_columns,
    columns_of,
    input_lines,
    line_rows,
    table_rows,
    texts_argument,
    wanted_texts,
    warning_if_unknown,
)
from heedful.cli.options import Device, Force, InputForm, Model, Output, SourceField, TextsOrTable
from heedful.cli.output import (
    check_output,
    is_table_output,
    json_of_files,
    one_cell,
    one_line,
)
from heedful.data.preparation.prepared_data import files_digest, text_digest
from heedful.data.readers.columns import PAIR_NAMES
from heedful.data.readers.files import read_lines
from heedful.data.readers.labelled import WholeRow, is_table
from heedful.data.readers.text_columns import WantedTexts
from heedful.errors import InputError
from heedful.progress import show_progress

if TYPE_CHECKING:
    import numpy as np

    from heedful.checkpoint import LoadedModel
    from heedful.predictors.image_text_retriever import ImageTextRetriever
    from heedful.predictors.retriever import Hit, Retriever

    Searcher = Retriever | ImageTextRetriever

QUERY = "query"  # the column of a line of input, where a table is written
VECTORS = (".jsonl", ".npy", ".npz")
VECTORS_FROM = (
    'Vectors come from a model for the task "ranking": train one on pairs of texts that belong together (see '
    "docs/how-to/ranking-summaries-dialogue.md), or convert a sentence encoder (heedful convert FOLDER --task ranking)"
    '. Those of pictures come from a model for the task "image_text_retrieval"'
)


@dataclass(frozen=True)
class Corpus:
    """Corpus to search: the lines of a file, a column of a table, or the pictures below a folder."""

    path: Path
    items: Sequence[Any]  # the texts, or the paths of the pictures
    lines: Sequence[int] | None  # number of the line of each text, from 1; None for pictures
    digest: str  # of all that the vectors of the corpus depend on, next to the model

    @property
    def columns(self) -> tuple[str, ...]:
        return ("rank", "score", "file") if self.lines is None else ("rank", "score", "line", "text")

    def fields(self, rank: int, hit: "Hit") -> dict[str, object]:
        """Describe a search hit for a table or JSON: with the text and its line, or the file of the picture."""
        source = {"file": str(hit.text)} if self.lines is None else {"line": self.lines[hit.number], "text": hit.text}
        return {"rank": rank, "score": hit.score, **source}


def search(
    model: Model,
    corpus: Annotated[
        Path,
        typer.Option(
            help="File with a text on each line, or a table, plain, .gz, .bz2 or .xz; or a folder of pictures."
        ),
    ],
    query: Annotated[list[str] | None, texts_argument("Texts or pictures to search for.")] = None,
    source: TextsOrTable = None,
    input_form: InputForm = None,
    source_field: SourceField = None,
    target_field: Annotated[
        str | None,
        typer.Option(
            help="Column or key of the texts to search, if the corpus is a table.",
            show_default="the recipe's target_field",
        ),
    ] = None,
    output: Output = None,
    count: Annotated[int, typer.Option(min=1, help="Texts or pictures to find for each query.")] = 10,
    index: Annotated[
        Path | None,
        typer.Option(help="File with the vectors of the corpus; it is written the first time and read from then on."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write a JSON list for each query.")] = False,
    skip_bad: SkipBad = False,
    device: Device = "auto",
    _force: Force = False,
) -> None:
    r"""Find the texts or pictures nearest in meaning to a query, with a model trained for ranking or retrieval.

    Each line of the output is a rank, the cosine similarity of query and text,
    and the text; a blank line stands between two queries. Blank lines of the
    corpus are left out. With --json a line is
    [{"rank", "score", "line", "text"}, ...], where "line" is the number of the
    line in the corpus. Tables are .tsv, .csv and .jsonl files, of which one
    column is read.

    A model for image_text_retrieval also takes the name of a picture, or of a
    folder of pictures, as a query, and searches the pictures below a corpus
    that is a folder: the output has their names, in JSON as "file".

    An output file whose name ends in .csv, .tsv or .jsonl is a table with a
    row for each text that is found: the columns of the query's row, and rank,
    score, line and text. On a line of other output, a line feed inside a text
    is written as \n, a carriage return as \r, and a backslash before n, r or a
    backslash as \\.
    """
    check_output(output, source, corpus, index)
    check_output(index, source, corpus, option="--index", kept=True)
    command = TextCommand("searching", query, source, input_form, output, source_field, as_json=as_json)
    check_columns(corpus, "--corpus", target_field)
    loaded, searcher = prepare(model, device)
    if corpus.is_dir() and not reads_pictures(loaded):
        raise InputError(
            f"--corpus {corpus}: is a folder, and {model} searches texts; name a file with a text on each line, or a "
            'model for the task "image_text_retrieval", which searches pictures'
        )
    whole = corpus_of(loaded, corpus, target_field)
    subset, vectors = readable(whole, vectors_of(loaded, searcher, whole, index))
    rows, item = queries_of(loaded, command, source_field)
    is_table = not as_json and is_table_output(output)
    each = min(count, len(subset.items)) if is_table else 1
    problems: list[str] = []
    with command.writing(rows, subset.columns, "queries", each) as (progress, results):
        separator = ""
        for row in progress.over(rows.rows):
            question = item(row)
            try:
                [hits] = searcher.search([question], subset.items, count, vectors)
            except InputError as error:
                if not isinstance(question, Path):
                    raise
                problems.append(str(error))
                continue
            if is_table:
                for rank, hit in enumerate(hits, start=1):
                    results.write_answer(row.cells, "", subset.fields(rank, hit))
            elif as_json:
                results.write(json_of_files([subset.fields(rank, hit) for rank, hit in enumerate(hits, start=1)]))
            else:
                results.write(separator + "\n".join(hit_line(rank, hit) for rank, hit in enumerate(hits, start=1)))
            separator = "\n"
    items = set(subset.items)
    missing = [f"{item}: not searched" for item in whole.items if item not in items]
    check_bad_files([*problems, *missing], len(whole.items) + len(problems), skip_bad=skip_bad)


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
) -> None:
    """Write the vector of each text, for search or clustering, with a model that was trained for ranking or retrieval.

    The ending of the output file selects the format: .jsonl has a JSON list on
    each line; .npy is a NumPy array with a row for each text; .npz holds this
    array under the name "vectors".

    A model for image_text_retrieval also takes names of pictures, and of
    folders of pictures, instead of texts. A picture that cannot be read has no
    vector, and is named at the end.
    """
    import numpy as np

    from heedful.predictors.retriever import Retriever

    command = TextCommand("encoding", text, source, input_form, output, source_field)
    if output and output.suffix not in VECTORS:
        raise InputError(f"--output {output}: the name of a file of vectors ends in {', '.join(VECTORS)}")
    loaded, searcher = prepare(model, device)
    rows, item = queries_of(loaded, command, source_field)
    problems: list[str] = []
    with command.writing(rows, ()) as (progress, results):
        items: Iterable[Any] = map(item, rows.rows)
        if not isinstance(searcher, Retriever):
            items = readable_items(items, searcher, problems)
        if output and output.suffix == ".npy":
            np.save(results.stream, searcher.encode(items, progress.advance), allow_pickle=False)
        elif output and output.suffix == ".npz":
            np.savez(results.stream, vectors=searcher.encode(items, progress.advance))
        else:
            for vector in searcher.encode_lines(items, progress.advance):
                results.write(json.dumps(vector.tolist()))
    check_bad_files(problems, rows.count or len(problems), skip_bad=skip_bad)


def prepare(model: str, device: str) -> tuple["LoadedModel", "Searcher"]:
    """Load a model of vectors as a retriever of texts, or of pictures and texts."""
    from heedful.predictors.image_text_retriever import ImageTextRetriever
    from heedful.predictors.retriever import Retriever

    loaded = load(model, device)
    try:
        return loaded, loaded.use_as(ImageTextRetriever if reads_pictures(loaded) else Retriever)
    except InputError as error:
        raise InputError(f"{error}. {VECTORS_FROM}") from error


def reads_pictures(loaded: "LoadedModel") -> bool:
    return loaded.recipe.data.modality == "image"


def queries_of(
    loaded: "LoadedModel", command: TextCommand, source_field: str | None
) -> "tuple[TextRows, Callable[[WholeRow], Any]]":
    """Return the inputs that become vectors, and what gives the text or the picture of a row.

    They are texts, rows of a table or, if the model reads them, names of pictures and of folders of pictures.
    """
    tokenizer, columns = loaded.tokenizers.source, columns_of(loaded.recipe)
    if not reads_pictures(loaded) or (command.source and is_table(command.source)):
        field = columns.target_field if reads_pictures(loaded) else columns.source_field
        rows = command.rows(command.lines(), wanted_texts(loaded.recipe, source_field, fields=(field,)))
        texts = warning_if_unknown(rows.rows, tokenizer, lambda row: row.texts[0])
        names = (QUERY,) if rows.unit == "line" else rows.columns
        return replace(rows, rows=texts, columns=names), lambda row: row.texts[0]

    items: list[str | Path] = []
    for text in command.texts or input_lines(None, command.source):
        if looks_like_a_picture(text) or isdir(text):
            items += named_files([text], loaded.recipe)
        else:
            items.append(text)
    item_rows = (WholeRow(number, (str(item),), (str(item),)) for number, item in enumerate(items, start=1))
    texts = warning_if_unknown(
        item_rows, tokenizer, lambda row: "" if isinstance(items[row.line - 1], Path) else row.texts[0]
    )
    return TextRows(texts, len(items), "line", (QUERY,)), lambda row: items[row.line - 1]


def looks_like_a_picture(text: str) -> bool:
    """True if a query is the name of a picture, be it there or not: by its ending, and as a path or without spaces."""
    from heedful.media.images import ENDINGS

    if not text.lower().endswith(ENDINGS):
        return text.startswith(("./", "../", "/", "~/")) and not any(map(str.isspace, text))
    return isfile(text) or "/" in text or os.sep in text or not any(map(str.isspace, text))


def readable_items(items: Iterable[str | Path], searcher: "ImageTextRetriever", problems: list[str]) -> Iterator[Any]:
    """Yield texts, and pictures decoded; the errors of pictures that cannot be read are added to `problems`."""
    for item in items:
        try:
            yield searcher.read(item)
        except InputError as error:
            if not isinstance(item, Path):
                raise
            problems.append(str(error))


def corpus_of(loaded: "LoadedModel", path: Path, column: str | None) -> Corpus:
    """Read the corpus to search: the pictures below a folder, the lines of a file, or a column of a table."""
    if path.is_dir():
        pictures = named_files([str(path)], loaded.recipe)
        return Corpus(path, pictures, None, files_digest(pictures, path))
    columns, digest = columns_of(loaded.recipe), text_digest(path)
    inputs = WantedTexts(
        (columns.target_field,),
        (column,),
        target=columns.source_field,
        language=loaded.recipe.data.target_language,
        usual=PAIR_NAMES,
        option="--target-field",
    )
    lines, texts = zip(*read_corpus(path, inputs).items(), strict=True)
    field = column or columns.target_field
    return Corpus(path, texts, lines, f"{digest}, {field}" if is_table(path) else digest)


def read_corpus(corpus: Path, wanted: "WantedTexts") -> dict[int, str]:
    """Read the texts of a corpus, a text file or a column of a table, by line number from 1, without blank texts."""
    rows = table_rows(corpus, wanted) if is_table(corpus) else line_rows(read_lines(corpus), corpus)
    every = {row.line: row.texts[0] for row in rows.rows}
    texts = {number: line for number, line in every.items() if line.strip()}
    if not texts:
        raise InputError(f"{corpus}: has no text to search; give a file with a text on each line")
    if blank := len(every) - len(texts):
        typer.echo(f"heedful: {corpus}: {blank:,} blank {'line is' if blank == 1 else 'lines are'} left out", err=True)
    return texts


def vectors_of(loaded: "LoadedModel", searcher: "Searcher", corpus: Corpus, index: Path | None) -> "np.ndarray":
    """Return the vectors of a corpus, read from its index file or computed and written to that file, if named.

    The vector of a picture that cannot be read, which is reported on standard error, is not a number.
    """
    from heedful.predictors.retriever import read_index, write_index

    ingredients = {"model": text_digest(loaded.path / "manifest.json"), "corpus": corpus.digest}
    if index and index.exists():
        vectors = read_index(index, ingredients)
        if len(vectors) != len(corpus.items):
            raise InputError(
                f"{index}: was made with the blank lines of {corpus.path}; delete it, and it is made again without them"
            )
        return vectors
    unit = "pictures" if corpus.lines is None else "lines"
    with show_progress(f"encoding {corpus.path}", unit, len(corpus.items)) as progress:
        if corpus.lines is None:
            vectors = vectors_of_pictures(cast("ImageTextRetriever", searcher), corpus.items, progress.advance)
        else:
            vectors = searcher.encode(corpus.items, progress.advance)
    if index:
        write_index(index, vectors, ingredients)
    return vectors


def vectors_of_pictures(
    searcher: "ImageTextRetriever", pictures: Sequence[Path], done: Callable[[int], object]
) -> "np.ndarray":
    """Encode pictures as vectors, one for each; that of a picture that cannot be read is not a number."""
    import numpy as np

    files = ReadFiles(pictures, searcher.read)
    encodings = list(searcher.vectors(files, done))
    vectors = np.full((len(pictures), searcher.width), np.nan, np.float32)
    places = {path: place for place, path in enumerate(pictures)}
    for path, vector in zip(files.read, encodings, strict=True):
        vectors[places[path]] = vector
    for problem in files.bad:
        typer.echo(f"heedful: {problem}", err=True)
    return vectors


def readable(corpus: Corpus, vectors: "np.ndarray") -> tuple[Corpus, "np.ndarray"]:
    """Leave out of a corpus, and of its vectors, what could not be read."""
    import numpy as np

    places = np.flatnonzero(~np.isnan(vectors).any(axis=1))
    if not len(places):
        raise InputError(f"{corpus.path}: none of its files can be read")
    if len(places) == len(vectors):
        return corpus, vectors
    return replace(corpus, items=[corpus.items[place] for place in places.tolist()]), vectors[places]


def hit_line(rank: int, hit: "Hit") -> str:
    text = one_line(hit.text) if isinstance(hit.text, str) else one_cell(str(hit.text))
    return f"{rank:>3}  {hit.score:7.4f}  {text}"
