"""The report of a comparison in a browser: nothing is asked of a network, and it fits wide and narrow screens."""

import random

import pytest

from heedful.config.schema import Recipe
from heedful.tools.compare.job import Measured, TestResult
from heedful.tools.compare.report import html_page
from heedful.tools.compare.results import FAILED, SystemReport, gather, report_system
from heedful.tools.compare.setup import Budget

NAMES = ("short", "a-rather-long-name-of-a-system", "third")


def measured(place: int) -> Measured:
    """Numbers of a system whose outputs are the worse the later it comes."""
    rng = random.Random(place)
    right = [" ".join(f"word{(i + j) % 13}" for j in range(4 + i % 19)) for i in range(61)]
    outputs = [" ".join(word if rng.random() > 0.2 * place else "other" for word in text.split()) for text in right]
    lengths = [len(text.split()) for text in right]
    texts = {"source": right, "reference": right, "output": outputs}
    test = TestResult(count=61, scores={}, seconds=2.0, tokens=997, texts=texts, lengths=lengths, language="en")
    return Measured(
        parameters=123_457, kinds={}, precision="float32", updates=503, seconds=61.0, tokens=99_991,
        peak_memory=5 * 10**8, flops_per_update=3.1e9, flops_per_example=1.7e7,
        environment={"torch": "2", "machine": "x86_64", "device": "cpu", "gpu": "none", "threads": 2, "cores": 2},
        test=test,
    )  # fmt: skip


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    """A report of three systems and a failure, with the log of the first."""
    folder = tmp_path_factory.mktemp("report")
    log = "".join(f'{{"update": {i}, "loss": {9 - i / 100}, "valid_bleu": {i / 10}}}\n' for i in range(10, 510, 10))
    (folder / "log.jsonl").write_text(log)
    systems = [report_system(name, f"{name}.toml", Recipe(), measured(i), folder) for i, name in enumerate(NAMES)]
    systems.append(SystemReport("gone", "gone.toml", None, FAILED, "gone.toml: no such recipe; " * 7))
    path = folder / "report.html"
    path.write_text(html_page(gather(systems, "the test set", Budget(updates=503))), encoding="utf-8")
    return path


@pytest.mark.sampled(2)
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_fits_the_screen_and_asks_no_network(chromium, page_file, width, scheme):
    context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
    page = context.new_page()
    said, asked = [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(page_file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert asked == [page_file.as_uri()]
    assert said == []
    assert page.locator("figure svg").count() == 5
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")
    for text in page.locator("figure svg text").all():
        box, frame = text.bounding_box(), text.locator("xpath=ancestor::figure").bounding_box()
        assert box["x"] >= frame["x"] - 1
        assert box["x"] + box["width"] <= frame["x"] + frame["width"] + 1
    context.close()


def test_print_is_dark_on_white_in_any_scheme(chromium, page_file):
    page = chromium.new_page(color_scheme="dark")
    page.goto(page_file.as_uri())
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.close()
