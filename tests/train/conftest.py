from pathlib import Path

import pytest

from reversal import write_pairs


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """A folder with a training and a validation set that reverse words."""
    folder = tmp_path / "text"
    folder.mkdir()
    write_pairs(folder, "train", 101, seed=1)
    write_pairs(folder, "valid", 11, seed=2)
    return folder
