"""model.bin of CTranslate2, written by the layout of its documentation."""

import struct

import numpy as np

TYPES = {"float32": 0, "int8": 1, "int16": 2, "int32": 3, "float16": 4, "bfloat16": 5}
WIDTHS = {"float32": 4, "int8": 1, "int16": 2, "int32": 4, "float16": 2, "bfloat16": 2}


def string(text):
    return struct.pack("<H", len(text.encode()) + 1) + text.encode() + b"\0"


def variable(name, kind, value, version):
    value = np.asarray(value)
    shape = struct.pack("<B", value.ndim) + struct.pack(f"<{value.ndim}I", *value.shape)
    sizes = (TYPES[kind], value.nbytes) if version >= 4 else (WIDTHS[kind], value.size)
    return string(name) + shape + struct.pack("<BI", *sizes) + value.tobytes()


def written(variables, aliases=(), version=6, spec="TransformerSpec", revision=7):
    parts = [struct.pack("<I", version), string(spec), struct.pack("<II", revision, len(variables))]
    parts += [variable(name, kind, value, version) for name, (kind, value) in variables.items()]
    if version >= 3:
        parts += [struct.pack("<I", len(aliases)), *(string(alias) + string(name) for alias, name in aliases)]
    return b"".join(parts)
