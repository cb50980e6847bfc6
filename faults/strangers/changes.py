"""Changes of the files of a model folder: of its recipe, its tokenizer, and the header of its weights."""

import copy
import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import toy

from heedful.config.load import recipe_to_dict
from heedful.storage.complete_folder import json_bytes
from heedful.text.tokenizer import sha256_of

RECIPE, WEIGHTS = "recipe.json", "model.safetensors"
DEFINITION, SETTINGS = "tokenizer/joint/tokenizer.json", "tokenizer/joint/config.json"
Change = Callable[[Path], None]  # what an attacker does to a model folder

VALUES: dict[str, Any] = {
    "text": "many",
    "negative": -1,
    "zero": 0,
    "thousand": 1000,
    "hundred thousand": 10**5,
    "10^12": 10**12,
    "2^63": 2**63,
    "10^400": 10**400,
    "tiny": 5e-324,
    "1e308": 1e308,
    "-1e308": -1e308,
    "NaN": float("nan"),
    "infinity": float("inf"),
    "null": None,
    "true": True,
    "empty list": [],
    "list": [1, "a", None],
    "numbers": list(range(3000)),
    "table": {"a": {"b": 1}},
    "NUL": "a\0b",
    "surrogate": "\ud800",
    "megabyte": "a" * 10**6,
    "device": "/dev/zero",
    "path up": "../../../../etc/passwd",
    "code": "os:system",
    "dotted": "subprocess.Popen",
}


def edited(name: str, edit: Callable[[Any], Any]) -> Change:
    """A change of a JSON file: `edit` changes what it holds in place, or returns what it holds instead."""

    def change(folder: Path) -> None:
        document = json.loads((folder / name).read_bytes())
        replaced = edit(document)
        text = json.dumps(document if replaced is None else replaced)
        (folder / name).write_text(text)
        if name == DEFINITION:
            described = json.loads((folder / SETTINGS).read_bytes())
            (folder / SETTINGS).write_text(json.dumps(described | {"sha256": sha256_of(text)}))

    return change


def written(name: str, content: bytes) -> Change:
    """A change of a whole file."""
    return lambda folder: void((folder / name).write_bytes(content))


def void(_: object) -> None:
    """Nothing, for a function that has to return that."""


def settings() -> Iterator[tuple[str, Change]]:
    """Yield changes of the settings of recipe and tokenizer: each key with each hostile value, and whole files."""
    example = json.loads(json_bytes({"recipe": toy_values(), "source_vocab": 300, "target_vocab": 300}))
    for path in (*keys(example),):
        for kind, value in VALUES.items():
            yield f"recipe.json {'.'.join(path)} = {kind}", edited(RECIPE, set_to(path, value))
    for key in ("format", "sha256", "tokenizer"):
        for kind, value in VALUES.items():
            yield f"config.json {key} = {kind}", edited(SETTINGS, set_to((key,), value))
    many = {f"key{i}": i for i in range(10**5)}
    yield "recipe.json 10^5 keys", edited(RECIPE, lambda all_: all_["recipe"].update(many))
    yield "recipe.json 10^5 keys of [model]", edited(RECIPE, lambda all_: all_["recipe"]["model"].update(many))
    yield "recipe.json 10^5 labels", edited(RECIPE, lambda all_: all_["recipe"]["data"].update(labels=list(many)))
    yield "recipe.json one key of a megabyte", edited(RECIPE, lambda all_: all_["recipe"].update({"d" * 10**6: 1}))
    layers = {"encoder_layers": 1000, "decoder_layers": 1000}
    yield "recipe.json 1000 layers", edited(RECIPE, lambda all_: all_["recipe"]["model"].update(layers))
    wide = {"d_model": 10**6, "d_ff": 10**6, "heads": 10**6}
    yield "recipe.json wide", edited(RECIPE, lambda all_: all_["recipe"]["model"].update(wide))
    long = {"positions": "learned", "max_positions": 10**9}
    yield "recipe.json 10^9 positions", edited(RECIPE, lambda all_: all_["recipe"]["model"].update(long))
    table = {"max_positions": 10**9}
    yield "recipe.json 10^9 sinusoids", edited(RECIPE, lambda all_: all_["recipe"]["model"].update(table))
    slopes = {"positions": "alibi", "heads": 10**9, "d_k": 1}
    yield "recipe.json 10^9 slopes", edited(RECIPE, lambda all_: all_["recipe"]["model"].update(slopes))
    search = {"beam": 10**6, "max_extra": 10**9, "patience": 0}
    yield "recipe.json endless search", edited(RECIPE, lambda all_: all_["recipe"]["decode"].update(search))
    for architecture in ("recurrent", "convolutional", "text_cnn", "bag_of_words", "word2vec"):
        shape = {"architecture": architecture}
        yield f"recipe.json {architecture}", edited(RECIPE, lambda all_, s=shape: all_["recipe"].update(model=s))
    for task in ("language_model", "masked_lm", "classification", "span_qa", "ranking", "word_vectors"):
        yield f"recipe.json task {task}", edited(RECIPE, lambda all_, t=task: all_["recipe"].update(task=t))
    for file in (RECIPE, DEFINITION, SETTINGS):
        for kind, content in WHOLE.items():
            yield f"{file} is {kind}", written(file, content)


