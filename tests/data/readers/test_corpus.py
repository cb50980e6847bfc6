import gzip
import json
import os
import random
import re
from pathlib import Path

import numpy as np
import pytest

from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.corpus import SentencePair, find_drift, read_pairs
from heedful.data.readers.drop_report import DropReport
from heedful.data.readers.files import BadUtf8
from heedful.errors import InputError

TWO_FILES = CorpusConfig(source="a.en", target="a.de")


@pytest.fixture
def folder(tmp_path):
    """A function that writes files by name and returns the data settings of their folder."""

    def write(policy: BadUtf8 = "error", /, **files: bytes | str) -> DataConfig:
        for name, content in files.items():
            raw = content.encode() if isinstance(content, str) else content
            path = tmp_path / name.replace("_", ".")
            path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
        return DataConfig(root=str(tmp_path), bad_utf8=policy)

    return write


def sentences(count: int, seed: int = 3) -> tuple[list[str], list[str]]:
    """Parallel lines whose lengths go together about as well as those of English and German."""
    rng = random.Random(seed)
    lengths = [rng.randint(7, 113) for _ in range(count)]
    return ["e" * n for n in lengths], ["d" * max(1, round(n * rng.gauss(1.1, 0.13))) for n in lengths]


def lines(texts: list[str]) -> str:
    return "".join(text + "\n" for text in texts)


def test_two_files_are_read_side_by_side(folder):
    data = folder(a_en="one\n\nthree\n", a_de="eins\r\nzwei\r\ndrei")
    assert list(read_pairs(TWO_FILES, data)) == [
        SentencePair(1, "one", "eins"),
        SentencePair(2, "", "zwei"),
        SentencePair(3, "three", "drei"),
    ]


def test_plain_and_compressed_files_mix(folder):
    data = folder(a_en_gz="one\ntwo\n", a_de="eins\nzwei\n")
    assert len(list(read_pairs(CorpusConfig(source="a.en.gz", target="a.de"), data))) == 2


@pytest.mark.parametrize(
    "disguise",
    [
        lambda text: "\ufeff" + text,
        lambda text: "\ufeff\ufeff" + text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\r\n", 1),
        lambda text: text.replace("\ntwo", "\n\ufefftwo"),
        lambda text: text.rstrip("\n"),
    ],
    ids=[
        "byte order mark",
        "two marks",
        "CRLF",
        "mixed line ends",
        "mark inside, as cat leaves it",
        "no last line feed",
    ],
)
def test_what_editors_do_to_files_does_not_matter(folder, disguise):
    clean, german = "one\ntwo\nthree\n", "eins\nzwei\ndrei\n"
    expected = list(read_pairs(TWO_FILES, folder(a_en=clean, a_de=german)))
    assert list(read_pairs(TWO_FILES, folder(a_en=disguise(clean), a_de=german))) == expected
    assert len(expected) == 3


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\r"])
def test_other_separators_do_not_shift_the_pairs(folder, separator):
    data = folder(a_en=f"one{separator}more\ntwo\n", a_de="eins\nzwei\n")
    assert list(read_pairs(TWO_FILES, data)) == [
        SentencePair(1, f"one{separator}more", "eins"),
        SentencePair(2, "two", "zwei"),
    ]


