"""Code that imports modules by the names that they had before gets the same classes, and a warning."""

import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from heedful import former_names

SOURCE = Path(former_names.__file__).parent

NAMES = {
    "heedful.models.model": ("heedful.architectures.model", "SourceToTarget"),
    "heedful.models": ("heedful.architectures", "SourceToTarget"),
    "heedful.decode.beam": ("heedful.search.beam", "beam_search"),
    "heedful.decode.translator": ("heedful.predictors.translator", "Translator"),
    "heedful.predict.classifier": ("heedful.predictors.classifier", "Classifier"),
    "heedful.parallel.reducer": ("heedful.distributed.reducer", "Reducer"),
    "heedful.train.callbacks": ("heedful.training.callbacks", "Callback"),
    "heedful.train.log_file": ("heedful.training.logger", "LOG"),
    "heedful.data.media.pictures": ("heedful.media.images", "read_image"),
    "heedful.data.readers.names": ("heedful.data.readers.rows", "find_name"),
    "heedful.serve.inspector.look_cache": ("heedful.server.inspector.inspection_handlers", "InspectionCache"),
    "heedful.plan.layouts": ("heedful.tools.plan.plan", "make_plan"),
    "heedful.runs": ("heedful.tools.runs", "find_runs"),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("former", NAMES)
def test_a_former_name_gives_the_module_of_today(former):
    today, name = NAMES[former]
    code = (
        "import heedful, importlib, warnings\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        f"    former = importlib.import_module({former!r})\n"
        f"assert '{today}; import that' in str([each.message for each in caught])\n"
        f"assert former.{name} is importlib.import_module({today!r}).{name}\n"
        "assert heedful.train.__name__ == 'train' and callable(heedful.train)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_line_of_the_table_names_a_former_module_and_one_of_today():
    lines = Path(former_names.__file__).with_suffix(".txt").read_text().splitlines()
    assert len(lines) > 150
    for former, today in map(str.split, lines):
        (former_module, _, former_name), (module, _, name) = former.partition(":"), today.partition(":")
        assert bool(former_name) == bool(name)
        assert not (SOURCE / f"{former_module.replace('.', '/')}.py").exists()
        assert find_spec(f"heedful.{module}") is not None
        assert not name or hasattr(import_module(f"heedful.{module}"), name)


def test_functions_and_classes_are_found_by_their_former_names():
    code = (
        "import warnings; warnings.simplefilter('ignore')\n"
        "from heedful.evaluate.significance import compare_outcomes, mean_outcomes\n"
        "from heedful.metrics.bootstrap import compare_scores, mean_scores\n"
        "assert (compare_outcomes, mean_outcomes) == (compare_scores, mean_scores)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_module_that_never_was_is_not_found():
    code = "import heedful.models.nothing"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ModuleNotFoundError: No module named 'heedful.models.nothing'" in process.stderr
