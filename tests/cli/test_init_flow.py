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
    "train.max_updates": 4,
    "train.validate_every": 2,
    "train.save_every": 2,
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


def trained_and_used(arguments: list[str]) -> tuple[Path, list[str]]:
    """The run, and the words of the command that uses it, once this and `evaluate` have worked."""
    run, evaluate, use = trained(arguments, {})
    assert invoke(*evaluate).stdout.strip()
    assert invoke(*use).stdout  # an empty line, where a model that has learned nothing says nothing
    return run, use


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pairs.csv", "books", "reviews.csv", "reviews.jsonl"])
def test_text_in_other_files_is_trained_on_evaluated_and_used(name: str) -> None:
    trained_and_used([name])


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("arguments", "text", "other"),
    [
        (["news.en", "news.de"], "The old dog sleeps.", "marian"),
        (["book.txt"], "The old", "gpt2"),
        (["book.txt", "--task", "masked_lm"], "The old [MASK] sleeps.", "bert"),
        (["reviews.tsv"], "The old dog sleeps.", "bert"),
        (["scored.tsv"], "The old dog sleeps.", "bert"),
    ],
    ids=lambda value: "" if isinstance(value, str) else " ".join(value),
)
def test_every_step_works_on_the_output_of_the_one_before(arguments: list[str], text: str, other: str) -> None:
    run, use = trained_and_used(arguments)
    assert invoke("export", run, "mine").exit_code == 0
    assert invoke(use[0], text, "--model", "mine").stdout
    assert load_model("mine").recipe.task == load_model(str(run)).recipe.task
    assert invoke("inspect", "mine", text, "--out", "page.html").exit_code == 0
    assert Path("page.html").stat().st_size > 100_000
    with pytest.raises(InputError, match=r'model\.positions = "\w+", not "rotary"|is for the task "\w+", but'):
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
def test_the_classes_of_a_classifier_have_no_place_in_a_bert() -> None:
    run, _, _ = trained(["reviews.tsv"], TO_BERT)
    with pytest.raises(InputError, match='is for the task "classification", but'):
        invoke("convert", run, "--to", "bert", "--out", "theirs")


@pytest.mark.slow
def test_a_fast_translator_learns_from_a_teacher_by_the_commands_that_init_prints() -> None:
    output = invoke("init", "news.en", "news.de", "--fast").output
    teach, distill, train, evaluate, use = (shlex.split(line)[1:] for line in output.splitlines()[-5:])
    options = [word for key, value in SHORT.items() for word in ("--set", f"{key}={value}")]
    for command in ([*teach, *options], distill, [*train, *options], evaluate, use):
        assert invoke(*command).exit_code == 0
    student, teacher = (load_model(command[-1]) for command in (train, teach))
    assert (student.recipe.model.encoder_layers, student.recipe.model.decoder_layers) == (8, 1)
    assert (teacher.recipe.model.encoder_layers, teacher.recipe.model.decoder_layers) == (4, 4)
    assert student.recipe.decode.beam == 1
    assert student.tokenizers.shortlist.size == student.recipe.decode.shortlist == 50
    assert teacher.tokenizers.shortlist is None


def test_only_a_translator_is_written_as_a_fast_one() -> None:
    with pytest.raises(InputError, match="--fast is for translations, but the task is"):
        invoke("init", "reviews.csv", "--fast")
    with pytest.raises(InputError, match="--fast is for translations, but the task is"):
        invoke("init", "book.txt", "--fast")
