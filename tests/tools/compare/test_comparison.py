"""A comparison from its systems to its report: equal numbers, failures that stay alone, and going on."""

import json
import re
import shutil
from dataclasses import asdict
from pathlib import Path

import pytest

import heedful.tools.compare.comparison as module
from heedful.architectures.parameters import count_parameters
from heedful.checkpoint import load_model
from heedful.errors import InputError, RunError
from heedful.metrics import Scoring, paired_bootstrap, score
from heedful.tools.compare import measure as measure_module
from heedful.tools.compare.job import Result
from heedful.training import loop
from reversal import write_pairs


def numbers(folder: Path) -> dict:
    """The report as JSON."""
    return json.loads((folder / "out/report.json").read_text())


def test_a_system_that_fails_leaves_the_others_alone(compared):
    folder, outcome = compared
    assert outcome.exit_code == 1
    states = {system["name"]: system["state"] for system in numbers(folder)["systems"]}
    assert states == {"narrow": "done", "wide": "done", "gone": "failed"}
    [gone] = [system for system in outcome.report.systems if system.name == "gone"]
    assert gone.error is not None
    assert "the run has diverged" in gone.error
    for name in ("report.md", "report.html"):
        assert "the run has diverged" in (folder / "out" / name).read_text()


def test_the_numbers_are_those_of_evaluate(compared):
    folder, outcome = compared
    narrow, wide, _ = outcome.report.systems
    texts = {}
    for system in (narrow, wide):
        test = system.measured.test
        texts[system.name] = load_model(folder / "out/runs" / system.name).use().translate(test.texts["source"])
        assert test.texts["output"] == texts[system.name]
        scores = score(texts[system.name], [test.texts["reference"]], Scoring(metrics=("bleu", "chrf"), language="en"))
        assert {found.name: found.value for found in scores}.items() <= test.scores.items()
        assert system.measured.parameters == count_parameters(load_model(folder / "out/runs" / system.name).model).total
    settings = Scoring(metrics=("bleu", "chrf"), language="en")
    references = [narrow.measured.test.texts["reference"]]
    [pair] = outcome.report.pairs
    assert pair.comparisons == paired_bootstrap(texts["narrow"], texts["wide"], references, settings)
    assert wide.scores == {found.name: found.system for found in pair.comparisons}
    stored = numbers(folder)["comparisons"]
    assert stored == [json.loads(json.dumps(asdict(pair)))]


def test_everything_that_costs_is_measured(compared):
    _, outcome = compared
    narrow, wide, _ = outcome.report.systems
    for system in (narrow, wide):
        one = system.measured
        assert (one.updates, one.test.count, sum(one.kinds.values())) == (17, 61, one.parameters)
        assert min(one.seconds, one.test.seconds, system.curves.tokens_per_second) > 0
        assert one.peak_memory > 1e8
        assert one.tokens > 0
    assert wide.measured.flops_per_update > narrow.measured.flops_per_update > 0
    assert wide.measured.flops_per_example > 0


def test_curves_have_all_points_of_the_log_against_each_measure(compared):
    folder, outcome = compared
    for system in outcome.report.done:
        log = [json.loads(line) for line in (folder / "out/runs" / system.name / "log.jsonl").read_text().splitlines()]
        for name in ("loss", "valid_loss", "valid_bleu"):
            wanted = [(record["update"], record[name]) for record in log if name in record]
            assert wanted
            assert system.curves.against("updates", name) == wanted
            flops = system.measured.flops_per_update
            assert system.curves.against("FLOPs", name) == [(update * flops, value) for update, value in wanted]
            minutes = system.curves.against("minutes", name)
            assert [value for _, value in minutes] == [value for _, value in wanted]
            assert sorted(minutes) == minutes


def test_a_report_shows_what_differs_and_nothing_else(compared):
    _, outcome = compared
    assert outcome.report.settings == {"model.d_model": {"narrow": "16", "wide": "32"}}


def test_data_are_prepared_once_for_all(compared):
    folder, _ = compared
    assert (folder / "out/data/tokenizer").is_dir()
    assert not list((folder / "out/runs").glob("*/data"))


