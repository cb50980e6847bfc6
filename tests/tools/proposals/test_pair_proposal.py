"""A first recipe loads, and its sizes follow the text and the machine."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

from heedful.config.load import load_recipe
from heedful.config.schema import Recipe
from heedful.tools.proposals import pairs as pair_proposal
from heedful.tools.proposals.pairs import (
    CPU_SECONDS,
    SIZES,
    ParallelSurvey,
    TranslatorSize,
    propose_translator,
    translator_size,
)
from heedful.tools.proposals.proposal import Machine, RecipeData
from heedful.tools.proposals.text_statistics import TextStatistics

LAPTOP = Machine(cores=2, bfloat16=False)
SERVER = Machine(cores=64, bfloat16=True)
GPU = Machine(cores=16, bfloat16=True, gpu_memory=79.0)
SMALL_GPU = Machine(cores=8, bfloat16=False, gpu_memory=5.0)

PARTS = ("train", "valid", "test")
CORPORA = {part: {"source": f"data/{part}.en", "target": f"data/{part}.de"} for part in PARTS}


def proposal(survey: ParallelSurvey, machine: Machine, name: str = "x") -> str:
    return propose_translator(survey, machine, RecipeData(name, "error", CORPORA), ("en", "de"))


def side(pairs: int, words: int, script: str | None = "latin", alphabet: int = 97) -> TextStatistics:
    no = np.zeros(pairs, dtype=bool)
    return TextStatistics(script, alphabet, np.full(pairs, 5 * words), np.full(pairs, words), no, no)


def text(pairs: int, words: int = 11, target: TextStatistics | None = None) -> ParallelSurvey:
    source, lines = side(pairs, words), np.arange(1, pairs + 1)
    return ParallelSurvey(source, target or side(pairs, words), lines, 0, 0, 0, lines.astype(np.uint64))


def proposed(folder: Path, found: ParallelSurvey, machine: Machine, name: str = "en-de") -> Recipe:
    (folder / "config.toml").write_text(proposal(found, machine, name), encoding="utf-8")
    return load_recipe(folder)


@pytest.mark.parametrize("machine", [LAPTOP, SERVER, GPU, SMALL_GPU])
@pytest.mark.parametrize("pairs", [1, 23, 29_009, 100_003])
@pytest.mark.parametrize("size", SIZES, ids=lambda size: size.name)
def test_every_proposal_is_a_recipe_that_can_work(
    tmp_path: Path, pairs: int, machine: Machine, size: TranslatorSize, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_proposal, "SIZES", (size,))
    recipe = proposed(tmp_path, text(pairs), machine)
    train = recipe.train
    assert recipe.data.train[0].source == "data/train.en"
    assert recipe.model.d_model == size.d_model
    assert train.max_updates % train.validate_every == train.validate_every % train.save_every == 0
    assert recipe.optimizer.warmup < train.max_updates


@pytest.mark.parametrize(
    ("pairs", "machine", "name"),
    [
        (5_003, LAPTOP, "tiny"),
        (29_009, GPU, "tiny"),
        (100_003, LAPTOP, "small"),
        (160_001, GPU, "small"),
        (900_001, LAPTOP, "tiny"),
        (900_001, SERVER, "small"),
        (4_500_007, GPU, "base"),
        (4_500_007, SMALL_GPU, "small"),
        (36_000_011, GPU, "big"),
    ],
)
def test_the_size_follows_text_and_machine(pairs: int, machine: Machine, name: str) -> None:
    assert translator_size(pairs, 13 * pairs, machine).name == name


def test_work_counts_every_weight_once() -> None:
    size = TranslatorSize(
        "",
        0,
        d_model=7,
        d_ff=11,
        heads=1,
        layers=3,
        dropout=0,
        vocab_size=13,
        optimizer="adam",
        lr=0,
        warmup=0,
        passes=0,
    )
    attention, feed_forward = 4 * 7 * 7, 2 * 7 * 11
    assert size.work == 6 * (3 * (attention + feed_forward) + 3 * (2 * attention + feed_forward) + 13 * 7)


def test_a_cpu_is_not_asked_for_more_than_hours(tmp_path: Path) -> None:
    for pairs in (29_009, 100_003, 500_009):
        train = proposed(tmp_path, text(pairs), LAPTOP).train
        size = translator_size(pairs, int(text(pairs).tokens.sum()), LAPTOP)
        assert train.max_updates * train.batch_tokens * train.accumulate * size.work <= 1.01 * LAPTOP.budget(
            CPU_SECONDS
        )


def test_little_text_is_cut_into_enough_batches(tmp_path: Path) -> None:
    assert proposed(tmp_path, text(5_003), GPU).train.batch_tokens == 1024
    assert proposed(tmp_path, text(29_009), GPU).train.batch_tokens == 8192
    assert proposed(tmp_path, text(300_007), GPU).train.batch_tokens == 32_768
    assert proposed(tmp_path, text(300_007), LAPTOP).train.batch_tokens == 4096


def test_large_models_take_large_updates(tmp_path: Path) -> None:
    train = proposed(tmp_path, text(1_000_003), Machine(16, True, gpu_memory=11.0)).train
    assert (train.batch_tokens, train.accumulate) == (8192, 3)


def test_the_precision_is_left_to_the_machine_that_trains() -> None:
    assert "precision" not in tomllib.loads(proposal(text(5_003), GPU))["train"]


def test_one_long_line_does_not_change_the_recipe(tmp_path: Path) -> None:
    found = text(503)
    without = proposal(text(502), LAPTOP).splitlines()
    found.source.characters[7], found.source.words[7] = 3_000_017, 600_011
    assert proposal(found, LAPTOP).splitlines()[1:] == without[1:]
    found.source.characters[7], found.source.words[7] = 1_999, 401
    assert proposed(tmp_path, found, LAPTOP).data.filters.max_tokens == 250


def test_languages_written_alike_share_a_vocabulary(tmp_path: Path) -> None:
    recipe = proposed(tmp_path, text(5_003), LAPTOP)
    assert (recipe.tokenizer.joint, recipe.model.tie) == (True, "all")
    chinese = proposed(tmp_path, text(5_003, target=side(5_003, 3, "han", alphabet=3511)), LAPTOP)
    assert (chinese.tokenizer.joint, chinese.model.tie) == (False, "output")
    assert chinese.tokenizer.vocab_size == 8000


def test_long_sentences_are_kept_if_they_are_many(tmp_path: Path) -> None:
    assert proposed(tmp_path, text(5_003), LAPTOP).data.filters.max_tokens == 250
    assert proposed(tmp_path, text(5_003, words=271), LAPTOP).data.filters.max_tokens == 400
    assert proposed(tmp_path, text(5_003, words=99_991), LAPTOP).data.filters.max_tokens == 1000


def test_strange_names_are_quoted(tmp_path: Path) -> None:
    name = 'a "b" \\ $name\n# ü'
    assert proposed(tmp_path, text(23), LAPTOP, name).name == name


def test_the_comments_tell_the_passes() -> None:
    recipe = proposal(text(29_009), GPU)
    train = tomllib.loads(recipe)["train"]
    passes = train["max_updates"] * train["batch_tokens"] / text(29_009).tokens.sum()
    assert f"# about {passes:.0f} epochs" in recipe
    assert all(size.passes >= 12 for size in SIZES)
