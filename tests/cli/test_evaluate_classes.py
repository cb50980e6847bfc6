"""`heedful evaluate` of models that predict classes: scores of each class, confusion matrix, missing classes."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from invocation import invoke
from rich.console import Console

import heedful
from heedful.config.load import recipe_from_dict
from heedful.errors import InputError
from heedful.predictors.classifier import Classifier
from heedful.training.loop import train
from toy_media import ENDINGS, LABELS, write_files, write_untrained
from toy_media import TASKS as MEDIA

SHAPE = {"d_model": 14, "d_ff": 23, "heads": 2, "encoder_layers": 1, "segments": 2}
TEXTS = [f"w{i % 7} w{i % 5} w{i % 11}" for i in range(60)]


@dataclass(frozen=True)
class Case:
    """A model, a test set without an example of the class `lacking`, and the expected and predicted classes of it."""

    model: str
    source: str
    lacking: str
    expected: list[str]
    predicted: list[str]
    labels: tuple[str, ...]


def learned(task: str, folder: Path, corpus: dict[str, str]) -> None:
    settings = {
        "task": task,
        "data": {"root": str(folder), "train": [corpus], "max_length": 19},
        "tokenizer": {"kind": "word", "byte_fallback": False, "pretokenized": True},
        "model": {"family": "encoder", **SHAPE},
        "optimizer": {"name": "adamw", "lr": 0.05, "schedule": "constant", "warmup": 0},
        "train": {"max_updates": 9, "batch_tokens": 201, "device": "cpu", "threads": 1},
    }
    train(recipe_from_dict(settings, "test"), folder / "model", Console(quiet=True))


def of_texts(folder: Path) -> Case:
    rows = [(text, ("ant", "bee", "cow")[i % 3]) for i, text in enumerate(TEXTS)]
    (folder / "train.tsv").write_text("".join(f"{text}\t{label}\n" for text, label in rows))
    kept = [row for row in rows if row[1] != "bee"]
    (folder / "test.tsv").write_text("".join(f"{text}\t{label}\n" for text, label in kept))
    learned("classification", folder, {"source": "train.tsv"})
    answers = heedful.load(folder / "model").predict([text for text, _ in kept])
    return Case(
        "model", "test.tsv", "bee", [x for _, x in kept], [answer.label for answer in answers], ("ant", "bee", "cow")
    )


def of_pairs(folder: Path) -> Case:
    rows = [(text, TEXTS[-1 - i], ("no", "so", "yes")[i % 3]) for i, text in enumerate(TEXTS)]
    (folder / "train.csv").write_text("a,b,c\n" + "".join(f"{','.join(row)}\n" for row in rows))
    kept = [row for row in rows if row[2] != "no"]
    (folder / "test.csv").write_text("a,b,c\n" + "".join(f"{','.join(row)}\n" for row in kept))
    fields = {"source_field": "a", "pair_field": "b", "target_field": "c"}
    learned("classification", folder, {"source": "train.csv", **fields})
    answers = heedful.load(folder / "model", as_=Classifier).predict([(first, second) for first, second, _ in kept])
    return Case(
        "model", "test.csv", "no", [row[2] for row in kept], [answer.label for answer in answers], ("no", "so", "yes")
    )


def of_words(folder: Path) -> Case:
    kinds = ("B-place", "B-name")
    sentences = [[(f"w{(i * j) % 13}", kinds[i % 2] if j == 2 else "O") for j in range(1, 6)] for i in range(1, 40)]
    kept = [sentence for sentence in sentences if all(tag != "B-name" for _, tag in sentence)]

    def conll(each: list[list[tuple[str, str]]]) -> str:
        return "\n".join("".join(f"{word}\t{tag}\n" for word, tag in sentence) for sentence in each)

    (folder / "train.conll").write_text(conll(sentences))
    (folder / "test.conll").write_text(conll(kept))
    learned("tagging", folder, {"source": "train.conll"})
    answers = heedful.load(folder / "model").tag([word for word, _ in sentence] for sentence in kept)
    predicted = [tag[2:] or tag for answer in answers for tag in answer.tags]
    expected = [tag[2:] or tag for sentence in kept for _, tag in sentence]
    return Case("model", "test.conll", "name", expected, predicted, ("O", "name", "place"))


def of_files(task: str) -> Callable[[Path], Case]:
    def made(folder: Path) -> Case:
        write_files(task, folder)
        write_untrained(task, folder / "model", folder)
        lacking, *others = sorted(LABELS[task])
        for file in (folder / "valid" / lacking).iterdir():
            file.unlink()
        files = [(path, label) for label in others for path in (folder / "valid" / label).glob(f"*{ENDINGS[task]}")]
        answers = heedful.load(folder / "model").predict([str(path) for path, _ in files])
        expected, predicted = [label for _, label in files], [answer.label for answer in answers]
        return Case("model", "valid", lacking, expected, predicted, LABELS[task])

    return made


CASES = {"texts": of_texts, "pairs": of_pairs, "tagging": of_words, **{task: of_files(task) for task in MEDIA}}


@pytest.fixture(params=CASES, scope="module")
def made(request, tmp_path_factory) -> tuple[Path, Case]:
    folder = tmp_path_factory.mktemp("case")
    return folder, CASES[request.param](folder)


@pytest.fixture
def case(made, monkeypatch) -> Case:
    monkeypatch.chdir(made[0])
    return made[1]


def test_each_count_of_the_confusion_matrix_is_one_of_predictions(case):
    result = json.loads(invoke("evaluate", case.model, "--source", case.source, "--json").stdout)
    found = result["confusion_matrix"]
    pairs = Counter(zip(case.expected, case.predicted, strict=True))
    assert tuple(found["labels"]) == case.labels
    assert found["counts"] == [[pairs[row, column] for column in case.labels] for row in case.labels]
    assert (found["rows"], found["columns"]) == ("expected", "predicted")


def test_each_class_has_precision_recall_f1_and_support(case):
    result = json.loads(invoke("evaluate", case.model, "--source", case.source, "--json").stdout)
    pairs = list(zip(case.expected, case.predicted, strict=True))
    classes = result["classes"]
    assert tuple(classes) == tuple(label for label in case.labels if label != "O")
    for label, scores in classes.items():  # words of one kind do not touch here, so that spans are words
        right = pairs.count((label, label))
        support, predicted = case.expected.count(label), case.predicted.count(label)
        assert (scores["support"], scores["predicted"]) == (support, predicted)
        assert scores["precision"] == pytest.approx(right / predicted if predicted else 0.0)
        assert scores["recall"] == pytest.approx(right / support if support else 0.0)
        assert scores["f1"] == pytest.approx(2 * right / max(1, support + predicted))


def test_macro_averages_say_over_which_classes(case):
    result = json.loads(invoke("evaluate", case.model, "--source", case.source, "--json").stdout)
    classes, macro = result["classes"], result["macro"]
    assert macro["classes"] == [x for x in classes if classes[x]["support"] or classes[x]["predicted"]]
    for name in ("precision", "recall", "f1"):
        assert macro[name] == pytest.approx(sum(classes[x][name] for x in macro["classes"]) / len(macro["classes"]))
    if "macro_f1" in result["scores"]:
        assert macro["f1"] == pytest.approx(result["scores"]["macro_f1"])
    printed = invoke("evaluate", case.model, "--source", case.source).stdout
    over = len(macro["classes"])
    assert f"macro averages are over {'all ' if over == len(classes) else ''}{over}" in printed


@pytest.mark.sampled(2)
def test_a_class_without_an_example_is_named_in_every_report(case):
    evaluate = ("evaluate", case.model, "--source", case.source)
    plain, as_json, against = invoke(*evaluate), invoke(*evaluate, "--json"), invoke(*evaluate, "--against", case.model)
    assert f"classes without an example in this test set: {case.lacking}\n" in plain.stdout
    assert json.loads(as_json.stdout)["classes_without_examples"] == [case.lacking]
    for result in (plain, as_json, against):
        assert f"the test set has no examples of {case.lacking}: its scores do not show" in result.stderr
    compared = json.loads(invoke(*evaluate, "--against", case.model, "--json").stdout)
    assert compared["classes_without_examples"] == [case.lacking]


def test_the_text_has_a_row_for_each_class_and_the_matrix(case):
    lines = invoke("evaluate", case.model, "--source", case.source).stdout.splitlines()
    rows = [line.split() for line in lines]
    result = json.loads(invoke("evaluate", case.model, "--source", case.source, "--json").stdout)
    for label, scores in result["classes"].items():
        figures = [f"{scores[name]:.4f}" for name in ("precision", "recall", "f1")]
        assert [label, *figures, str(scores["support"])] in rows
    for label, counts in zip(case.labels, result["confusion_matrix"]["counts"], strict=True):
        assert [label, *map(str, counts)] in rows


@pytest.mark.sampled(4)
@pytest.mark.parametrize("ending", [".png", ".svg"])
def test_the_matrix_is_drawn_on_request(case, ending, tmp_path):
    plot = tmp_path / f"confusion{ending}"
    result = invoke("evaluate", case.model, "--source", case.source, "--plot", plot)
    assert f"{plot}: confusion matrix" in result.stderr
    assert plot.read_bytes().startswith(b"\x89PNG" if ending == ".png" else b"<?xml")


def test_a_picture_needs_the_ending_of_one_and_overwrites_no_data(case, tmp_path):
    with pytest.raises(InputError, match=r"--plot confusion\.pdf: the name of an image must end in \.png or \.svg"):
        invoke("evaluate", case.model, "--source", case.source, "--plot", "confusion.pdf")
    with pytest.raises(InputError, match="leave --against out"):
        invoke("evaluate", case.model, "--source", case.source, "--against", case.model, "--plot", tmp_path / "c.png")


def test_a_picture_of_what_has_no_classes_is_refused(tmp_path):
    (tmp_path / "train.tsv").write_text("".join(f"w{i % 5} w{i % 3}\t{i % 7}\n" for i in range(30)))
    learned("regression", tmp_path, {"source": "train.tsv"})
    with pytest.raises(InputError, match="does not predict classes; leave it out"):
        invoke("evaluate", tmp_path / "model", "--source", tmp_path / "train.tsv", "--plot", tmp_path / "c.png")
    with pytest.raises(InputError, match="translations are not classes"):
        invoke("evaluate", "en-de", "--plot", tmp_path / "c.png")


def test_a_model_that_predicts_one_class_only_is_pointed_out(tmp_path):
    rows = [("w1 w2 w3", "rare" if i % 10 == 0 else "usual") for i in range(40)]
    (tmp_path / "train.tsv").write_text("".join(f"{text}\t{label}\n" for text, label in rows))
    learned("classification", tmp_path, {"source": "train.tsv"})
    result = invoke("evaluate", tmp_path / "model", "--source", tmp_path / "train.tsv")
    assert "predicts 'usual' for all 40 examples of the test set" in result.stderr
    assert 'train.class_weights = "balanced"' in result.stderr