def test_samples_show_the_first_sentences_and_the_largest_differences(compared):
    _, outcome = compared
    report = outcome.report
    assert [sample.number for sample in report.first] == [1, 2, 3, 4]
    ranges = [max(sample.scores.values()) - min(sample.scores.values()) for sample in report.different]
    assert ranges == sorted(ranges, reverse=True)
    assert all(sample.outputs.keys() == {"narrow", "wide"} for sample in report.different)


def test_given_again_it_trains_nothing_and_says_the_same(compared, compare, tmp_path, monkeypatch):
    assert compare("a=HERE/toy.toml", updates=3).exit_code == 0
    before = numbers(tmp_path)
    monkeypatch.setattr(module, "run_process", None)
    assert compare("a=HERE/toy.toml", updates=3).exit_code == 0
    assert numbers(tmp_path) == before


def test_a_search_that_is_asked_for_later_is_the_one_that_is_measured(compare):
    wide, narrow = (
        compare("a=HERE/toy.toml", settings=(f"decode.beam={beam}",), updates=2).report.done[0].measured
        for beam in (5, 1)
    )
    assert wide.flops_per_example > 2 * narrow.flops_per_example


def test_another_test_set_or_another_model_is_measured_again(compared, compare, tmp_path, monkeypatch):
    started, run = [], module.run_process
    monkeypatch.setattr(module, "run_process", lambda job: started.append(job.stem) or run(job))
    model = tmp_path / "model"
    shutil.copytree(compared[0] / "out/runs/narrow/model", model)
    again = ("a=HERE/toy.toml", f"b={model}")
    compare(*again, updates=2)
    write_pairs(tmp_path, "test", 61, 7)
    compare(*again, updates=2)
    assert started == ["a", "b", "a", "b"]
    shutil.rmtree(model)
    shutil.copytree(compared[0] / "out/runs/wide/model", model)
    compare(*again, updates=2)
    compare(*again, updates=2)
    assert started == ["a", "b", "a", "b", "b"]


def test_the_memory_of_a_training_is_kept_where_the_measurement_is_interrupted(compare, tmp_path, monkeypatch):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(measure_module, "measure", interrupt)
        with pytest.raises(KeyboardInterrupt):
            compare("a=HERE/toy.toml", updates=2)
    kept = Result.read(tmp_path / "out/results/a.json")
    assert kept.measured is None
    result = json.loads((tmp_path / "out/results/a.json").read_text()) | {"peak_memory": 10**13}
    (tmp_path / "out/results/a.json").write_text(json.dumps(result))
    [a] = compare("a=HERE/toy.toml", updates=2).report.done
    assert ((kept.peak_memory or 0) > 1e8, a.measured.peak_memory) == (True, 10**13)


def test_a_model_of_other_training_data_is_told(compared, compare, tmp_path):
    runs = compared[0] / "out/runs"
    same = compare("a=HERE/toy.toml", f"b={runs / 'wide'}", updates=2)
    assert [system.shares_data for system in same.report.done] == [True, True]
    assert "Trained on other data" not in (tmp_path / "out/report.md").read_text()
    write_pairs(tmp_path, "train", 97, 11)
    (tmp_path / "out/data").rename(tmp_path / "old")
    shutil.rmtree(tmp_path / "out/runs")
    other = compare("a=HERE/toy.toml", f"b={runs / 'wide'}", updates=2)
    assert [system.shares_data for system in other.report.done] == [True, False]
    text = (tmp_path / "out/report.md").read_text()
    assert "Trained on other data, or on data that is not available for comparison: b." in text
    assert "the data and their order included" not in text
    assert not re.search(r"\| (loss|perplexity) \|.*\*\*", text)
    assert re.search(r"\| chrF2 \|.*\*\*", text)


