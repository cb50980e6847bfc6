"""What a page prints is what the model computed."""

import math
import re

import numpy as np
import pytest

import served
from heedful.inspector.look import Question, look
from heedful.inspector.page import Page, View
from printed import figure, table

TEXT = "the old dog sees the station ."
NASTY = "</script><img src=x onerror=window.pwned=1> \u202egod\u202c dog \0 😀 <b>&amp;"


def own(name, text=TEXT):
    """The same look, made here."""
    return look(served.models()[name].use(), Question(text=text))


@pytest.mark.parametrize(
    ("model", "block", "head"), [("translator", "dec.1.cross", 1), ("gpt", "dec.0.self", 0), ("bert", "enc.1.self", 1)]
)
def test_the_table_of_a_head_holds_its_weights(live, watched, model, block, head):
    page = watched.open(live.url("attention", model=model, text=TEXT, block=block, head=head))
    page.get_by_role("button", name="Numbers as a table").click()
    page.wait_for_selector("tbody tr")
    weights = own(model).trace[f"{block}.attn"].values[head]
    assert np.allclose(table(page), weights, atol=0.0005 + 1e-9)


def test_words_sum_what_their_pieces_hold(live, watched):
    page = watched.open(live.url("attention", model="translator", text=TEXT, block="enc.0.self", head=1, words=1))
    page.get_by_role("button", name="Numbers as a table").click()
    page.wait_for_selector("tbody tr")
    seen = own("translator")
    words = seen.forward.lines["src"].read.word_of_piece
    belongs = np.eye(max(words) + 1)[words]
    weights = (belongs / belongs.sum(0)).T @ seen.trace["enc.0.self.attn"].values[1] @ belongs
    assert np.allclose(table(page), weights, atol=0.0005 + 1e-9)


def test_the_cell_that_is_pointed_at_tells_its_weight(live, watched):
    selected = {"model": "translator", "text": TEXT, "block": "dec.2.cross", "head": 0, "query": 1, "key": 2}
    page = watched.open(live.url("attention", **selected))
    said = page.locator("[aria-live] strong").inner_text()
    assert figure(said) == pytest.approx(float(own("translator").trace["dec.2.cross.attn"].values[0, 1, 2]), abs=5e-5)


def test_scores_and_probabilities_of_answers_are_those_of_the_search(live, watched):
    page = watched.open(live.url(model="translator", text=TEXT))
    options = own("translator").answers[0].options
    shown = page.locator("main ol > li").all()
    assert len(shown) == len(options)
    for item, option in zip(shown, options, strict=True):
        assert item.locator(".said").inner_text().split() == option.text.split()
        [score] = re.findall(r"score (\S+)", item.inner_text())
        assert figure(score) == pytest.approx(option.score, abs=5e-5)
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


def column(page, step):
    """What the board of a formula shows in one step, by key."""
    cells = page.locator(f'button[data-cell$=" {step}"]').all()
    return [figure(cell.inner_text()) for cell in cells]


def close(shown, expected):
    """Equal in the digits that are shown."""
    expected = np.asarray(expected, dtype=float)
    hidden = expected < -1e8
    assert np.array_equal(np.isinf(shown), hidden)
    assert np.allclose(np.asarray(shown)[~hidden], expected[~hidden], atol=5.1e-4, rtol=0.06)


@pytest.mark.parametrize(
    ("model", "block", "head", "query"),
    [("translator", "dec.1.cross", 1, 2), ("gpt", "dec.1.self", 1, 2), ("bert", "enc.0.self", 0, 3)],
)
def test_each_step_of_the_formula_shows_the_numbers_of_the_model(live, watched, model, block, head, query):
    selected = {"model": model, "text": TEXT, "block": block, "head": head, "query": query, "step": 7}
    page = watched.open(live.url("formula", **selected))
    page.wait_for_selector("button[data-cell]")
    trace = own(model).trace
    q, k, score, bias, attn = (trace[f"{block}.{place}"].values for place in ("q", "k", "score", "bias", "attn"))
    bias = bias[min(head, len(bias) - 1)]
    bias = bias[min(query, len(bias) - 1)]
    close(column(page, 2), k[head].astype(float) @ q[head, query])
    close(column(page, 3), score[head, query])
    close(column(page, 4), score[head, query] + bias)
    close(column(page, 5), attn[head, query])


@pytest.mark.parametrize("step", [3, 5, 6])
def test_the_browser_computes_a_head_again_and_finds_the_same(live, watched, step):
    selected = {"model": "translator", "text": TEXT, "block": "dec.2.cross", "head": 1, "step": step}
    page = watched.open(live.url("formula", **selected))
    said = page.wait_for_selector("text=recomputed in this browser").inner_text()
    assert 0 < figure(re.findall(r"at most (.*)\.$", said)[0]) < 1e-5


def test_the_stream_shows_lengths_and_spreads_of_its_vectors(live, watched):
    page = watched.open(live.url("stream", model="translator", text=TEXT, block="dec.0.self", query=2))
    shown = page.get_by_role("region", name="Token", exact=True)
    shown.wait_for()
    trace = own("translator").trace
    expected = []
    for name in [f"dec.{n}.{kind}" for n in range(3) for kind in ("self", "cross", "ffn")]:
        before, added, after = (trace[f"{name}.{tap}"].values[2].astype(float) for tap in ("in", "out", "resid"))
        lengths = [np.linalg.norm(x) for x in (before, added, after)]
        entering = before + added  # of a post-norm model
        expected.append([lengths[1] / lengths[0], *lengths, entering.mean(), entering.std()])
    assert np.allclose(table(shown), expected, atol=6e-4)


def test_the_lens_shows_what_each_block_would_say(live, watched):
    page = watched.open(live.url("lens", model="translator", text=TEXT))
    page.wait_for_selector("main dl")
    seen = own("translator")
    best = np.exp(seen.lens.log_probs[-1, 0])
    shown = re.findall(r"([\d.]+) %", page.locator("section:has(dl) table").first.inner_text())
    assert np.allclose([float(text) for text in shown], 100 * best, atol=0.051)


def test_a_step_of_the_search_shows_every_candidate_and_its_fate(live, watched):
    page = watched.open(live.url("search", model="translator", text=TEXT, step=2))
    page.wait_for_selector("main table tbody tr")
    log = own("translator").log
    nodes = [node for node in log.nodes if node.step == 2]
    rows = page.locator("main table tbody tr").all()
    assert len(rows) == len(nodes)
    for row, node in zip(rows, nodes, strict=True):
        shown = row.locator("td.number").all_inner_texts()
        assert int(shown[0]) == node.rank + 1
        if math.isfinite(node.total):
            assert [figure(text) for text in shown[1:]] == pytest.approx(
                [node.log_prob, node.total, node.score], abs=6e-4
            )
    assert "the same 3 outputs in the same order" in page.inner_text("main")
