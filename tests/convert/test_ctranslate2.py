"""Models in CTranslate2's format, written here by the layout of its documentation."""

import json
import struct
import tracemalloc
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_bin import string, written

from heedful.convert.ctranslate2 import read_ctranslate2, read_model_bin, read_vocabularies
from heedful.errors import InputError

RNG = np.random.default_rng(1)
WEIGHT = RNG.normal(size=(5, 3)).astype(np.float32)
SCALE = np.float32(127) / np.abs(WEIGHT).max(axis=1)
INT8 = np.rint(WEIGHT * SCALE[:, None]).astype(np.int8)
INT16 = np.rint(WEIGHT * 512).astype(np.int16)
BFLOAT16 = (WEIGHT.view(np.uint32) >> 16).astype(np.uint16)


VARIABLES = {
    "encoder/weight": ("int8", INT8),
    "encoder/weight_scale": ("float32", SCALE),
    "encoder/bias": ("float32", WEIGHT[0]),
    "encoder/num_heads": ("int8", np.int8(4)),
    "half": ("float16", WEIGHT.astype(np.float16)),
}
CONTENT = written(VARIABLES, [("decoder/weight", "encoder/weight"), ("x", "half")])


@pytest.fixture
def read(tmp_path):
    def read(content):
        (tmp_path / "model.bin").write_bytes(content)
        return read_model_bin(tmp_path / "model.bin")

    return read


@pytest.mark.parametrize("version", [3, 4, 5, 6])
def test_every_version_is_read(read, version):
    model = read(written({"a/weight": ("float32", WEIGHT)}, [("b", "a/weight")], version))
    assert (model.version, model.spec, model.revision) == (version, "TransformerSpec", 7)
    assert model.aliases == {"b": "a/weight"}
    assert np.array_equal(model.variables["a/weight"], WEIGHT)
    assert model.variables["b"] is model.variables["a/weight"]


def test_the_second_version_has_no_aliases(read):
    model = read(written({"a": ("float32", WEIGHT), "n": ("int8", np.int8(3))}, version=2))
    assert (model.version, model.aliases) == (2, {})
    assert np.array_equal(model.variables["a"], WEIGHT)
    assert (model.variables["n"], model.variables["n"].dtype) == (3, np.int8)


@pytest.mark.parametrize(
    ("kind", "value", "scale", "expected"),
    [
        ("float32", WEIGHT, None, WEIGHT),
        ("float16", WEIGHT.astype(np.float16), None, WEIGHT.astype(np.float16).astype(np.float32)),
        ("bfloat16", BFLOAT16, None, (BFLOAT16.astype(np.uint32) << 16).view(np.float32)),
        ("int8", INT8, SCALE, INT8 / SCALE[:, None]),
        ("int16", INT16, np.float32(512), INT16 / np.float32(512)),
        ("int16", INT16, None, INT16 / np.float32(1000)),
    ],
)
def test_weights_of_every_type_become_float32(read, kind, value, scale, expected):
    variables = {"w": (kind, value)} | ({} if scale is None else {"w_scale": ("float32", scale)})
    model = read(written(variables))
    assert list(model.variables) == ["w"]
    assert model.variables["w"].dtype == np.float32
    assert np.array_equal(model.variables["w"], expected)
    assert np.abs(model.variables["w"] - WEIGHT).max() < 0.02 or scale is None
    model.variables["w"][0] = 0  # an array of its own


