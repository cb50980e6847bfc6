"""`heedful functions`: descriptions with code that are always the same, and what to do with them."""

import hashlib
import json
from functools import partial

from invocation import invoke

FEW = ("--train", 23, "--valid", 3, "--test", 5)

run = partial(invoke, "functions")


def test_each_part_is_a_table_and_the_next_commands_are_named(tmp_path):
    out = tmp_path / "some" / "functions"
    result = run("--out", out, *FEW)
    rows = {path.name: [json.loads(line) for line in path.read_text().splitlines()] for path in out.iterdir()}
    assert {name: len(table) for name, table in rows.items()} == {"train.jsonl": 23, "valid.jsonl": 3, "test.jsonl": 5}
    assert "23 functions to train on, 3 for validation, 5 for test" in result.output
    assert rows["test.jsonl"][0]["description"] in result.output
    assert f"heedful init {out} --task text_to_text --source-field description --target-field code" in result.output
    assert 'metrics = ["passes_tests"]' in result.output


def test_the_files_of_a_seed_never_change(tmp_path):
    run("--out", tmp_path, *FEW, "--seed", 2)
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(tmp_path.iterdir())))
    assert digest.hexdigest() == "6a962fc3411ad6ad032fd4f1dae44007c13c8d886a5339a8d638c61c01cd0f32"
