"""One file, opened without a server: every view that it can show, and not one request."""

import pytest

import served
from heedful.inspector.look import Question, look
from heedful.inspector.page import Page, View


@pytest.fixture(scope="module", params=["translator", "gpt", "bert", "classes"])
def exported(request, tmp_path_factory):
    """A file for each family, with where it lies and what is in it."""
    name = request.param
    model = served.models()[name]
    seen = look(model.use(), Question(text="the <mask> dog" if name == "bert" else "the old dog sees ."))
    path = tmp_path_factory.mktemp("export") / "page.html"
    View(name, model, seen, Page.built()).save(path)
    return path, seen


@pytest.mark.sampled(2)
def test_every_view_of_a_file_is_shown_without_one_request(exported, watched):
    path, _ = exported
    page = watched.open(path.as_uri())
    for button in page.get_by_role("navigation").get_by_role("button").all():
        button.click()
        page.wait_for_selector("main h2")
        page.wait_for_timeout(150)
    assert watched.requests == [path.as_uri()]
    assert watched.complaints == []


def test_a_file_draws_its_heads(exported, watched):
    path, seen = exported
    page = watched.open(path.as_uri() + "#/attention")
    page.wait_for_selector("canvas")
    colours = page.evaluate(
        """() => { const canvas = document.querySelector("canvas");
        const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        return new Set(new Uint32Array(pixels.buffer)).size }"""
    )
    assert colours > 3
    assert len([name for name in seen.trace if name.endswith(".attn")]) == page.locator(".names span").count()