CORRUPTIONS = {
    "a line is lost at the beginning": lambda s, t: (s[1:], t),
    "a line is lost in the middle": lambda s, t: (s[:499] + s[500:], t),
    "a line is lost at the end": lambda s, t: (s, t[:-1]),
    "a line comes twice": lambda s, t: (s, t[:211] + t[210:]),
    "the target is cut in half": lambda s, t: (s, t[: len(t) // 2]),
    "a sentence is broken over two lines": lambda s, t: ([*s[:307], s[307][:9], s[307][9:], *s[308:]], t),
    "two sentences are joined": lambda s, t: (s, [*t[:401], t[401] + t[402], *t[403:]]),
    "an empty line is added": lambda s, t: ([*s[:601], "", *s[601:]], t),
    "empty lines are left out": lambda s, t: ([line for line in [*s[:97], "", *s[98:]] if line], t),
    "one file is empty": lambda s, t: (s, t[:0]),
}


@pytest.mark.parametrize("corrupt", CORRUPTIONS.values(), ids=CORRUPTIONS.keys())
def test_files_of_unequal_length_are_refused_before_the_first_pair(folder, corrupt):
    source, target = corrupt(*sentences(997))
    pairs = read_pairs(TWO_FILES, folder(a_en=lines(source), a_de=lines(target)))
    with pytest.raises(InputError) as caught:
        next(pairs)
    message = str(caught.value)
    assert f"a.en has {len(source):,} lines" in message
    assert f"a.de has {len(target):,};" in message


@pytest.mark.parametrize("lost", [29, 211, 499, 887])
def test_the_message_names_about_the_line_that_was_lost(folder, lost):
    source, target = sentences(997)
    del target[lost - 1]
    with pytest.raises(InputError) as caught:
        next(read_pairs(TWO_FILES, folder(a_en=lines(source), a_de=lines(target))))
    named = re.search(r"at about line (\d+):", str(caught.value))
    assert named is not None
    assert abs(int(named[1]) - lost) <= 11


def test_no_line_is_suspected_where_all_lengths_go_together():
    source, target = (np.array([len(line) for line in side], dtype=float) for side in sentences(997))
    assert find_drift(source, target) is None
    assert find_drift(source[:1], target[:1]) is None
    free_at_first = np.concatenate([np.roll(target[:307], 11), target[307:]])
    assert find_drift(source, free_at_first) is None
    assert find_drift(source, source) is None


def test_bad_utf8_drops_the_pair_and_is_counted(folder):
    data = folder("skip", a_en=b"one\n\xfftwo\nthree\nfour\n", a_de=b"eins\nzwei\ndr\xe9i\nvier\n")
    report = DropReport()
    assert list(read_pairs(TWO_FILES, data, report)) == [
        SentencePair(1, "one", "eins"),
        SentencePair(4, "four", "vier"),
    ]
    assert report.rows() == [("bad UTF-8", 2, "a.en, line 2")]


def test_bad_utf8_is_an_error_by_default(folder):
    data = folder(a_en=b"one\ntwo\n", a_de=b"eins\n\xffzwei\n")
    with pytest.raises(InputError, match=r"a\.de, line 2, byte 1"):
        list(read_pairs(TWO_FILES, data))


def test_bad_utf8_can_be_replaced(folder):
    data = folder("replace", a_en=b"\xffone\n", a_de=b"eins\n")
    assert list(read_pairs(TWO_FILES, data)) == [SentencePair(1, "\ufffdone", "eins")]


@pytest.mark.parametrize(
    ("text", "fields", "expected"),
    [
        ("one\teins\ntwo\tzwei\n", {}, [SentencePair(1, "one", "eins"), SentencePair(2, "two", "zwei")]),
        ("source\ttarget\none\teins\n", {}, [SentencePair(2, "one", "eins")]),
        ("target\tid\tsource\neins\t7\tone\n", {}, [SentencePair(2, "one", "eins")]),
        ("id\ten\tde\n7\tone\teins\n", {"source_field": "en", "target_field": "de"}, [SentencePair(2, "one", "eins")]),
        ("7\tone\t8\teins\n", {"source_field": "2", "target_field": "4"}, [SentencePair(1, "one", "eins")]),
        ("id\ten\tde\n7\tone\teins\n", {"source_field": "en", "target_field": "3"}, [SentencePair(2, "one", "eins")]),
        ("id\tTarget\tSource\n7\teins\tone\n", {}, [SentencePair(2, "one", "eins")]),
        ("id\ttarget\tSource\n7\teins\tone\n", {}, [SentencePair(2, "one", "eins")]),
        ('"one\t"eins\n', {}, [SentencePair(1, '"one', '"eins')]),
        ("one\t\r\n", {}, [SentencePair(1, "one", "")]),
        ("\ufeffsource\ttarget\r\none\teins\r\n", {}, [SentencePair(2, "one", "eins")]),
    ],
)
def test_tables_are_read_by_column_name_or_number(folder, text, fields, expected):
    assert list(read_pairs(CorpusConfig(source="a.tsv", **fields), folder(a_tsv=text))) == expected
    compressed = CorpusConfig(source="a.tsv.gz", **fields)
    assert list(read_pairs(compressed, folder(a_tsv_gz=text))) == expected


@pytest.mark.parametrize(
    ("text", "fields", "problem"),
    [
        ("one\teins\ntwo\n", {}, r"a\.tsv, line 2: malformed row: 1 column"),
        ("one\teins\n\ntwo\tzwei\n", {}, r"a\.tsv, line 2: malformed row"),
        ("one eins\n", {}, r"a\.tsv, line 1: has 1 column"),
        ("source\teins\n", {}, r"no column is named 'target'; the first line has 'source', 'eins'"),
        (
            "id\ten\tde\n7\tone\teins\n",
            {},
            r"'id' is read as the text; the first line has 'id', 'en', 'de'",
        ),
        ("one\teins\n", {"source_field": "en", "target_field": "de"}, r"no column is named 'en'.*source_field"),
        ("one\teins\n", {"source_field": "0", "target_field": "2"}, r"no column is named '0'"),
        ("one\teins\n", {"source_field": "1", "target_field": "3"}, r"line 1: has 2 columns, but column 3"),
        ("one\teins\n\xff\tzwei\n".encode("latin-1"), {}, r"a\.tsv, line 2, byte 1"),
    ],
)
def test_broken_tables_are_refused_with_file_and_line(folder, text, fields, problem):
    with pytest.raises(InputError, match=problem):
        list(read_pairs(CorpusConfig(source="a.tsv", **fields), folder(a_tsv=text)))


def test_pairs_are_read_from_a_table_with_commas_and_quotes(folder):
    data = folder(a_csv='en,de\n"one, ""two""","eins\nzwei"\nthree,drei\n')
    corpus = CorpusConfig(source="a.csv", source_field="en", target_field="de")
    assert list(read_pairs(corpus, data)) == [
        SentencePair(2, 'one, "two"', "eins\nzwei"),
        SentencePair(4, "three", "drei"),
    ]


def test_objects_are_read_by_key(folder):
    rows = [{"id": 7, "de": "eins\u2028", "en": "one"}, {"en": "", "de": "zw\tei", "more": None}]
    data = folder(a_jsonl="\ufeff" + lines([json.dumps(row, ensure_ascii=False) for row in rows]))
    corpus = CorpusConfig(source="a.jsonl", source_field="en", target_field="de")
    assert list(read_pairs(corpus, data)) == [SentencePair(1, "one", "eins\u2028"), SentencePair(2, "", "zw\tei")]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"source": "one", "target": "eins"', "not JSON"),
        ("one\teins", "not JSON"),
        ("", "not JSON"),
        ('["one", "eins"]', "a JSON list, not an object"),
        ('{"source": "one", "ziel": "eins"}', "no key 'target'; it has 'source', 'ziel'"),
        ("{}", "no key 'source'; it has none"),
        ('{"source": "one", "target": 1}', "'target' is a JSON number, not text"),
        ('{"source": null, "target": "eins"}', "'source' is null"),
        pytest.param("[" * 100_003, "not JSON", id="deep"),
        pytest.param('{"source": ' + "9" * 5003 + "}", "not JSON", id="number"),
        ('{"source": "\\ud800", "target": "eins"}', "contains a lone surrogate (U+D800)"),
    ],
)
def test_broken_objects_are_refused_with_file_and_line(folder, line, problem):
    data = folder(a_jsonl='{"source": "one", "target": "eins"}\n' + line + "\n")
    with pytest.raises(InputError, match=re.escape(problem)) as caught:
        list(read_pairs(CorpusConfig(source="a.jsonl"), data))
    assert "a.jsonl, line 2" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "corpus"), [("a_jsonl", '{"source": "\\udfff", "target": "x"}\n'), ("a_tsv", b"\xff\tx\n")]
)
def test_bad_text_inside_one_file_is_dropped_and_counted(folder, name, corpus):
    report = DropReport()
    config = CorpusConfig(source=name.replace("_", "."))
    assert list(read_pairs(config, folder("skip", **{name: corpus}), report)) == []
    assert report.counts == {"bad UTF-8": 1}
    ((_, source, target),) = read_pairs(config, folder("replace", **{name: corpus}))
    assert "\ufffd" in source
    assert target == "x"


