import gzip
import json
import tracemalloc
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.documents import read_documents
from heedful.data.readers.drop_report import DropReport
from heedful.errors import InputError

BOOK = "\nOne.\nTwo,\r\nthree.\n\n \t\nFour.\nFive.\n\n\nSix."


@pytest.fixture
def write(tmp_path):
    def write(name: str, content: str | bytes) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        raw = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
        return name

    return write


@pytest.fixture
def read(tmp_path):
    def read(source: str, report: DropReport | None = None, **settings) -> list[tuple[str, int]]:
        corpus = {key: settings.pop(key) for key in ("part", "source_field") if key in settings}
        data = DataConfig(root=str(tmp_path), **settings)
        found = read_documents(CorpusConfig(source=source, **corpus), data, report)
        return [(document.text, document.line) for document in found]

    return read


@pytest.mark.parametrize("name", ["book.txt", "book.txt.gz", "book.gz", "book"])
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("file", [("\nOne.\nTwo,\nthree.\n\n \t\nFour.\nFive.\n\n\nSix.", 1)]),
        ("paragraph", [("One.\nTwo,\nthree.", 2), ("Four.\nFive.", 7), ("Six.", 11)]),
        ("line", [("One.", 2), ("Two,", 3), ("three.", 4), ("Four.", 7), ("Five.", 8), ("Six.", 11)]),
    ],
)
def test_plain_text_is_cut_as_it_is_asked_for(write, read, name, kind, expected):
    assert read(write(name, BOOK), documents=kind) == expected


texts = st.text(st.sampled_from("ab é字\n\u2028\r"), max_size=61)


