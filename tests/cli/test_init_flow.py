"""From text of one's own to a page that looks inside: every command that `heedful init` leads to, on its own output."""

import shlex
from collections.abc import Mapping
from pathlib import Path

import own_text
import pytest
from invocation import invoke

from heedful.checkpoint import load_model
from heedful.errors import InputError

SHORT = {  # what makes a run short
    "train.max_updates": 10,
    "train.validate_every": 5,
    "train.save_every": 5,
    "train.average_last": 1,
    "train.threads": 1,
    "optimizer.warmup": 1,
    "decode.max_extra": 3,
}
TO_BERT = {"model.norm": "post", "model.positions": "learned", "tokenizer.byte_fallback": "false"}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    own_text.lay_out(tmp_path)


def trained(arguments: list[str], changes: Mapping[str, object]) -> tuple[Path, list[str], list[str]]:
    """The run that `init` and `train` make, and the words of the two commands that come next."""
    train, evaluate, use = (shlex.split(line)[1:] for line in invoke("init", *arguments).output.splitlines()[-3:])
    options = [word for key, value in {**SHORT, **changes}.items() for word in ("--set", f"{key}={value}")]
    assert invoke(*train, *options).exit_code == 0
    return Path(train[-1]), evaluate, use


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "text", "other"),
    [
        (["news.en", "news.de"], "The old dog sleeps.", "marian"),
        (["pairs.csv"], "The old dog sleeps.", "marian"),
        (["book.txt"], "The old", "gpt2"),
        (["books"], "The old", "gpt2"),
        (["book.txt", "--task", "masked_lm"], "The old [MASK] sleeps.", "bert"),
        (["reviews.tsv"], "The old dog sleeps.", "bert"),
        (["reviews.csv"], "The old dog sleeps.", "bert"),
        (["reviews.jsonl"], "The old dog sleeps.", "bert"),
        (["scored.tsv"], "The old dog sleeps.", "bert"),
    ],
    ids=lambda value: "" if isinstance(value, str) else " ".join(value),
)
def test_every_step_works_on_the_output_of_the_one_before(arguments: list[str], text: str, other: str) -> None:
    run, evaluate, use = trained(arguments, {})
    assert invoke(*evaluate).stdout.strip()
    assert invoke(*use).stdout  # an empty line, where a model that has learned nothing says nothing
    assert invoke("export", run, "mine").exit_code == 0
    assert invoke(use[0], text, "--model", "mine").stdout
    assert load_model("mine").recipe.task == load_model(str(run)).recipe.task
    assert invoke("inspect", "mine", text, "--out", "page.html").exit_code == 0
    assert Path("page.html").stat().st_size > 100_000
    with pytest.raises(InputError, match=r'model\.positions = "\w+", not "rotary"|is for the task "\w+", and'):
        invoke("convert", "mine", "--to", other, "--out", "theirs")
    assert not Path("theirs").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "text", "other", "changes"),
    [
        (
            ["news.en", "news.de"],
            "The old dog sleeps.",
            "marian",
            {"model.norm": "post", "model.positions": "sinusoidal"},
        ),
        (["book.txt"], "The old", "gpt2", {"model.positions": "learned"}),
        (["book.txt", "--task", "masked_lm"], "The old [MASK] sleeps.", "bert", TO_BERT),
    ],
    ids=["marian", "gpt2", "bert"],
)
def test_a_model_trained_with_the_values_of_another_toolkit_goes_there_and_back(
    arguments: list[str], text: str, other: str, changes: dict[str, str]
) -> None:
    run, _, use = trained(arguments, changes)
    assert invoke("convert", run, "--to", other, "--out", "theirs").exit_code == 0
    assert invoke("convert", "theirs", "--out", "again").exit_code == 0
    assert load_model("again").recipe.task == load_model(str(run)).recipe.task
    assert invoke(use[0], text, "--model", "again").stdout


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["reviews.tsv"], ["reviews.jsonl"]], ids=lambda value: value[0])
def test_the_classes_of_a_classifier_have_no_place_in_a_bert(arguments: list[str]) -> None:
    run, _, _ = trained(arguments, TO_BERT)
    with pytest.raises(InputError, match='is for the task "classification", and'):
        invoke("convert", run, "--to", "bert", "--out", "theirs")
