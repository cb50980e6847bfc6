"""What a page prints of vectors, of two models, of a run, and of what was tried is what Python computes."""

import json
import re

import numpy as np
import pytest
from playwright.sync_api import expect

import served
from heedful.inspector.capture.recorder import Head, heads
from heedful.inspector.capture.trace import trace
from heedful.inspector.development import read_run, snapshots
from heedful.inspector.experiments.ablation import cost, effect
from heedful.inspector.experiments.minimal_pairs import contrasts, shifts, summaries
from heedful.inspector.look import Question, look
from heedful.inspector.measures.embeddings import neighbours, row
from printed import figure, figures, table
from printed import heads as head_map

TEXT = "the old dog sees the station ."
SHOWN = 5.1e-4  # of three digits after the point


def panel(page, label):
    """A part of a page, when it is there."""
    found = page.locator(f'main section[aria-label="{label}"]')
    found.wait_for()
    return found


@pytest.mark.parametrize(
    ("model", "line"), [("translator", "src"), ("translator", "tgt"), ("gpt", "tgt"), ("bert", "src")]
)
def test_a_token_has_its_row_its_position_and_its_neighbours(live, watched, model, line):
    page = watched.open(live.url("tokens", model=model, text=TEXT, line=line, query=2))
    part = panel(page, "The chosen token")
    expect(part.get_by_role("rowheader").first).to_have_text("Row of the table")
    subject = served.models()[model].use()
    seen = look(subject, Question(text=TEXT))
    token = seen.trace.lines[line].read.ids[2]
    names = (
        ("tok", "pos", "sum", "in") if model != "gpt" else ("tok", "in")
    )  # its positions are relative: none is added
    stages = [seen.trace[f"{line}.{name}"].values[2] for name in names]
    expected = [np.array(row(subject.model, line, token).values), *stages]
    numbers = [[*vector[:8], np.linalg.norm(vector.astype(float))] for vector in expected]
    assert np.allclose(table(part), numbers, atol=SHOWN)
    tokenizer = getattr(subject, "tokenizer", None) or getattr(
        subject.tokenizers, {"src": "source", "tgt": "target"}[line]
    )
    near = neighbours(subject.model, tokenizer, line, token)
    items = panel(page, "Tokens with similar rows").locator("li").all()
    assert [int(figure(item.locator("small").inner_text())) for item in items] == [one.token for one in near]
    cosines = [figure(item.locator("span.number").inner_text()) for item in items]
    assert np.allclose(cosines, [one.cosine for one in near], atol=SHOWN)


def log_probs(subject, target):
    """Log P of each token of a text and of its end."""
    seen = trace(subject, TEXT, target)
    logits = seen["logits"].values.astype(float)
    chosen = seen.lines["tgt"].written.ids
    return logits[np.arange(len(chosen)), chosen] - np.log(np.exp(logits).sum(-1))


def test_two_models_are_compared_token_by_token_and_head_by_head(live, watched):
    page = watched.open(
        live.url("compare", model="translator", beside="second", text=TEXT, block="dec.1.cross", head=1)
    )
    one, other = (served.loaded_translator(seed).use() for seed in (1, 2))
    target = look(one, Question(text=TEXT)).answers[0].options[0].text
    first, second = log_probs(one, target), log_probs(other, target)
    part = panel(page, "Each token's log-probability under both models")
    part.locator("tfoot").wait_for()
    assert np.allclose(table(part), np.stack([first, second, second - first], 1), atol=SHOWN)
    sums = [figure(cell) for cell in part.locator("tfoot td.number").all_inner_texts()]
    assert np.allclose(sums, [first.sum(), second.sum(), (second - first).sum()], atol=SHOWN)
    part = panel(page, "What each head attends to")
    part.get_by_role("grid").wait_for()
    seen, beside = (trace(subject, TEXT, target, keep=["*.attn"]) for subject in (one, other))
    apart = [
        np.abs(beside[name].values - seen[name].values).sum((1, 2)) / 2 / seen[name].values.shape[1] for name in seen
    ]
    assert np.allclose(head_map(part), np.concatenate(apart), atol=0.0051)
    part.get_by_role("button", name="Numbers as a table").click()
    difference = beside["dec.1.cross.attn"].values[1] - seen["dec.1.cross.attn"].values[1]
    assert np.allclose(table(part.get_by_role("region")), difference, atol=SHOWN)


def test_a_run_shows_its_curves_and_what_its_heads_did(live, watched, trained):
    texts = {"text": "w1 w2 w3", "target": "w3 w2 w1"}
    page = watched.open(live.url("training", model="run", measure="entropy", **texts))
    run = read_run(trained)
    curve = panel(page, "Loss").get_by_role("application")
    curve.focus()
    page.keyboard.press("End")
    said = panel(page, "Loss").locator("[aria-live]")
    update = int(figures(said.inner_text())[0])
    expected = [dict(run.curves[name])[update] for name in ("loss", "valid_loss") if update in dict(run.curves[name])]
    assert expected
    assert np.allclose([figure(text) for text in said.locator("strong").all_inner_texts()], expected, atol=SHOWN)
    part = panel(page, "How heads form")
    part.get_by_role("button", name=re.compile("Measure")).click()
    expect(part).to_contain_text(f"{len(run.steps)} of {len(run.steps)} measured")
    found = list(snapshots(run.folder, **texts))
    last = [value for kinds in found[-1].heads.values() for value in kinds["entropy"]]
    assert np.allclose(head_map(part), last, atol=0.0051)
    part.get_by_role("button", name="Numbers as a table").click()
    blocks = list(found[-1].heads)
    assert np.allclose(
        table(part.get_by_role("region")), [one.heads[blocks[-1]]["entropy"] for one in found], atol=SHOWN
    )


