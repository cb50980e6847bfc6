"""What a page prints is what the model computed."""

import math
import re

import numpy as np
import pytest

import served
from heedful.inspect_.look import Question, look
from heedful.inspect_.page import Page
from heedful.inspect_.view import View

TEXT = "the old dog sees the station ."
NASTY = "</script><img src=x onerror=window.pwned=1> \u202egod\u202c dog \0 😀 <b>&amp;"


def own(name, text=TEXT):
    """The same look, made here."""
    return look(served.models()[name].use(), Question(text=text))


def table(page):
    """The numbers of the table on a page."""
    return [[float(cell) for cell in row.locator("td").all_inner_texts()] for row in page.locator("tbody tr").all()]


@pytest.mark.parametrize(
    ("model", "block", "head"), [("translator", "dec.1.cross", 1), ("gpt", "dec.0.self", 0), ("bert", "enc.1.self", 1)]
)
def test_the_table_of_a_head_holds_its_weights(live, watched, model, block, head):
    page = watched.open(live.url("attention", model=model, text=TEXT, block=block, head=head))
    page.get_by_role("button", name="Numbers as a table").click()
    page.wait_for_selector("tbody tr")
    page.wait_for_selector("text=rounded to a byte", state="detached")
    weights = own(model).trace[f"{block}.attn"].values[head]
    assert np.allclose(table(page), weights, atol=0.0005 + 1e-9)


def test_words_sum_what_their_pieces_hold(live, watched):
    page = watched.open(live.url("attention", model="translator", text=TEXT, block="enc.0.self", head=1, words=1))
    page.get_by_role("button", name="Numbers as a table").click()
    page.wait_for_selector("tbody tr")
    page.wait_for_selector("text=rounded to a byte", state="detached")
    seen = own("translator")
    words = seen.reading.lines["src"].read.word_of_piece
    belongs = np.eye(max(words) + 1)[words]
    weights = (belongs / belongs.sum(0)).T @ seen.trace["enc.0.self.attn"].values[1] @ belongs
    assert np.allclose(table(page), weights, atol=0.0005 + 1e-9)


def test_the_cell_that_is_pointed_at_tells_its_weight(live, watched):
    selected = {"model": "translator", "text": TEXT, "block": "dec.2.cross", "head": 0, "query": 1, "key": 2}
    page = watched.open(live.url("attention", **selected))
    page.wait_for_selector("text=rounded to a byte", state="detached")
    said = page.locator("[aria-live] strong").inner_text()
    assert float(said) == pytest.approx(float(own("translator").trace["dec.2.cross.attn"].values[0, 1, 2]), abs=5e-5)


def test_scores_and_probabilities_of_answers_are_those_of_the_search(live, watched):
    page = watched.open(live.url(model="translator", text=TEXT))
    options = own("translator").answers[0].options
    shown = page.locator("main ol > li").all()
    assert len(shown) == len(options)
    for item, option in zip(shown, options, strict=True):
        assert item.locator(".said").inner_text().split() == option.text.split()
        [score] = re.findall(r"score (-?[\d.]+)", item.inner_text())
        assert float(score) == pytest.approx(option.score, abs=5e-5)
        shares = [float(text) for text in item.locator("small").all_inner_texts()]
        assert shares == [pytest.approx(100 * math.exp(x), abs=0.5 + 1e-6) for x in option.log_probs]


def test_what_somebody_writes_is_shown_and_never_executed(live, watched):
    page = watched.open(live.url("tokens", model="bert", text=NASTY.replace("\0", "") + " <mask>"))
    for view in ("Answer", "Attention", "Logit lens", "Tokens"):
        page.get_by_role("navigation").get_by_role("button", name=view, exact=True).click()
        page.wait_for_timeout(200)
        assert page.evaluate("window.pwned") is None
        assert page.locator("main img").count() == 0
    assert page.get_by_label("Text", exact=True).input_value().startswith("</script><img")
    assert watched.complaints == []


def test_a_file_shows_what_somebody_wrote_and_never_executes_it(watched, tmp_path):
    seen = own("translator", NASTY)
    path = tmp_path / "page.html"
    path.write_text(View(NASTY, served.models()["translator"], seen, Page.built(), ("enc.0.self", 0)).html)
    page = watched.open(path.as_uri())
    assert page.evaluate("window.pwned") is None
    assert page.locator("img").count() == 0
    assert "</script><img" in page.inner_text("header")
