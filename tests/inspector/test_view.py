"""A look becomes a page: in a notebook, in a file."""

import html
import re

import numpy as np
import pytest

import heedful
from heedful.architectures import weights
from heedful.checkpoint import write_model
from heedful.config.schema import DecodeConfig, Recipe
from heedful.errors import InputError
from subjects import SHAPE, TEXT, translator


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    subject = translator()
    folder = tmp_path_factory.mktemp("view") / "model"
    recipe = Recipe(model=SHAPE, decode=DecodeConfig(beam=2, max_extra=3))
    write_model(folder, recipe, subject.tokenizers, weights(subject.model))
    return folder


def test_a_notebook_gets_the_page_in_a_frame(model):
    view = heedful.look(model, TEXT)
    [inside] = re.findall(r'<iframe srcdoc="([^"]*)"', view._repr_html_())
    assert html.unescape(inside) == view.html
    assert view.trace["dec.1.cross.attn"].values.shape[0] == 2


def test_a_file_holds_the_head_that_was_chosen(model, tmp_path):
    heedful.look(model, TEXT, "der alte Hund", ("enc.1.self", 1)).save(tmp_path / "page.html")
    assert 'data-part="enc.1.self 1"' in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_model_that_is_loaded_is_looked_into_like_one_by_name(model, tmp_path):
    view, named = heedful.look(heedful.load(model), TEXT), heedful.look(model, TEXT)
    assert all(np.array_equal(view.trace[name], named.trace[name]) for name in named.trace)
    assert view.name == "heedful"
    assert repr(view) == f"View('heedful', {TEXT!r}): displayed by a notebook, written by save(path)"
    view.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 1000


@pytest.mark.parametrize("subject", [{}, translator(), None], ids=["dict", "made by hand", "none"])
def test_what_no_folder_tells_about_is_refused(subject):
    with pytest.raises(InputError, match=r"that was not loaded from a model folder .* load one with heedful.load"):
        heedful.look(subject, TEXT)


@pytest.mark.parametrize(
    "head", ["dec.1.cross.1", ("dec.1.cross", "0"), ("dec.1.cross", 1.0), ("dec.1.cross",), ("dec.1.cross", True), 1]
)
def test_a_head_that_is_no_block_and_number_is_refused(model, head):
    with pytest.raises(InputError, match="must be a block and a head, counted from 0"):
        heedful.look(model, TEXT, head=head)


def test_a_head_that_is_not_there_leaves_the_older_file(model, tmp_path):
    (tmp_path / "page.html").write_text("older")
    with pytest.raises(InputError, match="head 7"):
        heedful.look(model, TEXT, head=("enc.1.self", 7)).save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == "older"
