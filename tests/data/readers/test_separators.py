"""A table whose name lies about its separators is refused with what to do, and no other table is."""

import gzip

import pytest

from heedful.config.schema import DataConfig
from heedful.data.readers.columns import columns_of
from heedful.data.readers.separators import LOOKED_AT, check_separators
from heedful.errors import InputError

TEXTS = ["good, really good", "bad", "so, so, so", "fine; just fine"]


def table(separator: str, quote: str = "") -> str:
    rows = [("text", "label"), *((f"{quote}{text}{quote}", str(i % 2)) for i, text in enumerate(TEXTS * 3))]
    return "".join(separator.join(row) + "\n" for row in rows)


OBJECTS = '{"text": "good, really good", "label": 1}\n' * 7

LYING = {
    "tabs.csv": (table("\t"), "2 columns with tabs between them, where a .csv file has commas; .* ends in .tsv or"),
    "tabs.csv.gz": (table("\t"), "2 columns with tabs between them"),
    "commas.tsv": (table(",", '"'), "2 columns with commas between them, where a .tsv file has tabs; .* ends in .csv"),
    "semicolons.csv": (table(";", '"'), "2 columns with semicolons between them, .*; save it with commas"),
    "semicolons.tsv": (table(";", '"'), "2 columns with semicolons between them"),
    "long.tsv": (table(",", '"') + '"a text\nthat ends elsewhere",1\n' * LOOKED_AT, "2 columns with commas"),
    "objects.csv": (OBJECTS, "hold a JSON object a line, where a .csv file has commas .*; .* ends in .jsonl"),
    "objects.tsv.gz": (OBJECTS, "hold a JSON object a line, where a .tsv file has tabs .*; .* ends in .jsonl"),
    "commas.jsonl": (
        table(",", '"'),
        "2 columns with commas between them, .* has a JSON object a line; .* ends in .csv",
    ),
    "tabs.jsonl": (table("\t"), "2 columns with tabs between them, .*; .* ends in .tsv"),
    "no-header.csv": (table("\t").partition("\n")[2], "2 columns with tabs"),
}


def write(file, text):
    file.write_bytes(gzip.compress(text.encode()) if file.suffix == ".gz" else text.encode())
    return file


@pytest.mark.parametrize("name", LYING)
def test_a_name_that_lies_is_refused_with_the_way_out(tmp_path, name):
    text, message = LYING[name]
    with pytest.raises(InputError, match=message):
        columns_of(write(tmp_path / name, text), DataConfig())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.tsv", table("\t")),
        ("a.csv", table(",", '"')),
        ("a.tsv", table("\t").replace("fine;", 'f"ine')),
        ("one.csv", "text\n" + "".join(f'"{text}"\n' for text in TEXTS)),
        ("one.tsv", "text\n" + "".join(f"{text}\n" for text in TEXTS)),
        ("cells.csv", "".join(f'"a\tb",{i}\n' for i in range(7))),
        ("ragged.csv", "a,b\nc\nd,e,f\n"),
        ("a.jsonl", OBJECTS),
        ("broken.jsonl", '{"text": "so", "label": 1\n' * 7),
        ("braces.csv", '{"well"},1\n{so},2\n'),
        ("broken.tsv", '"a,b\nc\n'),
        ("long.csv", f"{'x' * 200_003},1\n"),
        ("empty.csv", ""),
        ("bad.tsv", "a\tb\n"),
    ],
)
def test_an_honest_name_is_believed(tmp_path, name, text):
    check_separators(write(tmp_path / name, text), "error")
