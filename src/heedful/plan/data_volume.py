"""Volume of training data: bytes and lines of the text that a recipe names, and an estimate of its tokens."""

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from heedful.config.schema import Recipe
from heedful.data.readers.documents import text_files
from heedful.data.readers.files import decode_lines, open_bytes
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
        bytes: the size of their text, decompressed: of the `part` of each corpus that is read.
        lines: the lines of this text.
        tokens: an estimate of its tokens.
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
        InputError: a file is a pipe or a device or cannot be read, or the tokenizer of the recipe cannot be read.
    """
    if recipe.data.modality != "text":
        return None
    if not all(corpus_is_here(corpus.source, recipe) for corpus in recipe.data.train):
        return None
    files = [(file, corpus.part) for corpus in recipe.data.train for file in text_files(corpus, recipe.data)]
    if not files or not all(file.is_file() for file, _ in files):
        return None
    size = lines = 0.0
    for file, (begin, end) in files:
        whole = bytes_and_lines(file)
        size += (end - begin) * whole[0]
        lines += (end - begin) * whole[1]
    ratio, how = bytes_per_token(recipe, [file for file, _ in files])
    return DataVolume(len(files), round(size), round(lines), round(size / ratio), how)


def corpus_is_here(source: str, recipe: Recipe) -> bool:
    """True if the file or folder that a corpus names is on this machine."""
    return (Path(recipe.data.root) / source).exists()


def bytes_and_lines(file: Path) -> tuple[int, int]:
    """Count the bytes and the lines of a text file, decompressed.

    Raises:
        InputError: the file cannot be read.
    """
    size = lines = 0
    with open_bytes(file) as opened:
        while chunk := opened.read(CHUNK):
            size += len(chunk)
            lines += chunk.count(b"\n")
    return size, lines


def bytes_per_token(recipe: Recipe, files: list[Path]) -> tuple[float, str]:
    """Estimate the bytes of a token, and say how: by the recipe's tokenizer if it is trained, else by its kind.

    Raises:
        InputError: the tokenizer or a file cannot be read.
    """
    folder = Path(recipe.tokenizer.path) if recipe.tokenizer.path else None
    lines = [line for file in files for line in first_lines(file)]
    if folder is None or not folder.is_dir() or not lines:
        guess = BYTES_PER_TOKEN.get(recipe.tokenizer.kind, SUBWORD)
        return guess, f"{guess:g} bytes a token, a guess"
    tokenizer = TokenizerPair.load(folder).source
    tokens = sum(map(len, tokenizer.encode_batch(lines)))
    return sum(len(line.encode()) for line in lines) / max(1, tokens), "by the tokenizer, from the first lines"


def first_lines(file: Path) -> list[str]:
    """Read the first lines of a text file.

    Raises:
        InputError: the file cannot be read, or is no text.
    """
    with open_bytes(file) as opened:
        return [line or "" for line in islice(decode_lines(opened, str(file), bad_utf8="replace"), SAMPLE)]
