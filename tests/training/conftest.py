from pathlib import Path

import pytest

from reversal import write_texts


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """A folder with a training and a validation set that reverse words."""
    folder = tmp_path / "text"
    folder.mkdir()
    write_texts(folder)
    return folder
