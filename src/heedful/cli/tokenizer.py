"""`heedful tokenizer`: train a tokenizer, encode and decode text, and measure how well a tokenizer fits a text."""

import json
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.inputs import input_lines, place_of, progress_of
from heedful.cli.options import STDIN, folder_to_write
from heedful.cli.output import one_line, print_table, writing
from heedful.config.keys import hint_of
from heedful.config.load import recipe_from_dict
from heedful.config.schema import TokenizerConfig
from heedful.config.setting import setting_in
from heedful.errors import InputError
from heedful.registry import TOKENIZERS
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.wording import did_you_mean, either

if TYPE_CHECKING:
    from heedful.text.tokenizer import Tokenizer

app = typer.Typer(
    name="tokenizer",
    help="Train a tokenizer, encode and decode text, and measure how well a tokenizer fits a text.",
    no_args_is_help=True,
    add_completion=False,
)

Texts = Annotated[list[Path], typer.Argument(help="Text files, one sentence per line; plain, .gz, .bz2 or .xz.")]
Inputs = Annotated[list[Path] | None, typer.Argument(help="Text files; plain, .gz, .bz2 or .xz.", show_default=STDIN)]
Folder = Annotated[Path, typer.Argument(help="Tokenizer folder.")]


@app.command()
def train(
    files: Texts,
    out: Annotated[
        Path, typer.Option(help="Folder to write; a tokenizer in the folder is replaced.", callback=folder_to_write)
    ],
    kind: Annotated[
        str, typer.Option(help="Kind of tokenizer: word, character, byte, bpe, unigram or wordpiece.")
    ] = TokenizerConfig.kind,
    vocab_size: Annotated[
        int, typer.Option(help="Maximum vocabulary size, including 4 special tokens and 256 bytes.")
    ] = TokenizerConfig.vocab_size,
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Lower-case all text.")] = TokenizerConfig.lowercase,
    normalization: Annotated[
        str, typer.Option(help="Unicode normalization: none, nfc or nfkc.")
    ] = TokenizerConfig.normalization,
    byte_fallback: Annotated[
        bool, typer.Option(help="Byte fallback: encode unknown characters as bytes; without it, they become <unk>.")
    ] = TokenizerConfig.byte_fallback,
    pretokenized: Annotated[
        bool, typer.Option("--pretokenized", help="Split words only at spaces, for text tokenized with Moses.")
    ] = TokenizerConfig.pretokenized,
) -> None:
    """Train a tokenizer with one vocabulary for all files."""
    from heedful.text.tokenizer import check_output_folder
    from heedful.text.training import train_tokenizer

    check_output_folder(out)
    # A recipe may also have the kind "foreign", which cannot be trained.
    if kind not in TOKENIZERS and ":" not in kind:
        aliases = setting_in(hint_of("tokenizer.kind")).values
        near = [aliases[kind]] if kind in aliases else get_close_matches(kind, TOKENIZERS, n=1)
        hint = f"; {did_you_mean(near)}" if near else ""
        raise InputError(f'--kind must be {either(json.dumps(name) for name in TOKENIZERS)}, but is "{kind}"{hint}')
    settings = {
        "kind": kind,
        "vocab_size": vocab_size,
        "lowercase": lowercase,
        "normalization": normalization,
        "byte_fallback": byte_fallback,
        "pretokenized": pretokenized,
    }
    config = recipe_from_dict({"tokenizer": settings}, "invalid option").tokenizer
    with progress_of("training the tokenizer", None, files, None) as progress:
        tokenizer = train_tokenizer(progress.over(with_text(files)), config)
    tokenizer.save(out)
    typer.echo(f"{out}: {kind}, {len(tokenizer):,} entries", err=True)


@app.command()
def encode(
    tokenizer: Folder,
    files: Inputs = None,
    pieces: Annotated[bool, typer.Option("--pieces", help="Write tokens as text instead of ids.")] = False,
) -> None:
    """Encode text into token ids, line by line; spaces separate the ids. An empty line stays empty."""
    codec = load(tokenizer)
    with progress_of("encoding", None, files, None) as progress:
        rows = progress.over(codec.encode_lines(lines_of(files)))
        write_lines(" ".join(codec.pieces(row) if pieces else map(str, row)) for row in rows)


@app.command()
def decode(tokenizer: Folder, files: Inputs = None) -> None:
    r"""Decode token ids into text, line by line.

    In a text, a line feed is written as \n, a carriage return as \r, and a
    backslash before n, r or a backslash as \\.
    """
    codec = load(tokenizer)

    def texts(file: Path | None) -> Iterator[str]:
        for number, row in enumerate(input_lines(None, file), start=1):
            location = place_of(file, number)
            try:
                yield one_line(codec.decode([int(word) for word in row.split()]))
            except ValueError as error:
                raise InputError(f"{location}: not a list of token ids; write integers, separated by spaces") from error
            except InputError as error:
                raise InputError(f"{location}: {error}") from error

    with progress_of("decoding", None, files, None) as progress:
        write_lines(progress.over(chain.from_iterable(map(texts, files or [None]))))


@app.command()
def stats(tokenizer: Folder, files: Texts) -> None:
    """Show how well a tokenizer fits a text: unknown tokens, characters encoded as bytes, tokens per word, and more."""
    from rich.table import Table

    from heedful.text.coverage import measure_coverage

    with progress_of("measuring", None, files, None) as progress:
        coverage = measure_coverage(load(tokenizer), progress.over(lines_of(files)))
    table = Table(box=None, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_column()
    for name, count, share in (
        ("lines", coverage.lines, ""),
        ("words", coverage.words, f"{coverage.tokens_per_word:.3f} tokens each"),
        ("characters", coverage.characters, f"{coverage.tokens_per_character:.3f} tokens each"),
        ("  encoded as bytes", coverage.spelled_characters, f"{coverage.spelled_share:.3%} of the characters"),
        ("tokens", coverage.tokens, ""),
        ("  unknown", coverage.unknown_tokens, f"{coverage.unknown_share:.3%} of the tokens"),
        ("ids used", coverage.used_ids, f"{coverage.used_share:.1%} of {coverage.vocabulary:,}"),
        (
            "longest line",
            coverage.longest,
            f"tokens, on line {coverage.longest_line:,}" if coverage.lines else "tokens",
        ),
    ):
        table.add_row(name, f"{count:,}", share)
    print_table(table)


def load(folder: Path) -> "Tokenizer":
    """Load the tokenizer in a folder, which may be a joint one for source and target; reject two separate ones."""
    pair = TokenizerPair.load(folder)
    if not pair.joint:
        raise InputError(f"{folder}: contains two tokenizers; give {folder / 'source'} or {folder / 'target'}")
    return pair.source


def with_text(files: list[Path]) -> Iterator[str]:
    """Yield the lines of files; raise an error at the end if all lines were blank."""
    is_blank = True
    for line in lines_of(files):
        is_blank = is_blank and not line.strip()
        yield line
    if is_blank:
        raise InputError(f"{', '.join(map(str, files))}: no text to train on; give files that contain text")


def lines_of(files: list[Path] | None) -> Iterator[str]:
    return chain.from_iterable(input_lines(None, file) for file in files or [None])


def write_lines(lines: Iterable[str]) -> None:
    with writing(None) as stream:
        for line in lines:
            stream.write(f"{line}\n".encode())
        stream.flush()
