"""`heedful search` and `heedful encode`: the nearest texts or pictures, and their vectors, with a model of vectors."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, cast

import typer

from heedful.cli.files import ReadFiles, SkipBad, check_bad_files, named_files
from heedful.cli.inputs import input_file, input_lines, progress_of, texts_or_stdin, warning_if_unknown
from heedful.cli.options import STDIN, Device, Force, InputForm, Model, Output, SourceField, TextsOrTable
from heedful.cli.output import check_output, json_of_files, writing_results
from heedful.cli.pictures import check_folder, queries
from heedful.cli.tables import (
    GivenTexts,
    check_columns,
    check_json_output,
    columns_of,
    given_texts,
    is_table_output,
    one_cell,
    one_line,
    table_texts,
    wanted_texts,
    whole_lines,
    writing_answers,
)
from heedful.errors import InputError
from heedful.progress import show_progress

if TYPE_CHECKING:
    import numpy as np

    from heedful.checkpoint import LoadedModel
    from heedful.data.readers.labelled import WholeRow
    from heedful.data.readers.text_columns import WantedTexts
    from heedful.predictors.image_text_retriever import ImageTextRetriever
    from heedful.predictors.retriever import Hit, Retriever

    Searcher = Retriever | ImageTextRetriever

QUERY = "query"  # the column of a line of input, where a table is written
VECTORS = (".jsonl", ".npy", ".npz")


@dataclass(frozen=True)
class Corpus:
    """Corpus to search: the lines of a file, a column of a table, or the pictures below a folder.

    Attributes:
        path: the file or folder.
        items: the texts, or the paths of the pictures.
        lines: the number of the line of each text, from 1; None for pictures.
        digest: a digest of all that the vectors of the corpus depend on, beside the model.
    """

    path: Path
    items: Sequence[Any]
    lines: Sequence[int] | None
    digest: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a search hit in a table."""
        return ("rank", "score", "file") if self.lines is None else ("rank", "score", "line", "text")

    def found(self, hit: "Hit") -> dict[str, object]:
        """Describe a search hit for JSON: the text and its line, or the file of the picture."""
        return {"file": str(hit.text)} if self.lines is None else {"line": self.lines[hit.number], "text": hit.text}


@dataclass(frozen=True)
class Queries:
    """Inputs of a command that become vectors: the rows, and what gives the text or the picture of a row."""

    given: GivenTexts
    item: "Callable[[WholeRow], Any]"


