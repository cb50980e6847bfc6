from pathlib import Path

import pytest
import torch
from safetensors.torch import load, load_file
from same import same_tensors

from heedful.checkpoint import DamagedError
from heedful.checkpoint.safetensors_format import DTYPES, read_tensors, tensor_file


def tensors() -> dict[str, torch.Tensor]:
    """Every type, in an order that would misalign them, with shapes from none to three dimensions."""
    values = {f"{dtype}": (torch.randn(3, 5) * 7).to(dtype) for dtype in reversed(DTYPES)}
    return {
        "flags": torch.tensor([True, False, True]),
        **values,
        "scalar": torch.tensor(0.1, dtype=torch.float64),
        "nothing": torch.empty(0, 5),
        "part": torch.randn(7, 11, 2).transpose(0, 2)[:, 3:8],
        "every second": torch.randn(11)[::2],
        "trained ü": torch.nn.Parameter(torch.randn(13)),
    }


def test_the_library_reads_what_is_written() -> None:
    data = b"".join(tensor_file(values := tensors()))
    assert same_tensors(load(data), values)


def test_no_tensors_are_a_file_too(tmp_path: Path) -> None:
    (tmp_path / "none.safetensors").write_bytes(b"".join(tensor_file({})))
    assert load_file(tmp_path / "none.safetensors") == {}


def test_every_tensor_begins_at_a_multiple_of_its_size(tmp_path: Path) -> None:
    (tmp_path / "all.safetensors").write_bytes(b"".join(tensor_file(tensors())))
    for value in read_tensors(tmp_path / "all.safetensors").values():
        assert value.data_ptr() % value.element_size() == 0


def test_the_whole_is_never_in_memory_twice() -> None:
    value = torch.randn(17)
    *_, chunk = tensor_file({"value": value})
    value[0] = 3.0
    assert torch.frombuffer(chunk, dtype=torch.float32)[0] == 3.0


@pytest.mark.parametrize("data", [b"", b"\xff" * 16, b"\x02" + bytes(7) + b"{}x", b"PK\x03\x04 a zip of pickles"])
def test_another_file_is_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(data)
    with pytest.raises(DamagedError, match=r"model\.safetensors is not a readable safetensors file"):
        read_tensors(path)
