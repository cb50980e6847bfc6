"""What a command writes does not depend on who reads its messages: closed pipes, closed streams, and full disks."""

import errno
import io
import math
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from heedful.cli import main
from toy_model import TOY_MODEL

RECIPE = f"""
[data]
train = [{{source = "train.en", target = "train.de"}}]
valid = {{source = "few.en", target = "few.en"}}
[tokenizer]
kind = "character"
{TOY_MODEL}[decode]
max_extra = 3
[train]
max_updates = 2
"""
COMMANDS = [  # that write files or folders
    "init moods.tsv --out out",
    "init train.en train.de --out out",
    "init train.en --out out",
    "scenes en-de --out out --train 5 --valid 2 --test 2",
    "stories --out out --train 5 --valid 2 --test 2",
    "shapes --out out --train 5 --valid 2 --test 2",
    "tokenizer train train.en --out out --vocab-size 300",
    "train recipe.toml --out out",
    "export en-de out",
    "attention 'A dog barks.' --out out.svg",
    "inspect en-de 'A dog barks.' --out out.html",
    "translate --input few.en --output out.de",
]


class Reader(io.RawIOBase):
    """A pipe whose reader closes it after a number of lines, and counts them."""

    def __init__(self, stops: float = math.inf) -> None:
        self.stops = stops
        self.lines = 0

    def writable(self) -> bool:
        return True

    def write(self, text) -> int:
        if self.lines >= self.stops:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")
        self.lines += bytes(text).count(b"\n")
        return len(text)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    words = ["red", "blue", "small", "large", "old", "new", "quick", "slow", "warm", "cold", "loud"]
    texts = [f"the {a} dog and the {b} cat" for a in words for b in words]
    Path("moods.tsv").write_text("text\tlabel\n" + "".join(f"{t}\t{'ab'[i % 2]}\n" for i, t in enumerate(texts)))
    Path("train.en").write_text("".join(f"{text}\n" for text in texts))
    Path("train.de").write_text("".join(f"{text.upper()}\n" for text in texts))
    Path("few.en").write_text("A dog barks.\n")
    Path("recipe.toml").write_text(RECIPE)
    return tmp_path


def outputs(folder: Path) -> dict[str, bytes]:
    """The files that a command wrote, temporary ones as well; of logs and JSON, which have times, their names."""
    files = [path for path in folder.rglob("*") if path.is_file() and "out" in path.relative_to(folder).parts[0]]
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.suffix not in (".json", ".jsonl") else b""
        for path in files
    }


def run(command: str, monkeypatch: pytest.MonkeyPatch, **streams: Reader) -> tuple[int, dict[str, bytes]]:
    """Run a command from nothing with these streams; return its exit code, and what it wrote."""
    for path in Path.cwd().glob("*out*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    with monkeypatch.context() as patches:
        patches.setattr(sys, "argv", ["heedful", *shlex.split(command)])
        for name, reader in streams.items():
            patches.setattr(sys, name, io.TextIOWrapper(reader, encoding="utf-8", write_through=True))
        with pytest.raises(SystemExit) as ended:
            main()
    return int(ended.value.code or 0), outputs(Path.cwd())


@pytest.mark.sampled(3)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_reader_that_stops_at_any_line_changes_nothing_that_is_written(command, folder, monkeypatch):
    stdout, stderr = Reader(), Reader()
    whole = run(command, monkeypatch, stdout=stdout, stderr=stderr)
    assert whole[0] == 0
    assert whole[1]
    for lines in range(stdout.lines):
        assert run(command, monkeypatch, stdout=Reader(lines), stderr=Reader()) == whole, lines
    for lines in range(stderr.lines):
        assert run(command, monkeypatch, stdout=Reader(), stderr=Reader(lines)) == whole, lines


def pipeline(command: str) -> tuple[int, str]:
    """Run a command in a shell, with `heedful` for this one; return its exit code, and what the shell printed."""
    shell = f'set -o pipefail; heedful() {{ {shlex.quote(sys.executable)} -m heedful "$@"; }}; {command}'
    ended = subprocess.run(
        ["bash", "-c", shell], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return ended.returncode, ended.stdout


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("redirected", "code", "printed"),
    [
        ("| head -1 | cut -c 1-9", 0, "moods.tsv\n"),
        ("2>&1 | true", 0, ""),
        (">&-", 1, "heedful: cannot write to standard output: Bad file descriptor\n"),
        (">/dev/full", 1, "heedful: cannot write to standard output: No space left on device\n"),
        (">&- 2>&-", 1, ""),
    ],
)
def test_a_recipe_folder_is_whole_however_its_messages_end(redirected, code, printed, folder):
    assert pipeline(f"heedful init moods.tsv --out out {redirected}") == (code, printed)
    assert {"out/config.toml", "out/data/train.jsonl"} <= outputs(folder).keys()


def test_results_that_nobody_reads_end_a_command_without_an_error(folder):
    Path("many.en").write_text("A dog barks.\n" * 500)
    assert pipeline("heedful translate --input many.en 2>err | head -1") == (0, "Ein Hund bellt.\n")
    assert "Traceback" not in Path("err").read_text()