@pytest.mark.parametrize("name", ["a.en", "a.en.gz", "a", "a.dat", "tsv"])
def test_one_file_of_unknown_kind_is_refused(folder, name):
    with pytest.raises(InputError, match=r"\.tsv, \.csv or \.jsonl.*give the file of the other as target"):
        next(read_pairs(CorpusConfig(source=name), folder()))


@pytest.mark.parametrize("missing", ["a.en", "a.de"])
def test_a_missing_file_is_named(folder, missing, tmp_path):
    data = folder(a_en="one\n", a_de="eins\n")
    (tmp_path / missing).unlink()
    with pytest.raises(InputError, match=f"{re.escape(missing)}: no such file"):
        next(read_pairs(TWO_FILES, data))


def test_absolute_names_do_not_start_at_the_root(folder, tmp_path):
    folder(a_tsv="one\teins\n")
    corpus = CorpusConfig(source=str(tmp_path / "a.tsv"))
    assert list(read_pairs(corpus, DataConfig(root="elsewhere"))) == [SentencePair(1, "one", "eins")]


def test_a_pipe_is_refused_because_it_can_be_read_only_once(folder, tmp_path):
    data = folder(a_de="eins\n")
    os.mkfifo(tmp_path / "a.en")
    with pytest.raises(InputError, match=r"a\.en: not a regular file.*save it to a file"):
        next(read_pairs(TWO_FILES, data))


def test_a_line_of_a_million_characters_stays_beside_its_partner(folder):
    long = "字" * 1_000_000
    data = folder(a_en=f"one\n{long}\nthree\n", a_de="eins\nzwei\ndrei\n")
    assert [(pair.line, len(pair.source), pair.target) for pair in read_pairs(TWO_FILES, data)] == [
        (1, 3, "eins"),
        (2, 1_000_000, "zwei"),
        (3, 5, "drei"),
    ]


def test_a_folder_is_not_a_corpus(folder, tmp_path):
    Path(tmp_path / "a.en").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        next(read_pairs(TWO_FILES, folder(a_de="eins\n")))


def test_a_header_below_a_blank_line_is_no_pair(folder):
    corpus = CorpusConfig(source="a.csv", source_field="1", target_field="2")
    assert list(read_pairs(corpus, folder(a_csv="\nen,de\none,eins\n"))) == [SentencePair(3, "one", "eins")]
