"""A run tells how it went; its checkpoints, opened one by one, say what their heads did."""

import json
import shutil
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest

import every_architecture
from heedful.checkpoint import Checkpoints, load_model
from heedful.config.load import recipe_from_dict
from heedful.errors import InputError
from heedful.inspector.capture.trace import trace
from heedful.inspector.development import (
    Aligned,
    alignment,
    curves,
    gold_alignment,
    read_run,
    run_of,
    snapshots,
)
from heedful.inspector.measures.attention import alignment_error, cross_attention
from heedful.inspector.overview import measures
from interrupted import train
from reversal import SETTINGS, write_pairs

TEXT, TARGET = "w1 w2 w3 w5", "w5 w3 w2 w1"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of 19 updates that has kept those of 5, 10, 15 and 19, whose validation set has a gold alignment."""
    folder = tmp_path_factory.mktemp("development")
    write_pairs(folder, "train", 101, seed=1)
    write_pairs(folder, "valid", 11, seed=2)
    sources = [line.split() for line in (folder / "valid.src").read_text().splitlines()]
    links = [" ".join(f"{len(words) - 1 - i}-{i}" for i in range(len(words))) for words in sources]
    (folder / "valid.align").write_text("\n".join(links) + "\n")
    for side in ("src", "tgt"):
        shutil.copy(folder / f"valid.{side}", folder / f"valid.words.{side}")
    settings = deepcopy(SETTINGS)
    settings["data"]["root"] = str(folder)
    settings["train"]["keep_last"] = 7
    train(recipe_from_dict(settings, "test"), folder / "run")
    return folder / "run"


def test_a_run_is_found_from_its_model_and_from_its_checkpoints(run):
    assert run_of(load_model(run).path) == run
    assert run_of(Checkpoints(run, keep_last=2).path(10)) == run
    assert run_of(load_model("en-de").path) is None


def test_curves_hold_every_number_of_the_log(run):
    found = curves(run / "log.jsonl")
    records = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    for record in records:
        for name, value in record.items():
            if name != "update" and value is not None:
                assert (record["update"], value) in found[name]
    assert sum(map(len, found.values())) == sum(v is not None for record in records for v in record.values()) - len(
        records
    )
    assert {"loss", "valid_loss"} <= found.keys()


def test_a_line_that_is_still_written_waits_and_a_damaged_one_is_named(tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text('{"update": 3, "loss": 2.5, "norm": null, "lr": NaN}\n{"update": 5, "lo')
    assert curves(log) == {"loss": [(3, 2.5)]}
    for damaged in ("[5]", '{"update": 4, "loss": [1]}', f'{{"update": 4, "loss": 1{"0" * 400}}}', '{"loss": 2}'):
        log.write_text(f'{{"update": 3, "loss": 2.5}}\n{damaged}\n')
        with pytest.raises(InputError, match=r"log\.jsonl, line 2"):
            curves(log)
    log.write_bytes(b'{"update": 3, "loss\xff": 2.5}\n')
    with pytest.raises(InputError, match=r"log\.jsonl: cannot be read as text"):
        curves(log)


def test_what_is_kept_and_best_is_told(run):
    found = read_run(run)
    assert found.folder == run
    assert found.steps == Checkpoints(run, keep_last=2).steps()
    assert len(found.steps) >= 3
    assert found.best in found.steps


def test_heads_are_measured_as_in_a_look_at_each_checkpoint(run):
    found = list(snapshots(run, TEXT, TARGET))
    assert [one.step for one in found] == Checkpoints(run, keep_last=2).steps()
    for one in found:
        subject = load_model(Checkpoints(run, keep_last=2).path(one.step)).use()
        expected = measures(trace(subject, TEXT, TARGET, keep=["*.attn"]))
        alone = {
            block: {name: values for name, values in kinds.items() if name != "alignment"}
            for block, kinds in one.heads.items()
        }
        assert alone == expected
    assert found[0].heads["dec.0.cross"] != found[-1].heads["dec.0.cross"]


def test_the_alignment_error_is_the_mean_over_the_validation_set(run):
    loaded = load_model(Checkpoints(run, keep_last=2).path(10))
    gold = list(gold_alignment(loaded.recipe, limit=5))
    assert len(gold) == 5
    assert all(one.source.split()[i] == one.target.split()[j] for one in gold for i, j in one.links)
    found = alignment(loaded.use(), gold)
    for head in range(2):
        each = []
        for one in gold:
            words = cross_attention(loaded.use(), one.source, one.target).by_word()[..., :-1, :-1]
            each.append(float(alignment_error(words, one.links)[0, head]))
        assert found["dec.0.cross"][head] == pytest.approx(mean(each))
    [snapshot] = [one for one in snapshots(run, TEXT, TARGET) if one.step == 10]
    assert len(snapshot.heads["dec.0.cross"]["alignment"]) == 2
    assert "alignment" not in snapshot.heads["dec.0.self"]


def test_sentences_that_are_cut_into_other_words_are_left_out(run):
    subject = load_model(run).use()
    fits = Aligned(TEXT, TARGET, TEXT.split(), TARGET.split(), [(0, 3), (1, 2), (2, 1), (3, 0)])
    other = Aligned(TEXT, TARGET, ["w1w2", "w3", "w5"], TARGET.split(), [(0, 0)])
    assert alignment(subject, [other, fits]) == alignment(subject, [fits])
    assert alignment(subject, [other]) == {}


def test_the_alignment_of_a_recurrent_decoder_is_that_of_its_last_layer():
    subject = every_architecture.translator("lstm with general attention")
    words = cross_attention(subject, TEXT, TEXT).source.words[:-1]
    assert list(alignment(subject, [Aligned(TEXT, TEXT, words, words, [(0, 0)])])) == ["dec.1.cross"]


def test_data_without_a_gold_alignment_have_none(run):
    recipe = load_model(run).recipe
    (run.parent / "valid.align").rename(run.parent / "elsewhere")
    try:
        assert list(gold_alignment(recipe)) == []
        assert all("alignment" not in one.heads["dec.0.cross"] for one in snapshots(run, TEXT, TARGET))
    finally:
        (run.parent / "elsewhere").rename(run.parent / "valid.align")


@pytest.mark.parametrize("separator", ["\u2028", "\u0085", "\v", "\f", "\r"], ids=ascii)
def test_a_line_of_a_gold_alignment_ends_at_a_line_feed_only(run, tmp_path, separator):
    data = tmp_path / "data"
    shutil.copytree(run.parent, data, ignore=shutil.ignore_patterns("run"))
    words = data / "valid.words.src"
    words.write_bytes(words.read_text().replace(" ", f"{separator} ", 1).encode())
    recipe = load_model(run).recipe
    found = list(gold_alignment(replace(recipe, data=replace(recipe.data, root=str(data)))))
    assert len(found) == 11
    assert all(one.source_words == one.source.split() for one in found)


def test_a_damaged_checkpoint_is_left_out(run, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    steps = Checkpoints(copy, keep_last=2).steps()
    (Checkpoints(copy, keep_last=2).path(steps[1]) / "model.safetensors").write_bytes(b"broken")
    assert [one.step for one in snapshots(copy, TEXT, TARGET)] == [steps[0], *steps[2:]]


def test_a_text_that_does_not_fit_is_refused(run):
    with pytest.raises(InputError, match="the text is empty"):
        next(snapshots(run, " ", None))


@pytest.mark.parametrize("link", ["1p1", "0-99", "99-0", "-1-0", "0"])
def test_a_link_that_is_none_is_refused_with_its_line(run, link, tmp_path):
    recipe = load_model(run).recipe
    for name in ("valid.src", "valid.tgt", "valid.words.src", "valid.words.tgt"):
        shutil.copy(Path(recipe.data.root) / name, tmp_path)
    (tmp_path / "valid.align").write_text("\n" * 2 + f"0-0 {link}\n" + "\n" * 8)
    moved = replace(recipe, data=replace(recipe.data, root=str(tmp_path)))
    with pytest.raises(InputError, match=rf"valid\.align, line 3: '{link}' does not link one of"):
        list(gold_alignment(moved))