def test_all_texts_are_scored_as_those_of_one_language(compare, tmp_path, monkeypatch):
    settings = ("a:data.target_language=tgt", "b:data.target_language=zh")
    outcome = compare("a=HERE/toy.toml", "b=HERE/toy.toml", settings=settings, updates=2)
    a, b = outcome.report.done
    assert a.measured.test.language == b.measured.test.language == "zh"
    assert a.measured.test.scores == b.measured.test.scores
    monkeypatch.setattr(module, "run_process", None)
    settings = ("a:data.target_language=de", "b:data.target_language=zh")
    refusal = 'b: its data.target_language is "zh", but texts are scored here as "de"'
    with pytest.raises(InputError, match=refusal):
        compare("a=HERE/toy.toml", "b=HERE/toy.toml", settings=settings)


def test_more_updates_go_on_from_where_the_last_ended(compare, tmp_path, monkeypatch):
    compare("a=HERE/toy.toml", updates=5)
    started = []
    train = loop.train
    monkeypatch.setattr(loop, "train", lambda *given: started.append(given) or train(*given))
    outcome = compare("a=HERE/toy.toml", updates=9)
    assert len(started) == 1
    assert outcome.report.done[0].measured.updates == 9
    assert (tmp_path / "out/runs/a/checkpoints/step-00000005").is_dir()


def test_an_error_of_any_kind_is_the_systems_own(compare, tmp_path, monkeypatch):
    measure = measure_module.measure

    def fail_for_a(job, peak):
        if job.folder.name == "a":
            raise MemoryError("no more")
        return measure(job, peak)

    monkeypatch.setattr(measure_module, "measure", fail_for_a)
    outcome = compare("a=HERE/toy.toml", "b=HERE/toy.toml", updates=2)
    a, b = outcome.report.systems
    assert (outcome.exit_code, a.state, a.error, b.state) == (1, "failed", "MemoryError: no more", "done")
    monkeypatch.setattr(measure_module, "measure", measure)
    assert compare("a=HERE/toy.toml", "b=HERE/toy.toml", updates=2).exit_code == 0


def test_a_process_that_is_killed_is_told(compare, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "run_process", lambda _: (-9, None))
    [a] = compare("a=HERE/toy.toml", updates=2).report.systems
    assert a.error.startswith("its process was killed, probably because memory ran out")
    monkeypatch.setattr(module, "run_process", lambda _: (3, None))
    [a] = compare("a=HERE/toy.toml", updates=2).report.systems
    assert a.error == "its process exited with code 3 and wrote no result"
    text = (tmp_path / "out/report.md").read_text()
    assert "wrote no result" in text
    assert "| parameters" not in text


def test_a_diverged_system_says_so(compare, monkeypatch):
    def diverge(recipe, folder, console, data):
        raise RunError("the run has diverged")

    monkeypatch.setattr(loop, "train", diverge)
    [a] = compare("a=HERE/toy.toml").report.systems
    assert (a.state, a.error) == ("failed", "the run has diverged")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["b:tokenizer.vocab_size=19"], "differs from that of a"),
        (["b:data.valid.source=test.src", "b:data.valid.target=test.tgt"], "validation text or tokenizer differ"),
        (["b:data.test.source=valid.src", "b:data.test.target=valid.tgt"], "its test set (data.test) differs from"),
        (["b:task=text_to_text"], 'its task is "text_to_text", but that of a is "translation"'),
        (["b:model.d_modle=7"], 'did you mean "model.d_model"'),
    ],
)
def test_systems_with_other_data_are_refused(compare, monkeypatch, settings, words):
    monkeypatch.setattr(module, "run_process", None)
    with pytest.raises(InputError, match=f"1 of 2 systems cannot be compared.*\n  b: .*{re.escape(words)}"):
        compare("a=HERE/toy.toml", "b=HERE/toy.toml", settings=tuple(settings))


def test_systems_of_other_sizes_than_the_budget_are_refused(compare, monkeypatch):
    monkeypatch.setattr(module, "run_process", None)
    settings = ("b:model.d_model=64",)
    with pytest.raises(InputError, match=r"\n  b: .*but --parameters 5,400"):
        compare("a=HERE/toy.toml", "b=HERE/toy.toml", settings=settings, parameters=5400)


