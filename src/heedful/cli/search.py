"""`heedful search` and `heedful encode`: semantic search, and vectors of texts, with a ranking model."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, NamedTuple

import typer

from heedful.cli.inputs import input_lines, progress_of, warning_if_unknown
from heedful.cli.options import STDIN, Device, Model, Output, SourceField, TextsOrTable
from heedful.cli.output import check_output, writing_results
from heedful.cli.tables import asked_of, check_columns, columns_of, table_rows, whole_lines
from heedful.errors import InputError
from heedful.progress import show_progress

if TYPE_CHECKING:
    import numpy as np

    from heedful.checkpoint import LoadedModel
    from heedful.predict.retriever import Hit, Retriever

VECTORS = (".jsonl", ".npy", ".npz")


class Corpus(NamedTuple):
    """Corpus to search: the file, the column to read if the file is a table, and the texts."""

    path: Path
    field: str
    texts: Sequence[str]


def search(
    model: Model,
    corpus: Annotated[Path, typer.Option(help="File to search, with a text on each line, or a table; plain or .gz.")],
    query: Annotated[list[str] | None, typer.Argument(help="Texts to search for.", show_default=STDIN)] = None,
    source: Annotated[
        Path | None, typer.Option("--input", help="File with a query on each line, or a table; plain or .gz.")
    ] = None,
    source_field: Annotated[
        str | None,
        typer.Option(
            help="Column or key of the queries, if their file is a table.", show_default="the recipe's source_field"
        ),
    ] = None,
    target_field: Annotated[
        str | None,
        typer.Option(
            help="Column or key of the texts to search, if the corpus is a table.",
            show_default="the recipe's target_field",
        ),
    ] = None,
    output: Output = None,
    count: Annotated[int, typer.Option(min=1, help="Texts to find for each query.")] = 10,
    index: Annotated[
        Path | None,
        typer.Option(help="File with the vectors of the corpus; it is written the first time and read from then on."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write a JSON list for each query.")] = False,
    device: Device = "auto",
) -> None:
    """Find the lines of a file that are nearest in meaning to a query, with a model that was trained for ranking.

    Each line of the output is a rank, the cosine similarity of query and text,
    and the text; a blank line stands between two queries. Blank lines of the
    corpus are left out. With --json a line is
    [{"rank", "score", "line", "text"}, ...], where "line" is the number of the
    line in the corpus. Tables are .tsv, .csv and .jsonl files, of which one
    column is read.
    """
    if query and source:
        raise InputError("there are queries and --input; give one of them")
    check_output(output, source, corpus, index)
    check_output(index, source, corpus, option="--index")
    check_columns(source, "--input", source_field)
    check_columns(corpus, "--corpus", target_field)
    loaded, searcher = prepare(model, device)
    columns = columns_of(loaded.recipe)
    field = target_field or columns.target_field
    numbers, texts = zip(*read_corpus(corpus, field).items(), strict=True)
    vectors = vectors_of(loaded, searcher, Corpus(corpus, field, texts), index)
    asked = asked_of(whole_lines(input_lines(query, source)), source, [source_field or columns.source_field])
    queries = warning_if_unknown((row.texts[0] for row in asked.rows), loaded.tokenizers.source)
    with (
        progress_of("searching", query, source, output, "queries", count=asked.count) as progress,
        writing_results(output, source, unit=asked.unit) as results,
    ):
        for number, sought in enumerate(progress.over(queries)):
            [hits] = searcher.search([sought], texts, count, vectors)
            separator = "\n" if number else ""
            results.write(json_line(hits, numbers) if as_json else separator + table(hits))


def encode(
    model: Model,
    text: Annotated[list[str] | None, typer.Argument(help="Texts to encode.", show_default=STDIN)] = None,
    source: TextsOrTable = None,
    source_field: SourceField = None,
    output: Annotated[
        Path | None,
        typer.Option(help="File to write: .jsonl, .npy or .npz.", show_default="standard output, as .jsonl"),
    ] = None,
    device: Device = "auto",
) -> None:
    """Write the vector of each text, for search or clustering, with a model that was trained for ranking.

    The ending of the output file selects the format: .jsonl has a JSON list on
    each line; .npy is a NumPy array with a row for each text; .npz holds this
    array under the name "vectors".
    """
    check_output(output, source)
    if output and output.suffix not in VECTORS:
        raise InputError(f"--output {output}: the name of a file of vectors ends in {', '.join(VECTORS)}")
    check_columns(source, "--input", source_field)
    given = input_lines(text, source)
    loaded, searcher = prepare(model, device)
    asked = asked_of(whole_lines(given), source, [source_field or columns_of(loaded.recipe).source_field])
    texts = warning_if_unknown((row.texts[0] for row in asked.rows), loaded.tokenizers.source)
    write_array = ARRAYS.get(output.suffix) if output else None
    with (
        progress_of("encoding", text, source, output, f"{asked.unit}s", count=asked.count) as progress,
        writing_results(output, source, unit=asked.unit) as results,
    ):
        if write_array:
            write_array(results.stream, searcher.encode(texts, progress.advance))
            return
        for vector in searcher.encode_lines(texts, progress.advance):
            results.write(json.dumps(vector.tolist()))


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
)


def prepare(model: str, device: str) -> tuple["LoadedModel", "Retriever"]:
    """Load a ranking model as a retriever of texts.

    Raises:
        InputError: there is no such model or device, or the model is for another task; the message gives a remedy.
    """
    from heedful.checkpoint import load_model
    from heedful.machine import prepare_process
    from heedful.predict.retriever import Retriever

    prepare_process()
    loaded = load_model(model, device)
    try:
        return loaded, loaded.use_as(Retriever)
    except InputError as error:
        raise InputError(f"{error}. {VECTORS_FROM}") from error


def read_corpus(corpus: Path, field: str) -> dict[int, str]:
    """Read the texts of a corpus, a text file or a column of a table, by line number from 1, without blank texts.

    Raises:
        InputError: the file cannot be read, or has no text.
    """
    from heedful.data.files import read_lines
    from heedful.data.unlabelled import is_table

    rows = table_rows(corpus, [field], "--target-field").rows if is_table(corpus) else whole_lines(read_lines(corpus))
    every = {row.line: row.texts[0] for row in rows}
    texts = {number: line for number, line in every.items() if line.strip()}
    if not texts:
        raise InputError(f"{corpus}: has no text to search; give a file with a text on each line")
    if blank := len(every) - len(texts):
        typer.echo(f"heedful: {corpus}: {blank:,} blank {'line is' if blank == 1 else 'lines are'} left out", err=True)
    return texts


def vectors_of(loaded: "LoadedModel", searcher: "Retriever", corpus: Corpus, index: Path | None) -> "np.ndarray":
    """Return the text vectors of a corpus, read from its index file or computed and written to that file, if named.

    Raises:
        InputError: the index was made with another model or corpus, or is no index.
    """
    from heedful.data.digest import text_digest
    from heedful.data.unlabelled import is_table
    from heedful.predict.vector_index import read_index, write_index

    digest = text_digest(corpus.path)
    made_of = {
        "model": text_digest(loaded.path / "manifest.json"),
        "corpus": f"{digest}, {corpus.field}" if is_table(corpus.path) else digest,
    }
    if index and index.exists():
        vectors = read_index(index, made_of)
        if len(vectors) != len(corpus.texts):
            raise InputError(
                f"{index}: was made with the blank lines of {corpus.path}; delete it, and it is made again without them"
            )
        return vectors
    with show_progress(f"encoding {corpus.path}", "lines", len(corpus.texts)) as progress:
        vectors = searcher.encode(corpus.texts, progress.advance)
    if index:
        write_index(index, vectors, made_of)
    return vectors


def table(hits: list["Hit"]) -> str:
    """Format the search hits for a query as lines: rank, score, text."""
    return "\n".join(f"{rank:>3}  {hit.score:7.4f}  {hit.text}" for rank, hit in enumerate(hits, start=1))


def json_line(hits: list["Hit"], numbers: Sequence[int]) -> str:
    """Format the search hits for a query as a line of JSON; `numbers` are the line numbers of all texts, from 1."""
    found = [
        {"rank": rank, "score": hit.score, "line": numbers[hit.number], "text": hit.text}
        for rank, hit in enumerate(hits, start=1)
    ]
    return json.dumps(found, ensure_ascii=False)
