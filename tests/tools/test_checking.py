import re
import shutil
from pathlib import Path

import pytest

from heedful.errors import InputError
from heedful.tools.runs import damages


def test_a_whole_run_has_no_damage(runs: Path) -> None:
    assert list(damages(runs / "first")) == []


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "checkpoints/step-00000004/optimizer.safetensors",
            "checkpoints/step-00000004: optimizer.safetensors does not",
        ),
        ("model/model.safetensors", "model: model.safetensors does not match its checksum"),
        ("data/train-0/ids.bin", "data/train-0: ids.bin does not match its checksum"),
        ("checkpoints/best.json", "checkpoints/best.json does not match its checksum"),
        ("log.jsonl", "log.jsonl contains lines that are not records"),
        ("result.json", "result.json is not a valid result"),
    ],
)
def test_a_flipped_bit_is_told_with_its_file(name: str, told: str, runs: Path) -> None:
    path = runs / "first" / name
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(data)
    (damage,) = damages(runs / "first")
    assert damage.startswith(told)


def test_a_checkpoint_under_the_name_of_another_is_told(runs: Path) -> None:
    checkpoints = runs / "first/checkpoints"
    (checkpoints / "step-00000004").rename(checkpoints / "step-00000007")
    assert list(damages(runs / "first")) == ["checkpoints/step-00000007: its manifest names a different step"]


def test_a_model_under_the_name_of_a_checkpoint_is_told(runs: Path) -> None:
    shutil.copytree(runs / "first/model", runs / "first/checkpoints/step-00000099")
    assert list(damages(runs / "first")) == ["checkpoints/step-00000099: its manifest names a different step"]


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a run folder"):
        list(damages(tmp_path))


def test_a_model_folder_in_a_run_is_refused_with_the_run(runs: Path) -> None:
    with pytest.raises(InputError, match=f"not a run folder; give {re.escape(str(runs / 'first'))}$"):
        list(damages(runs / "first/model"))
