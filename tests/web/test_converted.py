"""A model of somebody else, converted: its pages show what the original attends to."""

from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

import foreign_models
from heedful.checkpoint import load_model, write_model
from heedful.convert import FORMATS
from heedful.inspector.capture.forward_inputs import reading
from heedful.inspector.page import Page
from heedful.text.hugging_face import from_hugging_face
from printed import table
from served import Live

pytest.importorskip("transformers")

TEXT = "the old dog sees the station"
VIEWS = {"BertModel": 9, "BertForPreTraining": 11}  # what embeds sentences has no output: no lens, and no pairs
LAYER, HEAD = 2, 1


@pytest.fixture(scope="module", params=VIEWS)
def converted(request, tmp_path_factory):
    """The kind of model, the original in its folder, and a server of ours."""
    folder = tmp_path_factory.mktemp("converted") / "theirs"
    original: Any = foreign_models.bert(folder, request.param)
    original.set_attn_implementation("eager")  # the one that says where it looks
    read = FORMATS["bert"].read(folder)
    write_model(folder.parent / "ours", read.recipe, read.tokenizers, read.weights)
    model = load_model(folder.parent / "ours")
    with Live({"theirs": model}, Page.built(), ([], [])) as server:
        yield request.param, original, folder, model, server


def test_a_converted_model_has_the_views_that_make_sense_for_it(converted, watched):
    kind, _, _, _, server = converted
    page = watched.open(server.url(model="theirs", text=TEXT))
    buttons = page.get_by_role("navigation").get_by_role("button")
    expect(buttons).to_have_count(VIEWS[kind])
    for button in buttons.all():
        button.click()
        expect(button).to_have_attribute("aria-current", "true")
        page.wait_for_selector("main h2")
    assert watched.complaints == []


def test_a_head_of_a_converted_model_is_that_of_the_original(converted, watched):
    _, original, folder, model, server = converted
    page = watched.open(server.url("attention", model="theirs", text=TEXT, block=f"enc.{LAYER}.self", head=HEAD))
    page.get_by_role("button", name="Numbers as a table").click()
    shown = page.get_by_role("region")
    shown.wait_for()
    ids = torch.from_numpy(from_hugging_face(folder)[1])[reading(model.use(), TEXT).lines["src"].read.ids]
    with torch.inference_mode():
        weights = original(ids[None], output_attentions=True).attentions[LAYER][0, HEAD]
    assert np.allclose(table(shown), weights, atol=5.1e-4)
