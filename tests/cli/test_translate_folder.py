"""`heedful translate` for a folder: what single files become, in one process or three that are stopped."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
import torch
from invocation import invoke

import heedful
from heedful.architectures import EncoderDecoder, weights
from heedful.checkpoint import write_model
from heedful.config.schema import DecodeConfig, ModelConfig, Recipe, TokenizerConfig
from heedful.convert import engine
from heedful.errors import InputError, Interrupted
from heedful.jobs import WINDOW, FolderJob
from heedful.predictors import translator
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer

WORDS = [f"w{number}" for number in range(31)]
TEXTS = {
    "long.txt": b"\xef\xbb\xbfw3 w5\r\n" + b"\r\n" * (WINDOW + 11) + b"w7\nw11 w13\n" + b"\n" * WINDOW + b"w17",
    "short.txt": b"w19 w23\n\n",
    "empty.txt": b"",
}
SOURCE = str(Path(heedful.__file__).parents[1])

run = partial(invoke, "translate")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that knows nothing, and has positions for 300 tokens."""
    torch.manual_seed(1)
    config = ModelConfig(
        d_model=14, d_ff=23, heads=2, encoder_layers=1, decoder_layers=1, positions="learned", max_positions=300
    )
    tokenizer = train_tokenizer(WORDS, TokenizerConfig(kind="word", byte_fallback=False, pretokenized=True))
    folder = tmp_path_factory.mktemp("folder") / "model"
    network = EncoderDecoder(config, len(tokenizer), len(tokenizer))
    recipe = Recipe(model=config, decode=DecodeConfig(beam=2, max_extra=3))
    write_model(folder, recipe, TokenizerPair(tokenizer, tokenizer), weights(network))
    return folder


@pytest.fixture
def text(tmp_path: Path) -> Path:
    folder = tmp_path / "text"
    folder.mkdir()
    for name, data in TEXTS.items():
        (folder / name).write_bytes(data)
    return folder


@pytest.mark.usefixtures("reporters")
def test_a_folder_becomes_what_its_files_become(tmp_path, model, text):
    options = ("--model", model, "--json", "--beam", 3, "--n-best", 2)
    result = run("--input", text, "--output", tmp_path / "out", "--shard-lines", WINDOW, *options)
    assert result.stdout == ""
    assert result.stderr.endswith(f"3 files with {2 * WINDOW + 17:,} lines are in {tmp_path / 'out'}\n")
    for name in TEXTS:
        run("--input", text / name, "--output", tmp_path / name, *options)
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / name).read_bytes()
    run("--input", text, "--output", tmp_path / "out", "--shard-lines", WINDOW, *options)


def test_shards_are_cut_where_a_single_file_is_cut_into_batches():
    assert translator.WINDOW == WINDOW


def test_the_job_knows_the_model_and_the_settings(tmp_path, model, text, monkeypatch):
    monkeypatch.setattr(engine, "MAX_SHARE", 1.0)  # of <pad>, which the untrained model gives a large one
    run("--input", text, "--output", tmp_path / "out", "--model", model)
    plan = json.loads((tmp_path / "out" / ".job" / "plan.json").read_bytes())
    assert plan["settings"]["beam"] == 2
    assert plan["settings"]["device"] == "cpu"
    for option, message in {
        ("--beam", 3): "beam = 2, but this command has beam = 3",
        ("--json",): "json = False, but this command has json = True",
        ("--precision", "int8"): "precision = float32, but this command has precision = int8",
        ("--model", model): "the job was started with another model",  # an ensemble of the model with itself
    }.items():
        with pytest.raises(InputError, match=message):
            run("--input", text, "--output", tmp_path / "out", "--model", model, *option)


def test_progress_counts_the_lines_of_all(tmp_path, model, text, reporters):
    run("--input", text, "--output", tmp_path / "out", "--model", model)
    reading, translating = reporters
    assert reading.done == translating.total == translating.done == 2 * WINDOW + 17


def test_lines_that_are_too_long_are_counted(tmp_path, model, text):
    (text / "short.txt").write_text(f"{'w3 ' * 307}\n{'w5 ' * 311}\n")
    result = run("--input", text, "--output", tmp_path / "out", "--model", model, "--beam", 1, "--no-literals")
    assert "lines were truncated: only the first 299 tokens of a line are translated" in result.stderr


def test_options_that_do_not_fit_are_refused(tmp_path, model, text):
    file, out = text / "short.txt", tmp_path / "out"
    for arguments, message in {
        ("--input", file, "--ray"): "is for a folder of files",
        ("w3", "--shard-lines", WINDOW): "is for a folder of files",
        ("--input", text): "so --output must be a folder",
        ("w3", "--input", text, "--output", out): "use only one of them",
        ("--input", text, "--output", out, "--n-best", 2): "add --json",
        ("--input", text, "--output", out, "--shard-lines", 1000): "multiple of 1,024",
        ("--input", text, "--output", file): "is in the input folder",
    }.items():
        with pytest.raises(InputError, match=message):
            run(*arguments, "--model", model)
    assert not out.exists()


def test_ctrl_c_leaves_a_job_that_goes_on(tmp_path, model, text, monkeypatch):
    compute = FolderJob.compute
    before = signal.getsignal(signal.SIGTERM)

    def interrupted(self, shard, *rest):
        if shard.first > 1:
            raise KeyboardInterrupt
        return compute(self, shard, *rest)

    arguments = ("--input", text, "--output", tmp_path / "out", "--shard-lines", WINDOW, "--model", model)
    with monkeypatch.context() as patch:
        patch.setattr(FolderJob, "compute", interrupted)
        with pytest.raises(Interrupted, match="and the same command resumes"):
            run(*arguments)
    assert signal.getsignal(signal.SIGTERM) is before
    run(*arguments)
    assert (tmp_path / "out" / "long.txt").read_bytes().count(b"\n") == 2 * WINDOW + 15


@pytest.mark.slow
def test_sigterm_gives_claims_back_and_ends_with_its_own_code(tmp_path, model, text):
    (text / "long.txt").write_text("w3 w5 w7 w11\n" * 300_000)
    places = ["--model", str(model), "--input", str(text), "--output", str(tmp_path / "out")]
    begun = subprocess.Popen(
        [sys.executable, "-m", "heedful", "translate", *places, "--shard-lines", str(WINDOW)],
        env=os.environ | {"PYTHONPATH": SOURCE},
        stderr=subprocess.PIPE,
        text=True,
    )
    while begun.poll() is None and not list((tmp_path / "out").rglob("*1024")):
        time.sleep(0.01)
    begun.terminate()
    assert "interrupted; the finished translations are in" in begun.communicate()[1]
    assert begun.returncode == 143
    assert not list((tmp_path / "out").rglob("*.claim"))


@pytest.mark.parametrize(("options", "stays"), [((), True), (("--no-literals",), False), (("--json",), False)])
def test_literals_of_a_folder_stay(tmp_path, model, options, stays):
    source, output = tmp_path / "in", tmp_path / "results"
    source.mkdir()
    (source / "a.txt").write_text("- w3 w5 w7 {name}\n")
    run("--input", source, "--output", output, "--model", model, *options)
    written = (output / "a.txt").read_text()
    assert (written.startswith("- ") and "{name}" in written) == stays
