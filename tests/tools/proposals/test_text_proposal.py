"""First recipes for running and for labelled text load, and their sizes follow the text and the machine."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from heedful.config.load import load_recipe
from heedful.config.schema import CorpusConfig, DataConfig, Recipe
from heedful.data.readers.documents import document_lines
from heedful.tools.proposals.labelled import propose_encoder
from heedful.tools.proposals.proposal import Machine, RecipeData
from heedful.tools.proposals.running_text import (
    BERT_SIZES,
    CPU_SECONDS,
    GPT_SIZES,
    TextSurvey,
    propose_bert,
    propose_gpt,
    survey_text,
)
from heedful.tools.proposals.text_statistics import TextStatistics

LAPTOP = Machine(cores=2, bfloat16=False)
GPU = Machine(cores=16, bfloat16=True, gpu_memory=79.0)
CORPORA = {part: {"source": f"data/{part}"} for part in ("train", "valid", "test")}
AMOUNTS = [2_003, 50_021, 1_000_003, 30_000_001, 1_000_000_007]


def text(characters: int, *, sections: int = 1, rows: bool = False, letters: str = "abcdefg") -> TextSurvey:
    return TextSurvey(
        files=1,
        is_rows=rows,
        lines=characters // 50,
        paragraphs=characters // 500,
        sections=sections,
        characters=characters,
        words=characters // 5,
        letters=Counter(letters),
        longest=73,
        longest_at="book.txt, line 7",
        beginning="it was",
    )


def proposed(folder: Path, propose, found: TextSurvey, machine: Machine) -> Recipe:
    (folder / "config.toml").write_text(propose(found, machine, RecipeData("x", "skip", CORPORA)), encoding="utf-8")
    return load_recipe(folder)


@pytest.mark.parametrize("machine", [LAPTOP, GPU], ids=["laptop", "gpu"])
@pytest.mark.parametrize("propose", [propose_gpt, propose_bert])
@pytest.mark.parametrize("characters", AMOUNTS)
def test_every_proposal_is_a_recipe_that_can_work(tmp_path: Path, characters: int, propose, machine: Machine) -> None:
    recipe = proposed(tmp_path, propose, text(characters), machine)
    train = recipe.train
    assert recipe.data.bad_utf8 == "skip"
    assert train.max_updates % train.save_every == 0
    assert train.validate_every == train.save_every
    assert recipe.optimizer.warmup < train.max_updates
    assert train.batch_tokens >= recipe.data.max_length


@pytest.mark.parametrize(
    ("propose", "sizes", "expected"),
    [
        (propose_gpt, GPT_SIZES, ["tiny", "tiny", "small", "medium", "gpt2"]),
        (propose_bert, BERT_SIZES, ["tiny", "tiny", "tiny", "mini", "small"]),
    ],
)
def test_more_text_is_worth_a_larger_model(tmp_path: Path, propose, sizes, expected: list[str]) -> None:
    widths = {size.name: size.d_model for size in sizes}
    found = [proposed(tmp_path, propose, text(characters), GPU).model.d_model for characters in AMOUNTS]
    assert found == [widths[name] for name in expected]


@pytest.mark.parametrize("propose", [propose_gpt, propose_bert])
def test_a_cpu_is_not_asked_for_more_than_an_hour(tmp_path: Path, propose) -> None:
    for characters in AMOUNTS:
        recipe = proposed(tmp_path, propose, text(characters), LAPTOP)
        model, train = recipe.model, recipe.train
        layers = max(model.decoder_layers if model.family == "decoder" else model.encoder_layers, 1)
        weights = layers * (4 * model.d_model**2 + 2 * model.d_model * model.d_ff)
        work = 6 * (weights + recipe.tokenizer.vocab_size * model.d_model) * train.batch_tokens * train.max_updates
        assert work <= 1.01 * LAPTOP.budget(CPU_SECONDS)


def test_passages_are_paired_where_documents_have_several_sentences(tmp_path: Path) -> None:
    for found, documents, paired in (
        (text(1_000_003, sections=311), "section", True),
        (text(1_000_003), "paragraph", True),
        (text(5_003), "paragraph", False),
        (text(1_000_003, rows=True), "file", False),
    ):
        recipe = proposed(tmp_path, propose_bert, found, LAPTOP)
        assert (recipe.data.documents, recipe.masking.next_sentence) == (documents, paired)


def test_a_text_is_surveyed_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text("One two\nthree\n\nfour?\n\n\n\nfive\n", encoding="utf-8")
    (tmp_path / "more.txt").write_text("six\n", encoding="utf-8")
    corpus = CorpusConfig(source=str(tmp_path))
    found = survey_text(document_lines(corpus, DataConfig()), corpus.source)
    assert (found.files, found.lines, found.paragraphs, found.sections) == (2, 5, 4, 3)
    assert (found.words, found.characters, found.longest) == (6, 8 + 6 + 6 + 5 + 4, 7)
    assert found.longest_at == f"{tmp_path / 'book.txt'}, line 1"
    assert found.beginning == "One two"


def labelled(count: int, words: int) -> TextStatistics:
    no = np.zeros(count, dtype=bool)
    return TextStatistics("latin", 53, np.full(count, 5 * words), np.full(count, words), no, no)


@pytest.mark.parametrize(("count", "words"), [(23, 3), (1_009, 11), (6_911, 19), (100_003, 211), (53, 9_973)])
def test_a_classifier_fits_its_texts(tmp_path: Path, count: int, words: int) -> None:
    found = propose_encoder(labelled(count, words), "classification", ("a", "b"), RecipeData("x", "error", CORPORA))
    (tmp_path / "config.toml").write_text(found, encoding="utf-8")
    recipe = load_recipe(tmp_path)
    assert recipe.data.labels == ("a", "b")
    assert min(256, 1.3 * words) <= recipe.data.max_length <= recipe.train.batch_tokens
    assert recipe.train.max_updates >= 300
    assert recipe.optimizer.warmup < recipe.train.max_updates
