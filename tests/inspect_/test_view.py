"""A look becomes a page: in a notebook, in a file."""

import html
import re

import pytest

import heedful
from heedful.checkpoint import write_model
from heedful.config.schema import DecodeConfig, Recipe
from heedful.errors import InputError
from heedful.models import weights
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


def test_a_head_that_is_not_there_leaves_the_older_file(model, tmp_path):
    (tmp_path / "page.html").write_text("older")
    with pytest.raises(InputError, match="head 7"):
        heedful.look(model, TEXT, head=("enc.1.self", 7)).save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == "older"
