"""Volume of training data: bytes and lines of the files that a recipe names, and an estimate of their tokens."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from heedful.config.schema import Recipe
from heedful.data.readers.documents import text_files
from heedful.text.tokenizer_pair import TokenizerPair

CHUNK = 1 << 24  # bytes
SAMPLE = 1000  # lines of each file that are encoded
BYTES_PER_TOKEN = {"character": 1.0, "byte": 1.0, "word": 6.0}  # roughly, in European languages
SUBWORD = 4.0


@dataclass(frozen=True)
class DataVolume:
    """Volume of the training data on this machine.

    Attributes:
        files: the number of files.
        bytes: their size.
        lines: their lines; those of compressed files are not counted.
        tokens: an estimate of their tokens.
        how: in words, how the tokens were estimated.
    """

    files: int
    bytes: int
    lines: int
    tokens: int
    how: str


def data_volume(recipe: Recipe) -> DataVolume | None:
    """Measure the training text of a recipe; None where a file is not on this machine, and for pictures and sounds.

    Raises:
        InputError: a file is a pipe or a device, or the tokenizer of the recipe cannot be read.
    """
    if recipe.data.modality != "text":
        return None
    corpora = [text_files(corpus, recipe.data) for corpus in recipe.data.train if corpus_is_here(corpus.source, recipe)]
    files = [file for corpus in corpora for file in corpus]
    if not files or len(corpora) < len(recipe.data.train) or not all(file.is_file() for file in files):
        return None
    size = sum(file.stat().st_size for file in files)
    lines = sum(count_lines(file) for file in files if file.suffix != ".gz")
    ratio, how = bytes_per_token(recipe, [file for file in files if file.suffix != ".gz"])
    return DataVolume(len(files), size, lines, round(size / ratio), how)


def corpus_is_here(source: str, recipe: Recipe) -> bool:
    """True if the file or folder that a corpus names is on this machine."""
    return (Path(recipe.data.root) / source).exists()


def count_lines(file: Path) -> int:
    """Count the lines of a file."""
    with file.open("rb") as opened:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: opened.read(CHUNK), b""))


def bytes_per_token(recipe: Recipe, files: list[Path]) -> tuple[float, str]:
    """Estimate the bytes of a token, and say how: by the recipe's tokenizer if it is trained, else by its kind.

    Raises:
        InputError: the tokenizer cannot be read.
    """
    folder = Path(recipe.tokenizer.path) if recipe.tokenizer.path else None
    lines = [line for file in files for line in islice(read_lines(file), SAMPLE)]
    if folder is None or not folder.is_dir() or not lines:
        guess = BYTES_PER_TOKEN.get(recipe.tokenizer.kind, SUBWORD)
        return guess, f"{guess:g} bytes a token, a guess"
    tokenizer = TokenizerPair.load(folder).source
    tokens = sum(map(len, tokenizer.encode_batch(lines)))
    return sum(len(line.encode()) for line in lines) / max(1, tokens), "by the tokenizer, from the first lines"


def read_lines(file: Path) -> Iterator[str]:
    """Read the lines of a file, whatever is in it."""
    with file.open(encoding="utf-8", errors="replace", newline="\n") as opened:
        yield from opened