@given(texts)
def test_a_whole_file_is_exact(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("whole") / "text"
    path.write_bytes(text.encode())
    folded = "".join(line.removesuffix("\r") + "\n" for line in text.split("\n"))[:-1]
    documents = list(read_documents(CorpusConfig(source=str(path)), DataConfig()))
    assert [document.text for document in documents] == ([folded] if folded.strip() else [])


@given(texts, st.lists(st.floats(0, 1), max_size=3))
def test_the_parts_of_a_file_are_the_file(tmp_path_factory, text, cuts):
    path = tmp_path_factory.mktemp("parts") / "text"
    text = "|" + "".join(f"{c}." for c in text.replace("\r", ""))  # no part is blank
    path.write_bytes(text.encode())
    limits = [0.0, *sorted(cuts), 1.0]
    parts = [
        "".join(document.text for document in read_documents(CorpusConfig(source=str(path), part=part), DataConfig()))
        for part in pairwise(limits)
    ]
    places = [int(len(text) * limit) for limit in limits]
    expected = [text[begin:end] for begin, end in pairwise(places)]
    assert [part for part in parts if part] == [part for part in expected if part.strip()]


def test_a_part_of_plain_text_is_counted_in_characters_and_keeps_its_line_numbers(write, read):
    name = write("text", "ab\nüß字\r\nxyz\n")  # 11 characters
    assert read(name, part=(0, 0.4)) == [("ab\nü", 1)]
    assert read(name, part=(0.4, 0.8)) == [("ß字\nx", 2)]
    assert read(name, part=(0.8, 1), documents="line") == [("yz", 3)]


def test_a_part_of_objects_is_counted_in_lines(write, read):
    name = write("text.jsonl", "".join(json.dumps({"text": f"n\n{i}" * (i + 1)}) + "\n" for i in range(7)))
    first = read(name, source_field="text", part=(0, 0.5))
    assert first == [(f"n\n{i}" * (i + 1), i + 1) for i in range(3)]
    assert first + read(name, source_field="text", part=(0.5, 1)) == read(name, source_field="text")


def test_a_folder_is_read_in_the_order_of_its_paths(write, read, tmp_path):
    names = ["b.txt", "a/z.md", "a/b/c.text.gz", "a/d.jsonl.gz", "c.jsonl"]
    for name in names:
        write(f"books/{name}", f'{{"source": "{name}"}}\n{{"source": "2"}}\n' if "jsonl" in name else name)
    write("books/cover.png", b"\xff\xfe")
    write("books/list.csv", "no")
    found = list(read_documents(CorpusConfig(source="books"), DataConfig(root=str(tmp_path))))
    assert [document.text for document in found if document.line == 1] == sorted(names)
    firsts = [document.file for document in found if document.line == 1]
    assert firsts == [tmp_path / "books" / name for name in sorted(names)]
    assert read("books", part=(0, 0.5)) == [
        (name if "jsonl" in name else name[: len(name) // 2], 1) for name in sorted(names)
    ]


def test_a_folder_without_text_is_refused(write, read):
    write("books/cover.png", b"")
    with pytest.raises(InputError, match=r"books: no \.txt, \.text, \.md or \.jsonl files .* give another folder"):
        read("books")


def test_a_missing_file_is_named(read):
    with pytest.raises(InputError, match=r"nowhere\.txt: no such file"):
        read("nowhere.txt")


@pytest.mark.parametrize(
    ("line", "problem"),
    [("{", "line 2: not JSON"), ("[1]", "line 2: a JSON list"), ('{"b": ""}', "no key 'a'"), ('{"a": 7}', "not text")],
)
def test_an_object_without_a_text_is_refused(write, read, line, problem):
    name = write("text.jsonl", f'{{"a": "fine"}}\n{line}\n')
    with pytest.raises(InputError, match=problem):
        read(name, source_field="a")


def test_bad_utf8_is_refused_skipped_and_counted_or_replaced(write, read):
    name = write("text", b"one\ntw\xffo\nthree\n")
    with pytest.raises(InputError, match="line 2, byte 3"):
        read(name)
    report = DropReport()
    assert read(name, report, bad_utf8="skip") == [("one\nthree\n", 1)]
    assert report.rows() == [("bad UTF-8", 1, report.examples["bad UTF-8"])]
    assert report.examples["bad UTF-8"].endswith("text, line 2")
    assert read(name, bad_utf8="replace") == [("one\ntw\ufffdo\nthree\n", 1)]


def test_a_lone_surrogate_of_an_object_is_bad_utf8(write, read):
    name = write("text.jsonl", '{"source": "\\ud800"}\n{"source": "fine"}\n')
    report = DropReport()
    assert read(name, report, bad_utf8="skip") == [("fine", 2)]
    assert report.counts == {"bad UTF-8": 1}


def test_each_bad_line_is_counted_in_one_part(write, read):
    name = write("text", b"\xff\nabc\n\xfe\nde\n\xff\n")
    for limit in (0.0, 0.1, 0.5, 0.57, 0.6, 0.8):
        reports = [DropReport(), DropReport()]
        parts = [read(name, reports[i], part=part, bad_utf8="skip") for i, part in enumerate(((0, limit), (limit, 1)))]
        assert "".join(text for part in parts for text, _ in part) == "abc\nde\n"
        assert sum(report.counts.get("bad UTF-8", 0) for report in reports) == 3


def test_what_holds_no_text_is_counted(write, read):
    report = DropReport()
    assert read(write("empty.txt", ""), report) == []
    assert read(write("blank.txt", " \n\n"), report) == []
    assert read(write("blank.jsonl", '{"source": " "}\n{"source": "x"}'), report) == [("x", 2)]
    assert report.counts == {"empty source": 3}
    assert read("blank.txt", report, documents="line") == read("blank.txt", report, documents="paragraph") == []


@pytest.mark.parametrize("kind", ["paragraph", "line"])
def test_memory_does_not_grow_with_documents(tmp_path, kind):
    path = Path(tmp_path / "text")
    path.write_bytes(b"a short line\n\n" * 20_011)
    documents = read_documents(CorpusConfig(source=str(path), part=(0, 0.9)), DataConfig(documents=kind))
    tracemalloc.start()
    try:
        assert sum(1 for _ in documents) == 18_010
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_sections_end_at_two_blank_lines_and_keep_single_ones(write, read):
    name = write("book.txt", "\n\n\nONE\n\nIt began.\nIt went on.\n\n\n\nTWO\n\nIt ended.\n\n\n\n")
    assert read(name, documents="section") == [("ONE\n\nIt began.\nIt went on.", 4), ("TWO\n\nIt ended.", 11)]


def test_a_folder_may_hold_empty_files_but_none_too_small_for_a_part(write, read):
    write("many/a.jsonl", '{"source": "one"}\n{"source": "two"}\n')
    write("many/b.jsonl", "")
    assert [read("many", part=part) for part in ((0.0, 0.5), (0.5, 1.0))] == [[("one", 1)], [("two", 2)]]
    with pytest.raises(InputError, match=r"a\.jsonl: part .* contains none of its 2 rows; .* or merge small files"):
        read("many", part=(0.0, 0.4))


def test_endings_may_be_written_in_capitals(write, read):
    write("many/A.TXT", "one")
    write("many/b.Jsonl.GZ", gzip.compress(b'{"source": "two"}'))
    assert read("many") == [("one", 1), ("two", 1)]
    write("B.TXT.GZ", gzip.compress(b"three"))
    assert read("B.TXT.GZ") == [("three", 1)]
    write("C.CSV", "text,label\nfour,a\n")
    assert read("C.CSV", source_field="text") == [("four", 2)]
