"""`heedful inspect` and `heedful attention` with a file: an image or audio instead of a text."""

from functools import partial

import numpy as np
import pytest
from invocation import invoke
from PIL import Image

from heedful.architectures import weights
from heedful.checkpoint import write_model
from heedful.cli.inspect import opened_file
from heedful.errors import InputError
from toy_readers import CAPTION, FILES, PICTURE, SOUND, loaded

inspect, attention = partial(invoke, "inspect"), partial(invoke, "attention")


def written(task, folder):
    """The model of a task in a folder, and a file for it."""
    made = loaded(task)
    write_model(folder / "model", made.recipe, made.tokenizers, weights(made.model))
    (folder / "a.bin").write_bytes(FILES[task])
    return folder / "model", folder / "a.bin"


@pytest.mark.parametrize("task", FILES)
def test_a_look_at_a_file_becomes_a_page(task, tmp_path):
    model, file = written(task, tmp_path)
    result = inspect(model, file, "--out", tmp_path / "page.html")
    assert "page.html" in result.stderr
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert 'data-part="overview"' in page
    assert 'data-part="attention"' in page


def test_a_caption_and_a_head_are_chosen_as_for_a_text(tmp_path):
    model, file = written("captioning", tmp_path)
    inspect(model, file, "--target", CAPTION, "--head", "dec.0.cross.2", "--out", tmp_path / "page.html")
    assert 'data-part="dec.0.cross 1"' in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "a.bin: no such file"), (b"x", "a.bin: not an image"), (SOUND, "not an image")],
)
def test_a_file_that_cannot_be_read_is_named_and_leaves_nothing(tmp_path, content, words):
    model, file = written("captioning", tmp_path)
    file.unlink()
    if content:
        file.write_bytes(content)
    with pytest.raises(InputError, match=words):
        inspect(model, file, "--out", tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_the_live_page_opens_with_the_file_and_a_text_stays_a_text(tmp_path):
    model, file = written("captioning", tmp_path)
    assert opened_file(str(model), str(file)) == ("a.bin", PICTURE)
    assert opened_file(str(model), None) is None
    assert opened_file("en-de", "A dog barks.") is None
    with pytest.raises(InputError, match=r"a\.bin is a file, but en-de reads one text here"):
        opened_file("en-de", str(file))
    with pytest.raises(InputError, match=r"none\.png: no such file"):
        opened_file(str(model), "none.png")


def test_attention_over_a_picture_is_drawn_once_for_each_word(tmp_path):
    pytest.importorskip("matplotlib")
    model, file = written("captioning", tmp_path)
    out = tmp_path / "a.svg"
    result = attention(file, "--model", model, "--target", CAPTION, "--out", out, "--layer", "1", "--head", "2")
    assert result.stdout.strip() == CAPTION
    assert out.read_text().count("<image ") == len(CAPTION.split()) + 1  # with <eos>
    attention(file, "--model", model, "--out", tmp_path / "a.png")
    assert np.asarray(Image.open(tmp_path / "a.png")).std() > 10


def test_attention_over_a_sound_is_drawn_over_its_times(tmp_path):
    pytest.importorskip("matplotlib")
    model, file = written("speech_recognition", tmp_path)
    attention(file, "--model", model, "--target", "a high tone", "--out", tmp_path / "a.svg")
    assert "0.04 s" in (tmp_path / "a.svg").read_text()


def test_a_classifier_has_no_words_to_draw(tmp_path):
    pytest.importorskip("matplotlib")
    model, file = written("image_classification", tmp_path)
    with pytest.raises(InputError, match="image classification model"):
        attention(file, "--model", model, "--out", tmp_path / "a.svg")
