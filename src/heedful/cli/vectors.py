"""`heedful vectors`: neighbours, analogies, similarities, plots and files of word vectors."""

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.options import AsJson, Force
from heedful.cli.output import check_output, check_plot, draw_plot, to_json, warn, writing
from heedful.errors import InputError
from heedful.storage.paths import no_file
from heedful.wording import counted

if TYPE_CHECKING:
    import numpy as np

    from heedful.data.word_vectors import Neighbour, VectorSpace, VectorTable
    from heedful.inspector.plots import WordMap

app = typer.Typer(
    name="vectors",
    help="Compare words by their vectors: neighbours, analogies, similarities, plots and files.",
    no_args_is_help=True,
    add_completion=False,
)

Vectors = Annotated[
    str,
    typer.Option("--model", help="Model or run folder, or a file of word vectors: word2vec, GloVe or fastText .vec."),
]
Count = Annotated[int, typer.Option(min=1, help="Number of words to show.")]


@app.command()
def nearest(
    words: Annotated[list[str], typer.Argument(help="Words to find the neighbours of.")],
    model: Vectors,
    count: Count = 10,
    as_json: AsJson = False,
) -> None:
    """Find the words that are nearest to a word by cosine similarity.

    Each line of the output has the cosine similarity and the neighbour; a blank
    line separates the neighbours of different words. With --json, each line is
    {"word", "neighbours"} for one word.
    """
    space = space_of(model)
    for index, word in enumerate(words):
        neighbours = space.nearest(word, count)
        facts = {"word": word, "neighbours": [neighbour._asdict() for neighbour in neighbours]}
        typer.echo(to_json(facts) if as_json else "\n" * bool(index) + neighbour_lines(neighbours))


@app.command()
def analogy(
    model: Vectors,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="A B C", help="Three words: find the words nearest to A - B + C.", show_default=False),
    ] = None,
    questions: Annotated[
        Path | None, typer.Option(help="File of analogies, four words per line, with sections as in questions-words.")
    ] = None,
    among: Annotated[
        int | None,
        typer.Option(min=1, help="Only the first N words of the vocabulary can be answers.", show_default="all words"),
    ] = None,
    count: Count = 10,
    as_json: AsJson = False,
) -> None:
    """Solve analogies such as king - man + woman, or measure the accuracy on a file of them.

    The words of a question are excluded from its answers. With --questions,
    each line of the output has the accuracy, the number of questions covered
    (all four words must have a vector), the total number of questions, and the
    section.
    """
    if bool(words) == (questions is not None):
        raise InputError("give either three words, such as king man woman, or --questions FILE")
    if words and len(words) != 3:
        raise InputError(f"an analogy needs three words, A B C, but got {len(words)}; give three, or --questions FILE")
    space = space_of(model)
    if words:
        first, second, third = words
        neighbours = space.analogy(first, second, third, count, among)
        entries = [neighbour._asdict() for neighbour in neighbours]
        typer.echo(to_json(entries) if as_json else neighbour_lines(neighbours))
        return
    from heedful.metrics.word_vectors import AnalogyScore, analogy_scores, read_analogies

    scores = list(analogy_scores(space, read_analogies(questions or Path()), among))
    sums = (sum(getattr(score, name) for score in scores) for name in ("right", "covered", "questions"))
    lines = [{**vars(score), "accuracy": score.accuracy} for score in [*scores, AnalogyScore("all", *sums)]]
    print_scores(lines, "{accuracy:6}  {covered:6,} of {questions:6,}  {section}", as_json)