def search(
    model: Model,
    corpus: Annotated[
        Path,
        typer.Option(
            help="File with a text on each line, or a table, plain, .gz, .bz2 or .xz; or a folder of pictures."
        ),
    ],
    query: Annotated[
        list[str] | None,
        typer.Argument(help="Texts or pictures to search for.", show_default=STDIN, callback=texts_or_stdin),
    ] = None,
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
    check_json_output(output, as_json=as_json)
    source = input_file(query, source, input_form)
    check_columns(source, "--input", source_field)
    check_columns(corpus, "--corpus", target_field)
    loaded, searcher = prepare(model, device)
    check_folder(corpus, model, reads_pictures=reads_pictures(loaded))
    searched = corpus_of(loaded, corpus, target_field)
    whole, vectors = searched.items, vectors_of(loaded, searcher, searched, index)
    searched, vectors = readable(searched, vectors)
    asked = queries_of(loaded, query, source, source_field)
    given, columns = asked.given, () if as_json else searched.columns
    each = min(count, len(searched.items)) if columns and is_table_output(output) else 1
    unread: list[str] = []
    with (
        progress_of("searching", query, source, output, "queries", count=given.count) as progress,
        writing_answers(output, source, given, columns, each=each) as results,
    ):
        separator = ""
        for row in progress.over(given.rows):
            sought = asked.item(row)
            try:
                [hits] = searcher.search([sought], searched.items, count, vectors)
            except InputError as error:
                if not isinstance(sought, Path):
                    raise
                unread.append(str(error))
                continue
            if results.table:
                for rank, hit in enumerate(hits, start=1):
                    results.write(row, "", {"rank": rank, "score": hit.score, **searched.found(hit)})
            else:
                results.write(row, json_line(hits, searched) if as_json else separator + table(hits), {})
            separator = "\n"
    kept = set(searched.items)
    lost = [f"{item}: not searched" for item in whole if item not in kept] if len(kept) < len(whole) else []
    check_bad_files([*unread, *lost], len(whole) + len(unread), skip_bad=skip_bad)


def encode(
    model: Model,
    text: Annotated[
        list[str] | None, typer.Argument(help="Texts to encode.", show_default=STDIN, callback=texts_or_stdin)
    ] = None,
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
    from heedful.predictors.retriever import Retriever

    check_output(output, source)
    if output and output.suffix not in VECTORS:
        raise InputError(f"--output {output}: the name of a file of vectors ends in {', '.join(VECTORS)}")
    source = input_file(text, source, input_form)
    check_columns(source, "--input", source_field)
    loaded, searcher = prepare(model, device)
    asked = queries_of(loaded, text, source, source_field)
    given = asked.given
    items: Iterable[Any] = map(asked.item, given.rows)
    unread: list[str] = []
    write_array = ARRAYS.get(output.suffix) if output else None
    with (
        progress_of("encoding", text, source, output, f"{given.unit}s", count=given.count) as progress,
        writing_results(output, source, unit=given.unit) as results,
    ):
        read = items if isinstance(searcher, Retriever) else readable_items(items, searcher, unread)
        if write_array:
            write_array(results.stream, searcher.encode(read, progress.advance))
        else:
            for vector in searcher.encode_lines(read, progress.advance):
                results.write(json.dumps(vector.tolist()))
    check_bad_files(unread, given.count or len(unread), skip_bad=skip_bad)


def readable_items(items: Iterable[str | Path], searcher: "ImageTextRetriever", unread: list[str]) -> Iterator[Any]:
    """Yield texts, and pictures decoded; the errors of pictures that cannot be read are added to `unread`."""
    for item in items:
        try:
            yield searcher.read(item)
        except InputError as error:
            if not isinstance(item, Path):
                raise
            unread.append(str(error))


def write_npy(stream: BinaryIO, vectors: "np.ndarray") -> None:
    """Write text vectors to a stream as a .npy file of NumPy."""
    import numpy as np

    np.save(stream, vectors, allow_pickle=False)


def write_npz(stream: BinaryIO, vectors: "np.ndarray") -> None:
    """Write text vectors to a stream as a .npz archive of NumPy with one array, "vectors"."""
    import numpy as np

    np.savez(stream, vectors=vectors)


ARRAYS = {".npy": write_npy, ".npz": write_npz}


VECTORS_FROM = (
    'Vectors come from a model for the task "ranking": train one on pairs of texts that belong together (see '
    "docs/how-to/ranking-summaries-dialogue.md), or convert a sentence encoder (heedful convert FOLDER --task ranking)"
    '. Those of pictures come from a model for the task "image_text_retrieval"'
)


def prepare(model: str, device: str) -> tuple["LoadedModel", "Searcher"]:
    """Load a model of vectors as a retriever of texts, or of pictures and texts.

    Raises:
        InputError: there is no such model or device, or the model is for another task; the message gives a remedy.
    """
    from heedful.checkpoint import load_model
    from heedful.machine import prepare_process
    from heedful.predictors.image_text_retriever import ImageTextRetriever
    from heedful.predictors.retriever import Retriever

    prepare_process()
    loaded = load_model(model, device)
    try:
        return loaded, loaded.use_as(ImageTextRetriever if reads_pictures(loaded) else Retriever)
    except InputError as error:
        raise InputError(f"{error}. {VECTORS_FROM}") from error


def reads_pictures(loaded: "LoadedModel") -> bool:
    """True if a model reads pictures."""
    return loaded.recipe.data.modality == "image"


def queries_of(
    loaded: "LoadedModel", texts: list[str] | None, source: Path | None, source_field: str | None
) -> Queries:
    """Return the inputs that become vectors: texts or, if the model reads them, names of pictures, or rows of a file.

    Raises:
        InputError: the file cannot be read, or there is no such picture.
    """
    from heedful.data.readers.labelled import is_table

    tokenizer, columns = loaded.tokenizers.source, columns_of(loaded.recipe)
    if reads_pictures(loaded) and not (source and is_table(source)):
        return with_pictures(loaded, texts, source)
    field = columns.target_field if reads_pictures(loaded) else columns.source_field
    wanted = wanted_texts(loaded.recipe, source_field, fields=(field,))
    given = given_texts(whole_lines(input_lines(texts, source)), source, wanted)
    rows = warning_if_unknown(given.rows, tokenizer, lambda row: row.texts[0])
    columns_of_rows = (QUERY,) if given.unit == "line" else given.columns
    return Queries(replace(given, rows=rows, columns=columns_of_rows), lambda row: row.texts[0])


def with_pictures(loaded: "LoadedModel", texts: list[str] | None, source: Path | None) -> Queries:
    """Return the texts and pictures among the inputs of a command; each picture below a folder is one of them.

    Raises:
        InputError: the file of inputs cannot be read, or there is no such picture.
    """
    from heedful.data.readers.labelled import WholeRow

    items: list[str | Path] = list(queries(texts or input_lines(None, source), loaded.recipe))
    rows = (WholeRow(number, (str(item),), (str(item),)) for number, item in enumerate(items, start=1))
    known = warning_if_unknown(
        rows, loaded.tokenizers.source, lambda row: "" if isinstance(items[row.line - 1], Path) else row.texts[0]
    )
    return Queries(GivenTexts(known, len(items), "line", (QUERY,)), lambda row: items[row.line - 1])


def corpus_of(loaded: "LoadedModel", path: Path, named: str | None) -> Corpus:
    """Read the corpus to search: the pictures below a folder, the lines of a file, or a column of a table.

    Raises:
        InputError: the file cannot be read, or holds no text; or the folder holds no picture.
    """
    from heedful.data.preparation.prepared_data import files_digest, text_digest
    from heedful.data.readers.columns import PAIR_NAMES
    from heedful.data.readers.labelled import is_table
    from heedful.data.readers.text_columns import WantedTexts

    if path.is_dir():
        pictures = named_files([str(path)], loaded.recipe)
        return Corpus(path, pictures, None, files_digest(pictures, path))
    columns, digest = columns_of(loaded.recipe), text_digest(path)
    wanted = WantedTexts(
        (columns.target_field,),
        (named,),
        target=columns.source_field,
        language=loaded.recipe.data.target_language,
        usual=PAIR_NAMES,
        option="--target-field",
    )
    lines, texts = zip(*read_corpus(path, wanted).items(), strict=True)
    field = named or columns.target_field
    return Corpus(path, texts, lines, f"{digest}, {field}" if is_table(path) else digest)


def read_corpus(corpus: Path, wanted: "WantedTexts") -> dict[int, str]:
    """Read the texts of a corpus, a text file or a column of a table, by line number from 1, without blank texts.

    Raises:
        InputError: the file cannot be read, or has no text.
    """
    from heedful.data.readers.files import read_lines
    from heedful.data.readers.labelled import is_table

    rows = table_texts(corpus, wanted).rows if is_table(corpus) else whole_lines(read_lines(corpus))
    every = {row.line: row.texts[0] for row in rows}
    texts = {number: line for number, line in every.items() if line.strip()}
    if not texts:
        raise InputError(f"{corpus}: has no text to search; give a file with a text on each line")
    if blank := len(every) - len(texts):
        typer.echo(f"heedful: {corpus}: {blank:,} blank {'line is' if blank == 1 else 'lines are'} left out", err=True)
    return texts


def vectors_of(loaded: "LoadedModel", searcher: "Searcher", corpus: Corpus, index: Path | None) -> "np.ndarray":
    """Return the vectors of a corpus, read from its index file or computed and written to that file, if named.

    The vector of a picture that cannot be read, which is told of on standard error, is not a number.

    Raises:
        InputError: the index was made with another model or corpus, or is no index.
    """
    from heedful.data.preparation.prepared_data import text_digest
    from heedful.predictors.retriever import read_index, write_index

    made_of = {"model": text_digest(loaded.path / "manifest.json"), "corpus": corpus.digest}
    if index and index.exists():
        vectors = read_index(index, made_of)
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
        write_index(index, vectors, made_of)
    return vectors


def vectors_of_pictures(
    searcher: "ImageTextRetriever", pictures: Sequence[Path], done: Callable[[int], object]
) -> "np.ndarray":
    """Encode pictures as vectors, one for each; that of a picture that cannot be read is not a number."""
    import numpy as np

    files = ReadFiles(pictures, searcher.read)
    found = list(searcher.vectors(files, done))
    vectors = np.full((len(pictures), searcher.width), np.nan, np.float32)
    places = {path: place for place, path in enumerate(pictures)}
    for path, vector in zip(files.read, found, strict=True):
        vectors[places[path]] = vector
    for problem in files.bad:
        typer.echo(f"heedful: {problem}", err=True)
    return vectors


def readable(corpus: Corpus, vectors: "np.ndarray") -> tuple[Corpus, "np.ndarray"]:
    """Leave out of a corpus, and of its vectors, what could not be read.

    Raises:
        InputError: nothing is left.
    """
    import numpy as np

    places = np.flatnonzero(~np.isnan(vectors).any(axis=1))
    if not len(places):
        raise InputError(f"{corpus.path}: none of its files can be read")
    if len(places) == len(vectors):
        return corpus, vectors
    return replace(corpus, items=[corpus.items[place] for place in places.tolist()]), vectors[places]


def shown(found: str | Path) -> str:
    """Write a text that is found, or the name of a file, on one line."""
    return one_line(found) if isinstance(found, str) else one_cell(str(found))


def table(hits: list["Hit"]) -> str:
    """Format the search hits for a query as lines: rank, score, text."""
    return "\n".join(f"{rank:>3}  {hit.score:7.4f}  {shown(hit.text)}" for rank, hit in enumerate(hits, start=1))


def json_line(hits: list["Hit"], corpus: Corpus) -> str:
    """Format the search hits for a query in a corpus as a line of JSON."""
    found = [{"rank": rank, "score": hit.score, **corpus.found(hit)} for rank, hit in enumerate(hits, start=1)]
    return json_of_files(found)