OFF = [Head("dec.1.cross", 1), Head("enc.0.self", 0)]


def test_without_heads_every_token_has_its_new_probability(live, watched):
    off = " ".join(f"{head.block}.{head.number}" for head in OFF)
    page = watched.open(live.url("heads", model="translator", text=TEXT, off=off))
    page.locator("main tfoot").wait_for()
    subject = served.models()["translator"].use()
    found = effect(subject, look(subject, Question(text=TEXT)), OFF)
    whole, without = np.array(found.whole), np.array(found.without)
    part = page.get_by_role("region", name="Effect on the output tokens")
    assert np.allclose(table(part), np.stack([whole, without, without - whole], 1), atol=SHOWN)


def test_without_heads_every_choice_has_its_new_probability(live, watched):
    page = watched.open(live.url("heads", model="bert", text="the old [MASK] sees .", off="enc.1.self.0"))
    page.locator("main td.bar").first.wait_for()
    subject = served.models()["bert"].use()
    [choices] = effect(subject, look(subject, Question(text="the old [MASK] sees .")), [Head("enc.1.self", 0)]).choices
    expected = [[100 * one.whole, 100 * one.without, 100 * (one.without - one.whole)] for one in choices]
    assert np.allclose(table(page.locator("main")), expected, atol=0.0051)


def test_heads_are_worth_what_the_sample_says(live, watched):
    off = " ".join(f"{head.block}.{head.number}" for head in OFF)
    page = watched.open(live.url("heads", model="translator", text=TEXT, off=off))
    subject = served.models()["translator"].use()
    page.get_by_role("button", name="Measure BLEU without the heads that are off (2)").click()
    said = page.get_by_text(re.compile("^BLEU")).inner_text()
    found = cost(subject, OFF, *served.SAMPLE)
    change, level = found.difference, 95
    expected = [found.baseline.value, found.system.value, change.value, change.interval, level, found.p_value]
    assert np.allclose(figures(said), expected, atol=0.0051)
    page.get_by_role("button", name="Measure BLEU without each head").click()
    every = heads(subject.model)
    grid = page.get_by_role("grid")
    expect(grid.get_by_text("…")).to_have_count(0)
    changes = [
        one.system.value - one.baseline.value for one in (cost(subject, [head], *served.SAMPLE) for head in every)
    ]
    assert np.allclose(head_map(page.locator("main")), changes, atol=0.0051)


LINES = """the old dog sees .\tthe old book sees .\tder alte Hund .\tden Bahnhof .\tpair
the old dog sees .\tthe dog sees .\tder alte Hund .\tden Bahnhof .\tcontrol"""


@pytest.mark.parametrize("times", [1, 6])
def test_minimal_pairs_show_their_preferences_and_what_they_have_in_common(live, watched, times):
    written = "\n".join([LINES] * times)
    page = watched.open(live.url("bias", model="translator", text=TEXT))
    page.locator("#contrasts").fill(written)
    page.get_by_role("button", name="Ask the model").click()
    found = list(shifts(served.models()["translator"].use(), contrasts(written.splitlines())))
    lines = page.get_by_role("region", name="Line by line")
    lines.wait_for()
    expected = []
    for one in found:
        seen = one.attention or ()
        expected += [[one.preferences[0], *seen[:1], one.shift], [one.preferences[1], *seen[1:]]]
    assert [len(cells) for cells in table(lines)] == [len(cells) for cells in expected]
    assert np.allclose(np.concatenate(table(lines)), np.concatenate(expected), atol=SHOWN)
    for kind, (label, values) in zip(("pair", "control"), rows_of_verdict(page), strict=True):
        summary = summaries(found)[kind]
        assert label == f"{kind.capitalize()}s"
        sizes = [x for one in (summary.shift, summary.size) for x in one if x is not None]
        assert np.allclose(values, [summary.count, *sizes, summary.sided, summary.count], atol=SHOWN)


def rows_of_verdict(page):
    """What stands in the table of kinds: its name, and every number."""
    part = page.locator("main section.panel").filter(has=page.get_by_role("status"))
    for line in part.locator("tbody tr").all():
        cells = " ".join(line.locator("td.number").all_inner_texts())
        yield line.get_by_role("rowheader").inner_text(), figures(cells)


def test_a_search_that_is_asked_to_be_wider_than_it_may_be_says_so(live, watched):
    page = watched.open(live.url("search", model="translator", text=TEXT))
    assert page.locator("#search-beam").get_attribute("max") == json.dumps(20)