@pytest.mark.parametrize("names", [["gone.toml"], ["gone.toml", "no"], ["gone.toml", "toy.toml", "gone/run"]])
def test_all_wrong_names_are_named_before_a_system_is_trained(compare, monkeypatch, names):
    monkeypatch.setattr(module, "run_process", None)
    systems = [f"s{number}=HERE/{name}" for number, name in enumerate(names)]
    with pytest.raises(InputError) as refused:
        compare("good=HERE/toy.toml", *systems)
    lines = str(refused.value).splitlines()[1:]
    wrong = [number for number, name in enumerate(names) if name != "toy.toml"]
    assert [line.split(":")[0].strip() for line in lines] == [f"s{number}" for number in wrong]
    assert all("no such recipe" in line for line in lines)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\xfd" * 40, None], ids=["empty", "no text", "not there"])
@pytest.mark.parametrize("of_all", [True, False])
def test_a_test_set_that_cannot_be_read_is_named_before_a_system_is_trained(
    compare, tmp_path, monkeypatch, content, of_all
):
    monkeypatch.setattr(module, "run_process", None)
    for ending in ("src", "tgt") if content is not None else ():
        (tmp_path / f"bad.{ending}").write_bytes(content)
    owner = "" if of_all else "b:"
    settings = (f"{owner}data.test.source=bad.src", f"{owner}data.test.target=bad.tgt")
    with pytest.raises(InputError, match=r"(?s)\n  b: .*bad\.(src|tgt)"):
        compare("a=HERE/toy.toml", "b=HERE/toy.toml", settings=settings)


def test_a_trained_run_and_a_trained_model_are_loaded(compared, compare, tmp_path):
    folder, before = compared
    runs = folder / "out/runs"
    outcome = compare(f"run={runs / 'narrow'}", f"model={runs / 'wide/model'}", "new=HERE/toy.toml", updates=1)
    run, model, new = outcome.report.systems
    assert outcome.exit_code == 0
    assert run.measured.test.scores == before.report.systems[0].measured.test.scores
    assert run.curves.against("updates", "loss") == before.report.systems[0].curves.against("updates", "loss")
    assert run.remarks == ["has 17 updates instead of --updates 1"]
    assert (model.measured.updates, model.curves.values) == (None, {})
    assert model.measured.flops_per_update == before.report.systems[1].measured.flops_per_update
    assert new.measured.updates == 1


def test_nothing_to_compare_is_refused(compare):
    with pytest.raises(InputError, match=r"none of these systems can be compared\n  a: .*no such recipe"):
        compare("a=HERE/no.toml")


def test_a_folder_of_data_and_the_folder_of_a_run_are_refused(compare, tmp_path):
    (tmp_path / "texts").mkdir()
    with pytest.raises(InputError, match=r"texts: contains neither a recipe \(config\.toml\) nor a model"):
        compare("a=HERE/texts", "b=HERE/toy.toml")
    (tmp_path / "out/checkpoints").mkdir(parents=True)
    with pytest.raises(InputError, match="out: contains a run, not a comparison; choose another folder"):
        compare("a=HERE/toy.toml")


def test_the_problems_of_a_system_are_indented_below_its_name(compare):
    with pytest.raises(InputError, match=r"\n  a: 2 problems .*\n    data\.train\.0\.source"):
        compare("a=HERE/toy.toml", settings=("data.train.0.source=no", "data.valid.source=no"))


def test_minutes_end_a_training_and_count_what_was_spent(compare, tmp_path):
    budget = {"minutes": 1e-6}
    [a] = compare("a=HERE/toy.toml", **budget).report.systems
    assert a.measured.updates == 1
    assert a.remarks == []
    result = tmp_path / "out/results/a.json"
    result.unlink()
    [a] = compare("a=HERE/toy.toml", **budget).report.systems
    assert a.measured.updates == 1


def test_without_a_test_set_systems_are_tested_on_the_validation_set(compare):
    outcome = compare("a=HERE/toy.toml", settings=("data.test=null",), updates=1)
    assert outcome.report.test == "the validation set (no recipe has a test set), valid.src"
    assert outcome.report.done[0].measured.test.count == 11


def test_a_result_of_another_version_is_no_result(tmp_path):
    (tmp_path / "a.json").write_text('{"measured": {"was": 1}}')
    assert Result.read(tmp_path / "a.json") == Result.read(tmp_path / "none.json") == Result()
