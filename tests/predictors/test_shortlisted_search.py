"""Search with a shortlist: what it may choose from, the same with both engines, and in every batch."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from test_ctranslate2_translator import LINES, write_translator

import heedful
from heedful.architectures import weights
from heedful.checkpoint import write_model
from heedful.checkpoint.load import load_model
from heedful.config.schema import DecodeConfig
from heedful.convert.engine import open_predictor
from heedful.errors import InputError
from heedful.predictors.ctranslate2_translator import CTranslate2Translator
from heedful.text.pipeline import EOS, UNK
from heedful.text.shortlist import Shortlist, always_allowed
from interrupted import train
from reversal import recipe, write_texts

pytest.importorskip("ctranslate2")

SIZE = 2
SEARCHES = {"greedy": {"beam": 1}, "beam": {"beam": 2, "n_best": 2}, "cut": {"beam": 1, "max_extra": 0}}


def write_shortlisted(folder, seed=1, **settings):
    """Write a translator with random weights whose shortlist has two random tokens for each source token."""
    plain = load_model(write_translator(folder.with_name(f"plain-{folder.name}"), **settings))
    vocabulary = len(plain.tokenizers.target)
    table = np.random.default_rng(seed).integers(UNK, vocabulary, (vocabulary, SIZE))
    pieces = [f"of {i}" for i in range(vocabulary)]  # none is a copy of a source token
    shortlist = Shortlist.build(table, np.array([UNK, EOS, 5, 6]), ["x"] * vocabulary, pieces)
    recipe = replace(plain.recipe, decode=replace(plain.recipe.decode, shortlist=SIZE, beam=2))
    write_model(folder, recipe, replace(plain.tokenizers, shortlist=shortlist), weights(plain.model))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_shortlisted(tmp_path_factory.mktemp("shortlisted") / "m", norm="pre", positions="rotary")


@pytest.fixture(scope="module")
def translators(folder) -> Any:
    return heedful.load(folder, engine="torch"), heedful.load(folder, engine="ctranslate2")


@pytest.mark.parametrize("search", SEARCHES)
def test_both_engines_choose_from_the_candidates_of_each_sentence(translators, search):
    ours, theirs = (list(each.translate_lines([*LINES, ""], **SEARCHES[search])) for each in translators)
    tokenizers = translators[0].tokenizers
    for line, here, there in zip([*LINES, ""], ours, theirs, strict=True):
        row = tokenizers.source.encode(line)
        assert [each.hypothesis.tokens for each in there.alternatives] == [
            each.hypothesis.tokens for each in here.alternatives
        ]
        for mine, other in zip(here.alternatives, there.alternatives, strict=True):
            assert np.isin(mine.hypothesis.tokens, tokenizers.shortlist.candidates(row)).all()
            assert other.hypothesis.score == pytest.approx(mine.hypothesis.score, abs=1e-4)
            assert list(other.hypothesis.token_scores) == pytest.approx(list(mine.hypothesis.token_scores), abs=1e-4)
    without = list(translators[1].translate_lines([*LINES, ""], shortlist=0, **SEARCHES[search]))
    assert [each.text for each in without] != [each.text for each in theirs]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("engine", [0, 1])
@pytest.mark.parametrize("beam", [1, 2])
def test_a_translation_does_not_depend_on_the_other_lines(translators, engine, beam):
    together = translators[engine].translate(LINES, beam=beam)
    assert together == [translators[engine].translate(line, beam=beam) for line in LINES]


def test_greedy_search_repeats_few_rows_alone(translators, monkeypatch):
    model, starts = translators[1].model, []
    start = model._start
    monkeypatch.setattr(model, "_start", lambda *call: starts.append((len(call[1]), call[4])) or start(*call))
    translators[1].translate(LINES, beam=1)
    assert starts[0] == (len(LINES), False)
    assert starts[1][1]
    assert 0 < starts[1][0] < len(LINES)


def test_scores_are_those_among_all_tokens(translators):
    for translator in translators:
        [line] = translator.translate_lines(LINES[:1])
        [scored] = translator.score([(LINES[0], line.text)])
        assert list(line.alternatives[0].hypothesis.token_scores) == pytest.approx(scored.log_probs, abs=1e-4)


def test_an_export_keeps_the_shortlist_which_other_programs_do_not_use(folder, tmp_path):
    heedful.export(folder, tmp_path / "kept", to="safetensors")
    kept, loaded = (load_model(each).tokenizers.shortlist for each in (tmp_path / "kept", folder))
    assert np.array_equal(kept.table, loaded.table)
    assert np.array_equal(kept.always, loaded.always)
    exported = heedful.export(folder, tmp_path / "foreign", to="ctranslate2", inputs=LINES[:3])
    assert exported.agreement.is_equal


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_a_size_that_the_model_does_not_have_is_refused(folder, tmp_path, engine):
    translator: Any = heedful.load(folder, engine=engine)
    with pytest.raises(InputError, match="this model has a shortlist of 2; use that, or 0"):
        translator.translate("one", shortlist=3)
    plain: Any = heedful.load(write_translator(tmp_path / "plain"), engine=engine)
    with pytest.raises(InputError, match=r"shortlist = 2: this model has no shortlist; .* \[decode\] in its"):
        plain.translate("one", shortlist=2)


def test_a_beam_that_is_wider_than_the_shortlist_is_searched_by_torch(folder):
    with pytest.raises(InputError, match=r"decode\.beam = 3: must be at most half"):
        open_predictor(CTranslate2Translator, folder, "ctranslate2", options={"beam": 3})
    assert len(heedful.load(folder, engine="torch").translate(LINES, beam=8)) == len(LINES)


@pytest.mark.parametrize("damage", ["other bytes", "other model"])
def test_a_damaged_shortlist_is_named(damage, tmp_path):
    folder = write_shortlisted(tmp_path / "m")
    if damage == "other bytes":
        (folder / "tokenizer/shortlist/table.npy").write_bytes(b"\0" * 10)
    else:
        loaded = load_model(folder)
        always, table = loaded.tokenizers.shortlist.always, loaded.tokenizers.shortlist.table
        broken = replace(loaded.tokenizers, shortlist=Shortlist(always, table + np.uint32(1000)))
        write_model(folder, loaded.recipe, broken, weights(loaded.model))
    with pytest.raises(InputError, match=r"shortlist/table\.npy"):
        load_model(folder)


def test_numbers_marks_bytes_and_frequent_tokens_are_always_allowed():
    pieces = ["<pad>", "<unk>", "<bos>", "<eos>", "<0x41>", "▁", "▁12", ",", "▁a", "▁b", *["▁rare"] * 300]
    frequency = np.array([0, 0, 0, 9, 0, 0, 0, 0, 50, *[5] * 150, *[0] * 151])
    allowed = set(always_allowed(frequency, pieces).tolist())
    assert {UNK, EOS, 4, 5, 6, 7, 8, 9} <= allowed
    assert len(allowed) < 250


def test_a_copy_of_a_source_token_is_a_candidate():
    shortlist = Shortlist.build(np.full((3, 1), -1), np.array([EOS]), ["x", "y", "z"], ["<pad>", "<unk>", "y", "<eos>"])
    assert shortlist.candidates([0]).tolist() == [EOS]
    assert shortlist.candidates([1, 2]).tolist() == [2, EOS]


def test_torch_gives_other_tokens_no_probability(translators):
    translator, token = translators[0], 213  # a token that some sentences may have
    with torch.no_grad():
        before = translator.model.output.bias.clone()
        translator.model.output.bias[token] += 50.0
        outputs = [each.alternatives[0].hypothesis.tokens for each in translator.translate_lines(LINES)]
        translator.model.output.bias.copy_(before)
    table = translator.tokenizers.shortlist.table
    rows = translator.tokenizers.source.encode_batch(LINES)
    assert [token in output for output in outputs] == [token in table[row] for row in rows]
    assert any(token in output for output in outputs)


def test_training_ends_with_a_shortlist_that_translation_and_evaluation_use(tmp_path, monkeypatch):
    monkeypatch.setattr("heedful.text.shortlist.FREQUENT", 0)
    write_texts(tmp_path)
    train(replace(recipe(tmp_path), decode=DecodeConfig(shortlist=1)), tmp_path / "run")
    loaded = load_model(tmp_path / "run")
    shortlist, tokenizer = loaded.tokenizers.shortlist, loaded.tokenizers.source
    assert shortlist.size == 1
    # The words are written in reverse, so that the likely translation of a token is its copy.
    written = [i for i in range(len(tokenizer)) if i not in shortlist.always and shortlist.table[i, 1] != EOS]
    assert np.mean([shortlist.table[i, 1] == i for i in written]) > 0.8

    searched = []
    monkeypatch.setattr(Shortlist, "candidates", lambda self, row: searched.append(row) or self.always)
    data = replace(loaded.recipe.data, test=loaded.recipe.data.valid)
    loaded.test(data, lambda _: None)
    assert len(searched) == 11
