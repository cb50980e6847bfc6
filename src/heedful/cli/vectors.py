"""`heedful vectors`: neighbours, analogies, similarities, pictures and files of word vectors."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.options import AsJson, Force
from heedful.cli.output import check_output, check_picture, writing
from heedful.errors import InputError
from heedful.storage.paths import no_file
from heedful.wording import counted

if TYPE_CHECKING:
    import numpy as np

    from heedful.data.word_vectors import Neighbour, VectorSpace, VectorTable
    from heedful.inspector.plots import WordMap

app = typer.Typer(
    name="vectors",
    help="Compare words by their vectors: neighbours, analogies, similarities, pictures and files.",
    no_args_is_help=True,
    add_completion=False,
)

Vectors = Annotated[
    str,
    typer.Option(
        "--model", help="Folder of a model or of a run, or a file of vectors: word2vec, GloVe or fastText .vec."
    ),
]
Count = Annotated[int, typer.Option(min=1, help="Words to find.")]


@app.command()
def nearest(
    words: Annotated[list[str], typer.Argument(help="Words to find the neighbours of.")],
    model: Vectors,
    count: Count = 10,
    as_json: AsJson = False,
) -> None:
    """Find the words that are nearest to a word by the cosine of their vectors.

    Each line of the output is the cosine and the word; a blank line stands
    between the neighbours of two words. With --json a line is
    {"word", "neighbours"} for each word.
    """
    space = space_of(model)
    for place, word in enumerate(words):
        neighbours = space.nearest(word, count)
        whole = {"word": word, "neighbours": [neighbour._asdict() for neighbour in neighbours]}
        text = ("\n" if place else "") + table(neighbours)
        typer.echo(json.dumps(whole, ensure_ascii=False) if as_json else text)


@app.command()
def analogy(
    model: Vectors,
    words: Annotated[
        tuple[str, str, str] | None,
        typer.Argument(metavar="A B C", help="Three words: find the words nearest to A - B + C.", show_default=False),
    ] = None,
    questions: Annotated[
        Path | None, typer.Option(help="File of analogies, four words on a line, with sections as in questions-words.")
    ] = None,
    among: Annotated[
        int | None, typer.Option(min=1, help="Answer from this many first words only.", show_default="all words")
    ] = None,
    count: Count = 10,
    as_json: AsJson = False,
) -> None:
    """Solve analogies such as king - man + woman, or measure the accuracy on a file of them.

    The words of the question are no answers. With --questions a line of the
    output is the share of right answers, how many questions were answered of
    how many, as all four words must have a vector, and the section.
    """
    if (words is None) == (questions is None):
        raise InputError("give either three words, such as king man woman, or --questions FILE")
    space = space_of(model)
    if words is not None:
        neighbours = space.analogy(*words, count, among)
        entries = [neighbour._asdict() for neighbour in neighbours]
        typer.echo(json.dumps(entries, ensure_ascii=False) if as_json else table(neighbours))
        return
    from heedful.metrics.word_vectors import AnalogyScore, analogy_scores, read_analogies

    scores = list(analogy_scores(space, read_analogies(questions or Path()), among))
    sums = (sum(getattr(score, name) for score in scores) for name in ("right", "covered", "questions"))
    lines = [
        {**vars(score), "accuracy": score_or_none(score.accuracy)} for score in [*scores, AnalogyScore("all", *sums)]
    ]
    report(lines, "{accuracy:6}  {covered:6,} of {questions:6,}  {section}", as_json)


@app.command()
def similarity(
    model: Vectors,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="A B", help="Two words to compare.", show_default=False)
    ] = None,
    pairs: Annotated[
        list[Path] | None,
        typer.Option(
            help="File of pairs of words with human judgements, as in WordSim-353, SimLex-999 or MEN. Can be repeated."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare two words by the cosine, or the vectors with human judgements of many pairs by rank correlation.

    With --pairs a line of the output is Spearman's correlation, how many pairs
    were compared of how many, as both words must have a vector, and the file.
    """
    if bool(words) == bool(pairs) or (words and len(words) != 2):
        raise InputError("give either two words or --pairs FILE")
    space = space_of(model)
    if words:
        cosine = space.similarity(*words)
        whole = {"words": words, "similarity": cosine}
        typer.echo(json.dumps(whole, ensure_ascii=False) if as_json else f"{cosine:.4f}")
        return
    from heedful.metrics.word_vectors import read_judgements, similarity_score

    scores = [(path, similarity_score(space, read_judgements(path))) for path in pairs or []]
    lines = [
        {**vars(score), "correlation": score_or_none(score.correlation), "file": str(path)} for path, score in scores
    ]
    report(lines, "{correlation:6}  {covered:6,} of {pairs:6,}  {file}", as_json)


