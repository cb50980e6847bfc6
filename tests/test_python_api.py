"""What somebody tries first in a notebook, each try in a line or two."""

import subprocess
import sys
from collections import UserList
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import heedful
from heedful.architectures import weights
from heedful.checkpoint import write_model
from heedful.config.schema import DecodeConfig, Recipe
from heedful.errors import InputError
from heedful.inspector.page import Page
from heedful.predictors import Classifier, Translator
from served import PAGE
from subjects import SHAPE, translator

TEXT = "Where is the train station?"
GERMAN = "Wo ist der Bahnhof?"


class Column(UserList):
    """Iterated by values, as a column of pandas is, which is no list."""


@pytest.fixture(scope="module")
def boxed():
    return heedful.load("en-de", "cpu")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run, with a model that has learned nothing."""
    subject, folder = translator(), tmp_path_factory.mktemp("run")
    recipe = Recipe(name="toy", model=SHAPE, decode=DecodeConfig(beam=3, max_extra=5))
    write_model(folder / "model", recipe, subject.tokenizers, weights(subject.model))
    return folder


def test_one_string_is_one_translation(boxed):
    assert boxed.translate(TEXT) == GERMAN


@pytest.mark.parametrize("many", [list, tuple, iter, np.array, Column], ids=lambda kind: kind.__name__)
def test_any_iterable_of_strings_is_a_list_of_translations(boxed, many):
    assert boxed.translate(many([TEXT, "", TEXT])) == [GERMAN, "", GERMAN]
    assert boxed.translate(line for line in [TEXT]) == [GERMAN]


def test_nothing_to_translate_is_nothing(boxed):
    assert boxed.translate("") == ""
    assert boxed.translate([]) == []


@pytest.mark.parametrize("given", [None, 7, 2.5, {"text": TEXT}, [TEXT, None], [[TEXT]]], ids=repr)
def test_what_is_no_text_is_one_clear_message(boxed, given):
    with pytest.raises(InputError, match=r"(is not|is neither) a text.*give a string"):
        boxed.translate(given)


def test_the_beam_is_chosen_for_a_call(boxed):
    assert isinstance(boxed.translate(TEXT, beam=1, alpha=1.0), str)
    assert boxed.config.beam == boxed.recipe.decode.beam
    with pytest.raises(InputError, match='unknown option beem; did you mean "beam"'):
        boxed.translate(TEXT, beem=1)


def test_a_device_is_a_string_or_torchs_own(boxed):
    assert boxed.device == torch.device("cpu")
    assert boxed.to("cpu") is boxed.to(torch.device("cpu")) is boxed
    assert heedful.load("en-de", device=torch.device("cpu")).device == boxed.device


def test_a_model_says_what_it_is(boxed):
    assert repr(boxed) == (
        "Translator(task='translation', family='encoder_decoder', parameters=5_620_992, precision='float32', "
        "device='cpu')"
    )


def test_a_trace_takes_a_name_or_a_model_and_one_text_or_several(boxed):
    seen = heedful.trace(boxed, TEXT, keep="dec.0.cross.attn")
    assert seen["dec.0.cross.attn"].shape == (4, 6, 7)
    assert np.array_equal(heedful.trace("en-de", TEXT)["dec.0.cross.attn"], seen["dec.0.cross.attn"])
    first, second = heedful.trace(boxed, [TEXT, "Good morning!"])
    assert first["src.in"].shape != second["src.in"].shape
    assert heedful.trace(boxed, TEXT, "Wo ist er?").lines["tgt"].read.labels[1] == "▁Wo"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((None,), "None is neither a text"),
        (("",), "the text is empty"),
        (([TEXT], "Wo?"), "a target belongs to one text"),
        ((TEXT, 7), "7 .int. is not a text"),
        ((TEXT, None, "dec.9.*"), "the tensor dec.9"),
    ],
)
def test_what_cannot_be_traced_is_told(boxed, arguments, words):
    with pytest.raises(InputError, match=words):
        heedful.trace(boxed, *arguments)


def test_a_model_is_loaded_as_the_predictor_of_its_task_and_as_no_other(run):
    assert isinstance(heedful.load(run, "cpu", as_=Translator), Translator)
    with pytest.raises(InputError, match=r"is a translation model; use it with `heedful translate`"):
        heedful.load(run, "cpu", as_=Classifier)


def test_a_look_at_a_loaded_model_is_saved(run, tmp_path, monkeypatch):
    monkeypatch.setattr(Page, "built", lambda: PAGE)
    for model in (heedful.load(run), run, str(run)):
        heedful.look(model, "the old dog").save(tmp_path / "page.html")
        assert 'data-part="overview"' in (tmp_path / "page.html").read_text(encoding="utf-8")
    with pytest.raises(InputError, match=r"\['a', 'b'\] .list. is not a text; give a string"):
        heedful.look(run, ["a", "b"])


def test_a_run_is_loaded_and_a_missing_folder_told(run):
    assert repr(heedful.load(run)).startswith("Translator(task='translation'")
    assert heedful.load(str(run)).translate("the old dog", beam=1) == heedful.load(run).translate("the old dog", beam=1)
    for missing in ("runs/nowhere", Path("runs/nowhere")):
        with pytest.raises(InputError, match='no model "runs/nowhere": no such folder'):
            heedful.load(missing)
    others: tuple[Any, ...] = (None, 7, heedful.load(run))
    for given in others:
        with pytest.raises(InputError, match="cannot be loaded; give a model folder, or the name of a bundled model"):
            heedful.load(given)


def test_type_checkers_read_the_types():  # what they are: tests/typed_uses.py
    assert (files("heedful") / "py.typed").is_file()


def test_dir_lists_the_public_names_only():
    import heedful

    assert dir(heedful) == sorted(heedful.__all__)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "program",
    [
        "import heedful.training.in_process; heedful.training.in_process.train",
        "import heedful, heedful.training.logger; heedful.training.logger.records",
        "import heedful.training.in_process as module; module.TrainingResult",
        "import heedful.train as train; import heedful.training.in_process; train.in_process.train",
        "import heedful.train.in_process; heedful.train.in_process.train",
        "from heedful.train import in_process; import heedful; heedful.training.in_process is in_process or exit(1)",
        "import heedful; heedful.train.__name__ == 'train' and callable(heedful.train) or exit(1)",
    ],
)
def test_the_modules_of_training_are_imported_as_any_others(program):
    subprocess.run([sys.executable, "-c", program], check=True)
