"""Each file of an interrupted run is damaged in several ways: the run goes on exactly, or one line says why not."""

import io
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from heedful.checkpoint import Checkpoints
from heedful.errors import HeedfulError, InputError, RunError
from heedful.training import loop
from heedful.training.resume import ResumeOptions
from heedful.training.trainer import Trainer
from interrupted import train, train_aloud
from reversal import fingerprint, recipe, write_pairs

DAMAGES = {
    "emptied": lambda _: b"",
    "halved": lambda data: data[: len(data) // 2],
    "no text": lambda data: b"\xff\x00" + data,
    "another document": lambda _: b"[3]\n",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the text, an uninterrupted run of 13 updates, and one that has made 8 of them."""
    folder = tmp_path_factory.mktemp("mending")
    write_pairs(folder, "train", 41, seed=1)
    write_pairs(folder, "valid", 5, seed=2)
    train(short(folder, 13), folder / "whole")
    train(short(folder, 8), folder / "begun")
    return folder


def short(folder: Path, updates: int):
    return recipe(folder, train={"max_updates": updates, "save_every": 4, "validate_every": 4, "keep_last": 5})


@pytest.fixture
def begun(place: Path, tmp_path: Path) -> Path:
    return shutil.copytree(place / "begun", tmp_path / "begun")


def same_model(one: Path, other: Path) -> bool:
    """True if two runs have the same final model, and the same weights after their last update."""
    last, expected = (run / "checkpoints/step-00000013/model.safetensors" for run in (one, other))
    return fingerprint(one)[0] == fingerprint(other)[0] and last.read_bytes() == expected.read_bytes()


def damaged_names(begun: Path, damage: str) -> list[Path]:
    """The files to damage in one way: each that no manifest lists, and in turn those whose sizes one knows."""
    found = sorted(path for path in begun.rglob("*") if path.is_file() and path.stat().st_size)
    found = [path for path in found if "step-00000004" not in path.parts]
    listed = [path for path in found if path.name != "manifest.json" and (path.parent / "manifest.json").is_file()]
    in_turn = listed[list(DAMAGES).index(damage) :: len(DAMAGES)]
    return [path.relative_to(begun) for path in found if path not in listed or path in in_turn]


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_stops_no_run_and_changes_no_model(damage: str, place: Path, tmp_path: Path) -> None:
    for name in damaged_names(place / "begun", damage):
        run = shutil.copytree(place / "begun", tmp_path / "run")
        (run / name).write_bytes(DAMAGES[damage]((run / name).read_bytes()))
        try:
            train(short(place, 13), run)
        except HeedfulError as error:
            pytest.fail(f"{name}: {error}")
        assert same_model(run, place / "whole"), name
        shutil.rmtree(run)


@pytest.mark.parametrize("line", ["{", '{"update": "8"}', "[]", "\x00\x00"])
def test_a_damaged_log_is_put_aside(line: str, place: Path, begun: Path) -> None:
    log = (begun / "log.jsonl").read_text()
    (begun / "log.jsonl").write_text(f"{line}\n{log}")
    _, said = train_aloud(short(place, 13), begun)
    assert "log.jsonl is damaged: moved to" in said
    assert (begun / "log.jsonl.bad").read_text() == f"{line}\n{log}"
    assert same_model(begun, place / "whole")


def test_another_digit_in_the_log_is_noticed(place: Path, begun: Path) -> None:
    first, *others = (begun / "log.jsonl").read_text().splitlines()
    record = json.loads(first)
    changed = json.dumps({**record, "loss": record["loss"] / 2})
    (begun / "log.jsonl").write_text("\n".join([changed, *others]) + "\n")
    assert "log.jsonl is damaged" in train_aloud(short(place, 13), begun)[1]


def test_a_damaged_mark_of_the_best_is_made_again(place: Path, begun: Path) -> None:
    marked = Checkpoints(begun, 5).best
    (begun / "checkpoints/best.json").write_bytes(b"")
    _, said = train_aloud(short(place, 8), begun)
    assert "best.json does not match its checksum: moved to" in said
    assert Checkpoints(begun, 5).best == marked is not None


def test_a_damaged_model_of_a_finished_run_is_written_again(place: Path, begun: Path) -> None:
    model = begun / "model/model.safetensors"
    whole = model.read_bytes()
    model.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    train(short(place, 8), begun)
    assert model.read_bytes() == whole


@pytest.mark.parametrize(
    ("part", "changed", "message"),
    [
        ("optimizer", lambda _: {}, r"optimizer\.safetensors: it is empty"),
        ("optimizer", lambda tensors: dict(list(tensors.items())[1:]), r"optimizer\.safetensors: missing"),
        ("optimizer", lambda tensors: {key: x[..., :1] for key, x in tensors.items() if x.dim()}, "a different shape"),
        ("optimizer", lambda tensors: {key: x.half() for key, x in tensors.items()}, "a different shape or type"),
        ("optimizer", lambda tensors: tensors | {"exp_avg.nothing": next(iter(tensors.values()))}, "unexpected"),
        ("weights", lambda tensors: dict(list(tensors.items())[1:]), r"model\.safetensors: missing"),
        ("weights", lambda tensors: {key: x.double() for key, x in tensors.items()}, "float64"),
        ("state", lambda _: {}, r"state\.json: progress is None"),
        ("state", lambda state: state | {"data": 7}, r"state\.json: data is 7"),
        ("state", lambda state: state | {"progress": state["progress"] | {"tokens": "many"}}, "tokens is 'many'"),
        ("state", lambda state: state | {"progress": state["progress"] | {"update": 7}}, "update is 7"),
        ("state", lambda state: state | {"progress": state["progress"] | {"window": None}}, "window is None"),
    ],
)
def test_a_checkpoint_that_is_whole_but_does_not_fit_is_refused(part, changed, message, place, begun):
    checkpoints = Checkpoints(begun, 5)
    saved = checkpoints.load_latest().checkpoint
    shutil.rmtree(checkpoints.path(8))
    checkpoints.save(replace(saved, **{part: changed(getattr(saved, part))}))
    with pytest.raises(InputError, match=f"update 8 does not fit its run.*{message}.*remove the folder step-00000008"):
        train(short(place, 13), begun)


def test_a_strict_run_does_not_go_on_from_an_older_checkpoint(place: Path, begun: Path) -> None:
    path = begun / "checkpoints/step-00000008/state.json"
    path.write_bytes(b"")
    settings, quiet = short(place, 13), Console(quiet=True)
    with pytest.raises(InputError, match=r"state\.json has 0 bytes"):
        loop.train(settings, begun, quiet, resume_options=ResumeOptions(strict=True))
    assert path.is_file()
    loop.train(settings, begun, quiet)
    assert same_model(begun, place / "whole")


def test_a_change_that_is_allowed_is_told_and_kept(place: Path, begun: Path) -> None:
    settings = short(place, 13)
    changed = replace(settings, optimizer=replace(settings.optimizer, lr=0.02))
    screen = io.StringIO()
    allowed = ResumeOptions(allowed_changes=("optimizer.lr",))
    loop.train(changed, begun, Console(file=screen, width=500), resume_options=allowed)
    assert "optimizer.lr is 0.02, but the run was started with 0.01" in screen.getvalue()
    assert not same_model(begun, place / "whole")
    train(changed, begun)


def test_data_that_is_overwritten_while_training_reads_it_ends_the_run(place, begun, monkeypatch):
    take = Trainer.compute

    def take_and_overwrite(self):
        if self.state.update == 10:
            with (begun / "data/train-0/ids.bin").open("rb+") as file:
                file.write(bytes(20))
        return take(self)

    monkeypatch.setattr(Trainer, "compute", take_and_overwrite)
    with pytest.raises(RunError, match=r"ids\.bin was changed during training"):
        train(short(place, 13), begun)
    monkeypatch.undo()
    train(short(place, 13), begun)
    assert fingerprint(begun) == fingerprint(place / "whole")