WHOLE = {
    "empty": b"",
    "a list": b"[]",
    "a number": b"1",
    "null": b"null",
    "nested": b"[" * 10**5 + b"]" * 10**5,
    "nested tables": b'{"recipe":' * 10**5 + b"1" + b"}" * 10**5,
    "a huge number": b'{"recipe": ' + b"9" * 10**6 + b"}",
    "no UTF-8": b"\xff\xfe{}",
    "NULs": bytes(1000),
    "a pickle": b"\x80\x04\x95\x01\x00\x00\x00\x00\x00\x00\x00N.",
    "a zip": b"PK\x03\x04" + bytes(100),
}


def toy_values() -> dict[str, Any]:
    """The values of the recipe of the toy model, as in recipe.json."""
    return recipe_to_dict(toy.recipe(Path("data")))


def keys(node: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of every key and every table of nested values."""
    for key, value in node.items():
        yield (*above, key)
        if isinstance(value, dict):
            yield from keys(value, (*above, key))


def set_to(path: tuple[str, ...], value: Any) -> Callable[[Any], None]:
    """An edit that sets one key of nested values."""

    def edit(document: Any) -> None:
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = copy.deepcopy(value)

    return edit


def tensors() -> Iterator[tuple[str, Change]]:
    """Yield changes of the header of model.safetensors, which the reader could believe."""
    for kind, edit in HEADERS.items():
        yield f"{WEIGHTS} {kind}", lambda folder, e=edit: reheaded(folder / WEIGHTS, e)
    for kind, content in {
        **WHOLE,
        "a header of 2^63 bytes": struct.pack("<Q", 2**63) + b"{}",
        "a header of 99 MB": struct.pack("<Q", 99 * 10**6) + b"{}",
        "a header past its end": struct.pack("<Q", 1000) + b"{}",
        "nested header": struct.pack("<Q", 2 * 10**5) + b"[" * 10**5 + b"]" * 10**5,
    }.items():
        yield f"{WEIGHTS} is {kind}", written(WEIGHTS, content)


def reheaded(path: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    """Rewrite a safetensors file with a changed header, and the bytes of its tensors as they are."""
    data = path.read_bytes()
    size = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:size])
    edit(header)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[size:])


def first(header: dict[str, Any]) -> dict[str, Any]:
    """The entry of the first tensor."""
    return next(entry for name, entry in header.items() if name != "__metadata__")


def second(header: dict[str, Any]) -> dict[str, Any]:
    """The entry of the second tensor."""
    return [entry for name, entry in header.items() if name != "__metadata__"][1]


def renamed(header: dict[str, Any], name: str) -> None:
    """Give the first tensor another name."""
    old = next(key for key in header if key != "__metadata__")
    header[name] = header.pop(old)


HEADERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a tensor of 10^15 numbers": lambda h: first(h).update(shape=[10**15]),
    "a shape whose product overflows": lambda h: first(h).update(shape=[2**32, 2**32, 0]),
    "a negative shape": lambda h: first(h).update(shape=[-1]),
    "a shape of 10^4 ones": lambda h: first(h).update(shape=[1] * 10**4 + first(h)["shape"]),
    "a flat shape": lambda h: first(h).update(shape=[(first(h)["data_offsets"][1]) // 4]),
    "offsets past the end": lambda h: first(h).update(data_offsets=[0, 2**60]),
    "offsets backwards": lambda h: first(h).update(data_offsets=first(h)["data_offsets"][::-1]),
    "overlapping tensors": lambda h: second(h).update(first(h)),
    "unknown type": lambda h: first(h).update(dtype="F3"),
    "integers": lambda h: first(h).update(dtype="I32"),
    "bfloat16 of twice the size": lambda h: first(h).update(dtype="BF16", shape=[2 * first(h)["data_offsets"][1] // 4]),
    "complex": lambda h: first(h).update(dtype="C64"),
    "type is a number": lambda h: first(h).update(dtype=7),
    "no offsets": lambda h: first(h).pop("data_offsets"),
    "a missing tensor": lambda h: h.pop(next(key for key in h if key != "__metadata__")),
    "no tensors": dict.clear,
    "an extra tensor of no size": lambda h: h.update(extra={"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}),
    "10^5 extra tensors": lambda h: h.update(
        {f"x{i}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for i in range(10**5)}
    ),
    "a name of code": lambda h: renamed(h, "__reduce__"),
    "a name with NUL": lambda h: renamed(h, "a\0b"),
    "a name of a surrogate": lambda h: renamed(h, "\ud800"),
    "a name of a megabyte": lambda h: renamed(h, "a" * 10**6),
    "metadata that is no text": lambda h: h.update(__metadata__={"a": 1}),
}


def tokenizers() -> Iterator[tuple[str, Change]]:
    """Yield changes of tokenizer.json, of heedful's own kind and of one that says that it is foreign."""
    for kind, edit in DEFINITIONS.items():
        yield f"{DEFINITION} {kind}", edited(DEFINITION, edit)
        yield f"foreign {DEFINITION} {kind}", foreign(edited(DEFINITION, edit))


def foreign(change: Change) -> Change:
    """A change of a tokenizer that is said to be foreign, so that it may have another normaliser and splitter."""

    def both(folder: Path) -> None:
        edited(SETTINGS, lambda document: document["tokenizer"].update(kind="foreign"))(folder)
        change(folder)

    return both


def replace_all(pattern: dict[str, str], content: str) -> dict[str, Any]:
    """A step of a normaliser that replaces a pattern."""
    return {"type": "Replace", "pattern": pattern, "content": content}


def split(pattern: str) -> dict[str, Any]:
    """A splitter with a regular expression."""
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def sequence(*steps: dict[str, Any]) -> dict[str, Any]:
    """A sequence of normalisers."""
    return {"type": "Sequence", "normalizers": list(steps)}


PADDING = {
    "strategy": {"Fixed": 10**9},
    "direction": "Right",
    "pad_to_multiple_of": None,
    "pad_id": 0,
    "pad_type_id": 0,
    "pad_token": "<pad>",
}
ADDED = {"content": "a", "single_word": False, "lstrip": False, "rstrip": False, "normalized": True, "special": False}
DEFINITIONS: dict[str, Callable[[Any], Any]] = {
    "catastrophic splitter": lambda d: d.update(pre_tokenizer=split(r"((a|a)+)+$|(\p{L}+)+!|(.*)*x(.*)*y\1")),
    "catastrophic splitter of polynomial time": lambda d: d.update(pre_tokenizer=split(r".*.*.*.*.*.*.*.*=x")),
    "catastrophic normaliser": lambda d: d.update(normalizer=replace_all({"Regex": r"(.+)+\d$|((x+x+)+y)"}, "")),
    "normaliser of exponential growth": lambda d: d.update(
        normalizer=sequence(*[replace_all({"Regex": "."}, "aa")] * 40)
    ),
    "normaliser of growth by text": lambda d: d.update(normalizer=sequence(*[replace_all({"String": "a"}, "aa")] * 40)),
    "normaliser that puts in a megabyte": lambda d: d.update(normalizer=replace_all({"Regex": ""}, "a" * 10**6)),
    "prepended megabytes": lambda d: d.update(
        normalizer=sequence(*[{"type": "Prepend", "prepend": "a" * 10**5}] * 100)
    ),
    "nested normalisers": lambda d: d.update(normalizer=nested(100)),
    "deeply nested normalisers": lambda d: d.update(normalizer=nested(400)),
    "unknown normaliser": lambda d: d.update(normalizer={"type": "System", "command": "touch was_here"}),
    "damaged charsmap": lambda d: d.update(normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"}),
    "no charsmap": lambda d: d.update(normalizer={"type": "Precompiled", "precompiled_charsmap": 5}),
    "no normaliser": lambda d: d.update(normalizer=None),
    "no splitter": lambda d: d.update(pre_tokenizer=None),
    "unknown splitter": lambda d: d.update(pre_tokenizer={"type": "os.system"}),
    "splitter with a wrong expression": lambda d: d.update(pre_tokenizer=split("(((")),
    "no decoder": lambda d: d.update(decoder=None),
    "unknown decoder": lambda d: d.update(decoder={"type": "Eval"}),
    "decoder that grows": lambda d: d.update(decoder=replace_all({"String": ""}, "a" * 1000)),
    "padding to 10^9": lambda d: d.update(padding=PADDING),
    "truncation": lambda d: d.update(
        truncation={"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0}
    ),
    "truncation to none": lambda d: d.update(
        truncation={"direction": "Right", "max_length": 0, "strategy": "LongestFirst", "stride": 9}
    ),
    "an added token": lambda d: d["added_tokens"].append({"id": 10**6, **ADDED}),
    "added tokens of 2^32 - 1": lambda d: d["added_tokens"].append({"id": 2**32 - 1, **ADDED}),
    "10^5 added tokens": lambda d: d["added_tokens"].extend(
        {**ADDED, "id": 1000 + i, "content": f"a{i}"} for i in range(10**5)
    ),
    "a vocabulary of 10^6": lambda d: d["model"]["vocab"].update({f"x{i}": 1000 + i for i in range(10**6)}),
    "an id of 2^32 - 1": lambda d: d["model"]["vocab"].update(x=2**32 - 1),
    "a negative id": lambda d: d["model"]["vocab"].update(x=-1),
    "an id twice": lambda d: d["model"]["vocab"].update(x=5, y=5),
    "no vocabulary": lambda d: d["model"].update(vocab={}),
    "a gap among the ids": lambda d: d["model"]["vocab"].update(x=299, y=301),
    "special tokens elsewhere": lambda d: d["model"]["vocab"].update({"<pad>": 3, "<eos>": 0}),
    "merges of unknown pieces": lambda d: d["model"].update(merges=[["no", "such"]]),
    "merges that are no pairs": lambda d: d["model"].update(merges=[["a"], 5]),
    "unknown model": lambda d: d["model"].update(type="Eval"),
    "another model": lambda d: d["model"].update(type="WordLevel", unk_token="<unk>"),
    "dropout of the model": lambda d: d["model"].update(dropout=0.9),
    "a prefix of a megabyte": lambda d: d["model"].update(continuing_subword_prefix="a" * 10**6),
    "no model": lambda d: d.pop("model"),
    "a version": lambda d: d.update(version="9.9"),
    "a post-processor": lambda d: d.update(
        post_processor={"type": "TemplateProcessing", "single": [], "pair": [], "special_tokens": {}}
    ),
}


def nested(depth: int) -> dict[str, Any]:
    """Sequences of normalisers in each other."""
    step: dict[str, Any] = {"type": "NFC"}
    for _ in range(depth):
        step = sequence(step)
    return step
