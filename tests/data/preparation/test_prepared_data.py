from pathlib import Path

import pytest

from heedful.config.load import make_recipe
from heedful.data.preparation import prepared_data
from heedful.data.preparation.pairs import prepare_pairs
from heedful.data.preparation.prepared_data import data_digest
from heedful.errors import InputError
from reversal import recipe, write_pairs


@pytest.fixture
def text(tmp_path: Path) -> Path:
    write_pairs(tmp_path, "train", 7, seed=1)
    write_pairs(tmp_path, "valid", 3, seed=2)
    return tmp_path


def prepare(text: Path) -> list[str]:
    said: list[str] = []
    prepare_pairs(recipe(text), text / "data", said.append)
    return said


def test_text_that_changes_while_it_is_prepared_leaves_nothing(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = text / "train.src"
    monkeypatch.setattr(prepared_data, "report_overlap", lambda *_: source.write_text("w1\n" * 7))
    with pytest.raises(InputError, match="changed while it was being prepared; run the same command again"):
        prepare(text)
    assert not (text / "data").exists()


@pytest.mark.parametrize("report", ["", "[]", "{}", "\x00"])
def test_data_with_a_damaged_report_is_prepared_again(report: str, text: Path) -> None:
    prepare(text)
    before = (text / "data/train-0/ids.bin").read_bytes()
    (text / "data/report.json").write_text(report)
    assert any("preparing the data again (report.json does not match its checksum)" in line for line in prepare(text))
    assert (text / "data/train-0/ids.bin").read_bytes() == before


def test_a_folder_of_something_else_stays_even_with_a_report(text: Path) -> None:
    (text / "data").mkdir()
    (text / "data/report.json").write_text("")
    (text / "data/thesis.tex").write_text("dear to me")
    with pytest.raises(InputError, match="not a folder with prepared data"):
        prepare(text)
    assert (text / "data/thesis.tex").read_text() == "dear to me"


def test_running_text_has_the_digest_of_its_name_as_it_is_written(tmp_path: Path) -> None:
    found = {}
    for name in ("a.EN", "a.en", "a.CSV", "a.csv"):
        (tmp_path / name).write_text("text,label\none,a\n")
        recipe = make_recipe({"task": "language_model", "data": {"train": [{"source": name}]}}, data_root=tmp_path)
        found[name] = data_digest(recipe)
    assert found["a.EN"] != found["a.en"] != found["a.csv"] == found["a.CSV"]