@app.command()
def similarity(
    model: Vectors,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="A B", help="Two words to compare.", show_default=False)
    ] = None,
    pairs: Annotated[
        list[Path] | None,
        typer.Option(
            help="File of word pairs with human judgements, as in WordSim-353, SimLex-999 or MEN. Can be repeated."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the cosine similarity of two words, or the rank correlation with human judgements of word pairs.

    With --pairs, each line of the output has Spearman's correlation, the number
    of pairs covered (both words must have a vector), the total number of pairs,
    and the file.
    """
    if bool(words) == bool(pairs) or (words and len(words) != 2):
        raise InputError("give either two words or --pairs FILE")
    space = space_of(model)
    if words:
        cosine = space.similarity(*words)
        typer.echo(to_json({"words": words, "similarity": cosine}) if as_json else f"{cosine:.4f}")
        return
    from heedful.metrics.word_vectors import read_judgements, similarity_score

    scores = [(path, similarity_score(space, read_judgements(path))) for path in pairs or []]
    lines = [{**vars(score), "correlation": score.correlation, "file": str(path)} for path, score in scores]
    print_scores(lines, "{correlation:6}  {covered:6,} of {pairs:6,}  {file}", as_json)


@app.command()
def plot(
    model: Vectors,
    words: Annotated[
        list[str] | None, typer.Argument(help="Words to plot.", show_default="the first words of the vocabulary")
    ] = None,
    out: Annotated[Path, typer.Option(help="Image file to write: .png or .svg.")] = Path("vectors.png"),
    count: Annotated[int, typer.Option(min=3, help="Number of words to plot if none are given.")] = 100,
    method: Annotated[
        str,
        typer.Option(help="Method: pca (principal components: most variance) or tsne (t-SNE: neighbours together)."),
    ] = "pca",
    _force: Force = False,
) -> None:
    """Plot words in 2D, by the first two principal components of their vectors or by t-SNE."""
    check_plot(out, "--out")
    from heedful.inspector.plots import draw_words

    if method not in METHODS:
        raise InputError(f"--method {method}: choose one of {', '.join(METHODS)}")
    space = space_of(model)
    words = words or space.words[:count]
    word_map, remark = METHODS[method](space.directions[space.rows(words)], words, f"model {model}")
    draw_plot(out, partial(draw_words, word_map), "Words", f"{counted(len(words), 'words')}, {remark}")


def most_variance(vectors: "np.ndarray", words: Sequence[str], title: str) -> "tuple[WordMap, str]":
    """Place words by the first two principal components of their vectors, and say how much variance these explain."""
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

    axes = ("t-SNE: nearby words are neighbours; large distances mean little", "")
    return WordMap(neighbour_map(vectors), words, axes, title), "with neighbours close together"


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
    """Write a model's vectors to a file for other programs, or convert one file format to another."""
    from heedful.data.word_vectors import writable, write_vectors
    from heedful.storage.written_files import note_written

    check_output(out, Path(model), option="OUT")
    vectors = table_of(model)
    table = writable(vectors)
    if left_out := len(vectors.words) - len(table.words):
        warn(f"left out {counted(left_out, 'words')} with spaces, because spaces separate the columns of the file")
    write_vectors(out, table, form)
    note_written(out)
    typer.echo(f"{out}: {counted(len(table.words), 'vectors')} of size {table.matrix.shape[1]}")


def space_of(model: str) -> "VectorSpace":
    from heedful.data.word_vectors import VectorSpace

    return VectorSpace(table_of(model))


def table_of(model: str) -> "VectorTable":
    """Load word vectors from a model or from a file of vectors."""
    from heedful.checkpoint.hub import is_hub_name

    if Path(model).is_file():
        from heedful.data.word_vectors import read_vectors

        return read_vectors(Path(model))
    if Path(model).suffix and not Path(model).exists() and not is_hub_name(model):
        raise InputError(no_file(Path(model), "give a file of word vectors, or a model folder"))
    from heedful.checkpoint import load_model
    from heedful.predictors.word_vectors import WordVectors

    loaded = load_model(model)
    try:
        return loaded.use_as(WordVectors).table
    except InputError as error:
        raise InputError(
            f'{error}. Word vectors need a model for the task "word_vectors" (see the page "Word vectors" of the '
            "documentation), or a file of word vectors"
        ) from error


def neighbour_lines(neighbours: "list[Neighbour]") -> str:
    return "\n".join(f"{similarity:7.4f}  {word}" for word, similarity in neighbours)


def print_scores(lines: list[dict[str, Any]], form: str, as_json: bool) -> None:
    """Print scores as JSON lines, or formatted with four decimals; a NaN score becomes null, or a dash."""
    with writing(None) as stream:
        for line in lines:
            missing = {key for key, value in line.items() if isinstance(value, float) and math.isnan(value)}
            if as_json:
                text = to_json({key: None if key in missing else value for key, value in line.items()})
            else:
                cells = {key: f"{value:.4f}" if isinstance(value, float) else value for key, value in line.items()}
                text = form.format(**cells | dict.fromkeys(missing, "-"))
            stream.write(f"{text}\n".encode())