@app.command()
def plot(
    model: Vectors,
    words: Annotated[
        list[str] | None, typer.Argument(help="Words to draw.", show_default="the first words of the vocabulary")
    ] = None,
    out: Annotated[Path, typer.Option(help="Picture to write: .png or .svg.")] = Path("vectors.png"),
    count: Annotated[int, typer.Option(min=3, help="Words to draw if none are given.")] = 100,
    method: Annotated[
        str, typer.Option(help="Method: pca (principal components, most variance) or tsne (t-SNE, neighbours).")
    ] = "pca",
    _force: Force = False,
) -> None:
    """Draw words in the plane, by the first two principal components of their vectors or by t-SNE."""
    check_picture(out, "--out")
    from heedful.inspector.plots import draw_words
    from heedful.storage.written_files import note_written

    if method not in METHODS:
        raise InputError(f"--method {method}: choose one of {', '.join(METHODS)}")
    space = space_of(model)
    words = words or space.words[:count]
    picture, remark = METHODS[method](space.directions[space.rows(words)], words, f"model {model}")
    missing = draw_words(picture, out)
    note_written(out)
    typer.echo(f"{out}: {counted(len(words), 'words')}, {remark}", err=True)
    if missing:
        typer.echo(f"No font here has {' '.join(sorted(missing))}; words with them are drawn as boxes", err=True)


def most_variance(vectors: "np.ndarray", words: Sequence[str], title: str) -> "tuple[WordMap, str]":
    """Place words by the first two principal components of their vectors, and tell how much these hold."""
    from heedful.inspector.measures.embeddings import principal_components
    from heedful.inspector.plots import WordMap

    components = principal_components(vectors)
    x, y = (
        f"principal component {number}: {share:.0%} of the variance"
        for number, share in enumerate(components.shares, 1)
    )
    return WordMap(components.places, words, (x, y), title), f"{sum(components.shares):.0%} of their variance"


def neighbours_together(vectors: "np.ndarray", words: Sequence[str], title: str) -> "tuple[WordMap, str]":
    try:
        from heedful.inspector.measures.embeddings import neighbour_map
    except ModuleNotFoundError as error:
        raise InputError('t-SNE needs scikit-learn: pip install "heedful[tsne]"') from error
    from heedful.inspector.plots import WordMap

    axes = ("t-SNE: near words are neighbours, far distances mean little", "")
    return WordMap(neighbour_map(vectors), words, axes, title), "neighbours together"


METHODS = {"pca": most_variance, "tsne": neighbours_together}


@app.command()
def export(
    model: Vectors,
    out: Annotated[Path, typer.Argument(help="File to write.")],
    form: Annotated[
        str, typer.Option("--format", help="Format: word2vec (text), binary (word2vec's), glove or fasttext (.vec).")
    ] = "word2vec",
    _force: Force = False,
) -> None:
    """Write the vectors of a model to a file that other programs read, or turn one format into another."""
    from heedful.data.word_vectors import writable, write_vectors
    from heedful.storage.written_files import note_written

    check_output(out, Path(model), option="OUT")
    whole = table_of(model)
    table = writable(whole)
    if left_out := len(whole.words) - len(table.words):
        typer.echo(f"heedful: {counted(left_out, 'words')} left out: a file of vectors is cut at spaces", err=True)
    write_vectors(out, table, form)
    note_written(out)
    typer.echo(f"{out}: {counted(len(table.words), 'vectors')} of size {table.matrix.shape[1]}")


def space_of(model: str) -> "VectorSpace":
    from heedful.data.word_vectors import VectorSpace

    return VectorSpace(table_of(model))


def table_of(model: str) -> "VectorTable":
    """Load the vectors of a model folder, or read those of a file."""
    if Path(model).is_file():
        from heedful.data.word_vectors import read_vectors

        return read_vectors(Path(model))
    if Path(model).suffix and not Path(model).exists():
        raise InputError(no_file(Path(model), "name a file of word vectors, or the folder of a model"))
    from heedful.checkpoint import load_model
    from heedful.predictors.word_vectors import WordVectors

    return load_model(model).use_as(WordVectors).table


def table(neighbours: "list[Neighbour]") -> str:
    return "\n".join(f"{similarity:7.4f}  {word}" for word, similarity in neighbours)


def score_or_none(value: float) -> float | None:
    """A score for JSON, which has no nan."""
    return None if math.isnan(value) else value


def report(lines: list[dict[str, Any]], form: str, as_json: bool) -> None:
    """Print results as JSON lines, or as lines of a form; a score has four digits, or is a dash if there is none."""
    with writing(None) as stream:
        for line in lines:
            cells = {key: f"{value:.4f}" if isinstance(value, float) else value for key, value in line.items()}
            cells = {key: "-" if value is None else value for key, value in cells.items()}
            text = json.dumps(line, ensure_ascii=False) if as_json else form.format(**cells)
            stream.write(f"{text}\n".encode())
