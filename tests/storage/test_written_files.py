"""What Python writes replaces only what heedful wrote, unless it is asked to."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import heedful
from heedful.errors import InputError

WRITERS: dict[str, Callable[[], Any]] = {
    "look": lambda: heedful.look("en-de", "A dog barks."),
    "trace": lambda: heedful.trace("en-de", "A dog barks.", keep=["dec.*.cross.attn"]),
}


@pytest.fixture(scope="module", params=WRITERS)
def saved(request) -> Any:
    return WRITERS[request.param]()


@pytest.fixture(autouse=True)
def _notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_a_file_of_another_is_replaced_on_request_only(saved, tmp_path):
    path = tmp_path / "file"
    path.write_text("mine")
    with pytest.raises(InputError, match=r"file: already exists.*replace=True"):
        saved.save(path)
    assert path.read_text() == "mine"
    saved.save(path, replace=True)
    assert path.stat().st_size > 100


def test_what_was_saved_is_replaced_until_somebody_changes_it(saved, tmp_path):
    path = tmp_path / "file"
    for _ in range(2):
        saved.save(str(path))
    with path.open("ab") as changed:
        changed.write(b"checked by me")
    with pytest.raises(InputError, match="replace=True"):
        saved.save(path)
    assert path.read_bytes().endswith(b"checked by me")


def test_an_empty_file_is_replaced_and_a_folder_is_not(saved, tmp_path):
    (tmp_path / "empty").touch()
    saved.save(tmp_path / "empty")
    assert (tmp_path / "empty").stat().st_size > 100
    for replace in (False, True):
        with pytest.raises(InputError, match="is a folder; give a file in it"):
            saved.save(tmp_path, replace=replace)
