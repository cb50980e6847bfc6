"""Messages about paths: what is said where nothing is, and which names near it are suggested."""

from pathlib import Path

import pytest

from heedful.storage.paths import likely, near_paths, no_file, no_folder, nothing_at, unreadable


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("corpus/train.en", "corpus/train.de.gz", "corpora/a.txt", ".train.en"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("a\n")
    return tmp_path


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("corpus/trian.en", "corpus/train.en"),
        ("corpus/TRAIN.EN", "corpus/train.en"),
        ("corpus/train.de", "corpus/train.de.gz"),
        ("corpsu/train.en", "corpus/train.en"),
        ("corpus/nowhere.en", None),
        ("train.en", None),
        ("elsewhere/corpus", None),
        ("corpus/train.en/x", None),
        ("a\0b", None),
        ("n" * 300, None),
        ("", None),
    ],
)
def test_names_that_are_near_are_suggested(path, near):
    assert (near_paths(Path(path)) or [None])[0] == (Path(near) if near else None)


def test_an_absolute_path_is_suggested_as_such(here):
    assert near_paths(here / "corpus" / "trian.en")[0] == here / "corpus" / "train.en"


def test_what_does_not_fit_is_not_suggested():
    assert near_paths(Path("corpu"), Path.is_dir)
    assert not near_paths(Path("corpu"), Path.is_file)
    assert likely(Path("corpu"), "look again", Path.is_file) == "look again"


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (lambda: no_file(Path("corpus")), "corpus: is a folder; give a file in it, such as corpus/train.de.gz"),
        (
            lambda: no_file(Path("nowhere/a.en"), "look"),
            "nowhere/a.en: no such file; the folder nowhere does not exist",
        ),
        (lambda: no_file(Path("corpus/train.en/a")), "no such file; corpus/train.en is a file, not a folder"),
        (lambda: no_folder(Path("corpus/train.en")), "corpus/train.en: is a file; give a folder"),
        (lambda: no_folder(Path("corpas"), what="run"), 'corpas: no such run; did you mean "corpus"'),
        (lambda: nothing_at(Path("zzz")), "zzz: no such file or folder; check the path"),
        (
            lambda: unreadable(Path("zzz"), PermissionError(13, "Permission denied")),
            "cannot be read (Permission denied)",
        ),
        (lambda: unreadable(Path("zzz"), FileNotFoundError()), "zzz: no such file"),
    ],
    ids=range(8),
)
def test_a_message_says_what_is_wrong_and_what_to_do(message, text):
    assert text in message()