def test_numbers_that_are_no_weights_stay_as_they_are(read):
    values = {
        "heads": ("int8", np.int8(4)),
        "size": ("int32", np.arange(3, dtype=np.int32)),
        "k": ("int16", np.int16(9)),
    }
    for name, value in read(written(values)).variables.items():
        assert value.dtype == values[name][1].dtype
        assert np.array_equal(value, values[name][1])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected 4 bytes, but only 0 left"),
        (CONTENT[:-1], "expected .* but only"),
        (CONTENT + b"\0", "1 byte after the end"),
        (written({}, version=1), "has version 1 of CTranslate2's format, but heedful reads only 2 to 6"),
        (written({}, version=7), "has version 7"),
        (written(VARIABLES, [("a", "nothing")]), "'a' cannot be a second name for 'nothing'"),
        (written(VARIABLES, [("half", "half")]), "cannot be a second name"),
        (written(VARIABLES, [("a", "half"), ("a", "half")]), "'a' occurs twice"),
        (written({"w": ("float32", np.zeros((0, 3), np.float32))}), r"shape \(0, 3\)"),
        (
            written({"w": ("int8", INT8), "w_scale": ("float32", SCALE[:3])}),
            r"w_scale, of shape \(3,\), is not a valid scale",
        ),
        (written({"w": ("int8", INT8)}), "the int8 matrix 'w' has no scale"),
        (written({"w": ("int8", INT8), "w_scale": ("float32", 0 * SCALE)}), "is not a valid scale"),
        (written({"w": ("int8", INT8), "w_scale": ("float32", np.nan * SCALE)}), "is not a valid scale"),
        (written({"w": ("float32", WEIGHT.astype(np.float16))}), "but 30 bytes"),
        (struct.pack("<I", 6) + b"\x02\x00ab", "a name is not terminated"),
        (struct.pack("<I", 6) + b"\x02\x00\xff\x00", "a name is not UTF-8"),
        (struct.pack("<I", 6) + string("s") + struct.pack("<II", 1, 1) + string("w") + b"\0\x09", "unknown type 9"),
    ],
)
def test_a_damaged_file_is_named_with_the_place(read, content, message):
    with pytest.raises(InputError, match=message) as caught:
        read(content)
    assert "model.bin" in str(caught.value)


def test_a_size_that_is_not_there_takes_no_memory(read):
    huge = struct.pack("<3I", 2, 2**16, 2**13)
    content = struct.pack("<I", 6) + string("s") + struct.pack("<II", 1, 2**32 - 1) + string("w")
    content += b"\x02" + huge[4:] + struct.pack("<BI", 0, 2**31) + b"\0" * 97
    tracemalloc.start()
    with pytest.raises(InputError, match="expected 2,147,483,648 bytes"):
        read(content)
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


@given(data=st.data())
def test_a_changed_or_cut_file_is_read_or_refused(tmp_path_factory, data):
    content = bytearray(CONTENT)
    for _ in range(data.draw(st.integers(0, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.sampled_from([0, 1, 2, 7, 127, 128, 255]))
    end = data.draw(st.just(len(content)) | st.integers(0, len(content)))
    path = tmp_path_factory.getbasetemp() / "model.bin"
    path.write_bytes(content[:end])
    with suppress(InputError):
        assert read_model_bin(path).version <= 6


def folder_with(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_bytes(text.encode())
    (folder / "model.bin").write_bytes(CONTENT)
    return folder


def test_a_folder_gives_weights_vocabularies_and_settings(tmp_path):
    texts = {"source_vocabulary__txt": "<s>\na b\n\u2028\n", "target_vocabulary__txt": "</s>\né\r\n"}
    model = read_ctranslate2(folder_with(tmp_path, **texts))
    assert (model.source_vocabulary, model.target_vocabulary) == (["<s>", "a b", "\u2028"], ["</s>", "é\r"])
    assert (model.config, model.binary.revision) == ({}, 7)
    folder_with(tmp_path, config__json='{"bos_token": "<s>"}')
    assert read_ctranslate2(tmp_path).config == {"bos_token": "<s>"}


@pytest.mark.parametrize("name", ["shared_vocabulary", "vocabulary"])
def test_one_vocabulary_serves_both_sides(tmp_path, name):
    (tmp_path / f"{name}.json").write_text(json.dumps(["<s>", "a\nb"]))
    assert read_vocabularies(tmp_path) == (["<s>", "a\nb"], ["<s>", "a\nb"])


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "has no vocabularies"),
        ({"source_vocabulary__txt": "a\n"}, "has no vocabularies"),
        ({"shared_vocabulary__json": "["}, "shared_vocabulary.json: is not JSON"),
        ({"shared_vocabulary__json": "[1]"}, "shared_vocabulary.json: is not a list of tokens"),
        ({"shared_vocabulary__txt": "a\n", "config__json": "[]"}, "config.json: is not a JSON object"),
    ],
)
def test_a_wrong_file_beside_it_is_named(tmp_path, files, message):
    with pytest.raises(InputError, match=message):
        read_ctranslate2(folder_with(tmp_path, **files))


def test_a_missing_model_is_named(tmp_path):
    with pytest.raises(InputError, match=r"model\.bin: cannot be read \(No such file"):
        read_model_bin(tmp_path / "model.bin")
