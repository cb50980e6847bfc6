"""`heedful translate --alignments`: a line of links for every line of translation."""

import json
import re
from functools import partial
from pathlib import Path

import pytest
from invocation import invoke

from heedful import load
from heedful.errors import InputError
from heedful.text.words import word_spans

LINES = ["Where is the train station?", "", "Write to anna@example.org now. The man sees the dog.", "The red apple"]

run = partial(invoke, "translate", "--model", "en-de", "--engine", "torch")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The translations of the lines, and their alignments."""
    folder = tmp_path_factory.mktemp("aligned")
    (folder / "in").write_text("".join(f"{line}\n" for line in LINES))
    run("--input", folder / "in", "--output", folder / "out", "--alignments", folder / "links")
    return [(folder / name).read_text().split("\n") for name in ("out", "links")]


def read_pharaoh(line):
    """The links in a line, as any program reads them."""
    assert re.fullmatch(r"(\d+-\d+( \d+-\d+)*)?", line)
    return [tuple(map(int, link.split("-"))) for link in line.split()]


def test_each_line_links_words_of_the_line_and_its_translation(written):
    translations, lines = written
    assert len(translations) == len(lines) == len(LINES) + 1  # the last line ends
    for source, target, line in zip(LINES, translations, lines, strict=False):
        links = read_pharaoh(line)
        assert links == sorted(set(links))
        assert all(i < len(word_spans(source)) and j < len(word_spans(target)) for i, j in links)
    assert lines[0] == "0-0 1-1 2-2 3-3 4-3 5-4"
    assert lines[1] == ""


def test_the_alignment_is_that_of_the_text_that_is_written(written):
    # Literals are copied, and sentences are translated one by one: the text is not the model's own output.
    translations, lines = written
    assert "anna@example.org" in translations[2]
    pairs = list(zip(LINES, translations, strict=False))
    assert lines[: len(LINES)] == [str(alignment) for alignment in load("en-de").align(pairs)]


def test_json_has_the_spans_of_linked_words_for_each_alternative(tmp_path):
    result = run(LINES[0], "", "--json", "--beam", 2, "--n-best", 2, "--alignments", tmp_path / "links")
    first, blank = map(json.loads, result.stdout.splitlines())
    assert blank == {"translations": [], "truncated": False}
    assert len(first["translations"]) == 2
    words = [[(LINES[0][a:b], each["text"][c:d]) for a, b, c, d in each["alignment"]] for each in first["translations"]]
    assert words[0][:3] == [("Where", "Wo"), ("is", "ist"), ("the", "der")]
    lines = (tmp_path / "links").read_text().splitlines()
    assert len(read_pharaoh(lines[0])) == len(words[0])


def test_without_the_option_json_is_as_before():
    [line] = run(LINES[0], "--json").stdout.splitlines()
    assert list(json.loads(line)["translations"][0]) == ["text", "score", "pieces", "token_scores", "complete"]


def test_a_folder_is_refused(tmp_path):
    (tmp_path / "texts").mkdir()
    with pytest.raises(InputError, match=r"links: is for a single file, but --input .* is a folder"):
        run("--input", tmp_path / "texts", "--output", tmp_path / "out", "--alignments", tmp_path / "links")


def test_the_input_and_the_output_are_not_overwritten(tmp_path: Path):
    text = tmp_path / "in"
    text.write_text("Hello.\n")
    with pytest.raises(InputError, match=r"--alignments .*in is also the input"):
        run("--input", text, "--alignments", text)
    with pytest.raises(InputError, match=r"--alignments .*out: is also --output"):
        run("--input", text, "--output", tmp_path / "out", "--alignments", tmp_path / "out")
    assert text.read_text() == "Hello.\n"


def test_nothing_is_written_if_a_line_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="line 2"):
        run("--alignments", tmp_path / "links", stdin=b"Hello.\n\xff\n")
    assert not list(tmp_path.iterdir())
