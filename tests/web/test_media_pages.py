"""Pages of models that read images or audio: a file is sent, and what is laid on it is what the model computed."""

import base64
import re
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

import served
import toy_readers
from heedful.inspector.look import Question, look
from heedful.inspector.overview import overview
from heedful.inspector.page import Page, View
from printed import figure, table
from toy_readers import FILES, PICTURE

AXE = Path(__file__).parents[2] / "web/node_modules/axe-core/axe.min.js"
VIEWS = {
    "captioning": {"answer", "tokens", "attention", "formula", "stream", "lens", "search", "heads", "training"},
    "audio_classification": {"answer", "attention", "formula", "stream", "heads", "training"},
}
ENDING = {"captioning": "png", "image_classification": "png"}


@pytest.fixture(scope="module")
def reading():
    """The small models that read files, served with the page as it was built."""
    models = toy_readers.models() | {"translator": served.loaded_translator(seed=1)}
    with served.Live(models, Page.built(), ([], [])) as server:
        yield server


def sent(task, content=None):
    """A file as a browser hands it in."""
    return {"name": f"a.{ENDING.get(task, 'wav')}", "mimeType": "", "buffer": content or FILES[task]}


def opened(page, server, task, view="answer", **selected):
    """The page of a model after a file was chosen."""
    page.goto(server.url(view, model=task, **selected))
    page.locator("input[type=file]").set_input_files(sent(task))
    page.wait_for_selector("main h2")
    return page


def own(task):
    """The same look, made here."""
    return look(toy_readers.loaded(task).use(), Question(text="a", file=FILES[task]))


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("task", "view"), [(task, view) for task in VIEWS for view in sorted(VIEWS[task])])
def test_a_page_is_shown_in_both_languages_and_fits_a_phone(reading, watched, task, view):
    page = opened(watched.page, reading, task, view)
    page.wait_for_timeout(300)
    english = page.inner_text("main")
    page.get_by_role("button", name="中文").click()
    expect(page.locator("html")).to_have_attribute("lang", "zh")
    assert any("一" <= character <= "鿿" for character in page.inner_text("main"))
    assert not any("一" <= character <= "鿿" for character in english)
    page.set_viewport_size({"width": 320, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert watched.complaints == []


@pytest.mark.parametrize("task", VIEWS)
def test_a_model_has_the_views_that_make_sense_for_a_file(reading, watched, task):
    page = opened(watched.page, reading, task)
    expect(page.get_by_role("navigation").get_by_role("button")).to_have_count(len(VIEWS[task]))


def test_a_caption_is_shown_token_by_token_beside_the_picture_that_the_model_reads(reading, watched):
    page = opened(watched.page, reading, "captioning")
    seen = own("captioning")
    pieces = page.locator("main ol > li").first.locator(".pieces bdi").all_inner_texts()
    assert pieces == list(seen.answers[0].options[0].pieces)
    encoded = page.locator("main img").get_attribute("src").removeprefix("data:image/png;base64,")
    shown = np.asarray(Image.open(BytesIO(base64.b64decode(encoded))))
    np.testing.assert_array_equal(shown, seen.forward.media.pixels)


def test_the_classes_of_a_sound_are_shown_with_their_probabilities(reading, watched):
    page = opened(watched.page, reading, "audio_classification")
    shown = {
        item.locator(".said").inner_text(): figure(item.locator(".number").inner_text())
        for item in page.locator("main ol > li").all()
    }
    options = own("audio_classification").answers[0].options
    assert shown == {option.text: pytest.approx(100 * (option.probability or 0), abs=0.051) for option in options}


def test_the_weight_of_a_patch_for_a_token_is_that_of_the_model(reading, watched):
    page = opened(watched.page, reading, "captioning", "attention", block="dec.0.cross", head=1, query=1, key=4)
    panel = page.get_by_role("region", name="On the image", exact=True)
    said = figure(panel.locator("[aria-live] strong").inner_text())
    weights = own("captioning").trace["dec.0.cross.attn"].values[1]
    assert said == pytest.approx(float(weights[1, 4]), abs=5e-5)
    panel.get_by_role("radio").first.press("ArrowRight")  # tokens are stepped through by keyboard
    panel.get_by_role("radio").nth(1).press("ArrowRight")
    expect(panel.locator("[aria-live] strong")).to_have_text(f"{weights[2, 4]:.4f}")
    panel.get_by_role("application").press("ArrowRight")  # from row 2, column 1
    expect(panel.locator("[aria-live] strong")).to_have_text(f"{weights[2, 5]:.4f}")


def test_the_colours_on_a_picture_are_those_of_its_weights(reading, watched):
    page = opened(watched.page, reading, "captioning", "attention", block="dec.0.cross", head=0, query=0)
    panel = page.get_by_role("region", name="On the image", exact=True)
    panel.locator("canvas").wait_for()
    green = page.evaluate(GREEN)
    weights = own("captioning").trace["dec.0.cross.attn"].values[0, 0, 1:]
    assert int(np.argmax(green)) == int(weights.argmax())


def test_a_patch_that_is_clicked_looks_at_others(reading, watched):
    page = opened(watched.page, reading, "captioning", "attention", block="enc.0.self", head=1)
    panel = page.get_by_role("region", name="On the image", exact=True)
    expect(panel.get_by_role("button", name="Class token")).to_have_attribute("aria-pressed", "true")
    field = panel.get_by_role("application")
    box = field.bounding_box()
    field.click(position={"x": box["width"] * 0.9, "y": box["height"] * 0.1})  # row 1, column 3
    weights = own("captioning").trace["enc.0.self.attn"].values[1, 3]
    expect(panel.locator("[aria-live]")).to_contain_text('1,3\u2069", weight on')
    expect(panel.locator("[aria-live] strong")).to_have_text(f"{weights.max():.4f}")


def test_the_distance_of_a_head_is_told(reading, watched):
    page = opened(watched.page, reading, "captioning", "attention", block="enc.0.self", head=1)
    said = page.locator("main dl > div", has_text="Distance").locator("dd").inner_text()
    assert figure(said) == pytest.approx(overview(own("captioning"))["heads"]["enc.0.self"]["distance"][1], abs=5e-4)


def test_a_sound_classifier_shows_the_mean_of_all_frames_and_then_a_chosen_one(reading, watched):
    page = opened(watched.page, reading, "audio_classification", "attention", block="enc.0.self", head=0)
    panel = page.get_by_role("region", name="On the audio", exact=True)
    weights = own("audio_classification").trace["enc.0.self.attn"].values[0]
    expect(panel.locator("[aria-live] strong")).to_have_text(f"{weights.mean(0).max():.4f}")
    panel.get_by_role("application").press("ArrowRight")
    expect(panel.locator("[aria-live]")).to_contain_text('0.00 s\u2069", weight on')
    expect(panel.locator("[aria-live] strong")).to_have_text(f"{weights[0].max():.4f}")


def test_the_table_of_a_head_over_frames_holds_its_weights(reading, watched):
    page = opened(watched.page, reading, "audio_classification", "attention", block="enc.0.self", head=1)
    page.get_by_role("button", name="Numbers as a table").click()
    page.wait_for_selector("tbody tr")
    assert np.allclose(table(page), own("audio_classification").trace["enc.0.self.attn"].values[1], atol=0.0005 + 1e-9)


def test_a_file_that_cannot_be_read_is_told_of_on_the_page(reading, watched):
    page = opened(watched.page, reading, "captioning")
    page.locator("input[type=file]").set_input_files(sent("captioning", b"no picture"))
    expect(page.get_by_role("alert")).to_contain_text("a.png: not an image, or in an unsupported format")
    page.locator("input[type=file]").set_input_files(sent("captioning", b"x" * 8_000_001))
    expect(page.get_by_role("alert")).to_contain_text("a.png has 8.0 MB, more than the limit of 8 MB")
    page.locator("input[type=file]").set_input_files(sent("captioning"))
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_file_is_dropped_on_the_page(reading, watched):
    page = watched.page
    page.goto(reading.url(model="captioning"))
    expect(page.locator("main")).to_contain_text("Choose a file above, or drop one here")
    page.evaluate(DROP, base64.b64encode(PICTURE).decode())
    expect(page).to_have_title(re.compile(r"^dropped\.png"))
    assert watched.complaints == []


@pytest.mark.parametrize("task", VIEWS)
@pytest.mark.parametrize("view", ["answer", "attention"])
def test_a_page_has_no_serious_barrier(reading, chromium, task, view):
    context = chromium.new_context(bypass_csp=True)  # for the checker alone
    page = opened(context.new_page(), reading, task, view)
    page.wait_for_timeout(300)
    page.add_script_tag(path=AXE)
    found = page.evaluate("axe.run()")["violations"]
    context.close()
    serious = [
        (rule["id"], rule["nodes"][0]["html"][:120]) for rule in found if rule["impact"] in ("serious", "critical")
    ]
    assert serious == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize("task", FILES)
def test_an_exported_file_shows_everything_without_one_request(watched, tmp_path, task):
    path = tmp_path / "page.html"
    View(task, toy_readers.loaded(task), own(task), Page.built()).save(path)
    assert path.stat().st_size <= 1_000_000
    page = watched.open(path.as_uri())
    for button in page.get_by_role("navigation").get_by_role("button").all():
        button.click()
        page.wait_for_selector("main h2")
        page.wait_for_timeout(150)
    assert {url for url in watched.requests if not url.startswith("data:")} == {path.as_uri()}
    assert watched.complaints == []


GREEN = """() => {
    const canvas = document.querySelector("section[aria-label='On the image'] canvas");
    const context = canvas.getContext("2d");
    const [wide, high] = [canvas.width / 3, canvas.height / 2];
    const at = (row, column) => context.getImageData((column + 0.5) * wide, (row + 0.5) * high, 1, 1).data[1];
    return [0, 1].flatMap(row => [0, 1, 2].map(column => at(row, column)));
}"""
DROP = """content => {
    const bytes = Uint8Array.from(atob(content), c => c.charCodeAt(0));
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([bytes], "dropped.png"));
    window.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
}"""


def test_a_model_that_has_not_been_asked_shows_nothing_of_another(reading, watched):
    page = watched.open(reading.url("lens", model="translator", text="the old dog"))
    page.locator("header").get_by_role("combobox").select_option("captioning")
    expect(page.locator("main h2")).to_have_count(0)
    expect(page.locator("main")).to_contain_text("Choose a file above")
    expect(page).to_have_url(re.compile(r"model=captioning(?!.*look=)"))


def test_a_question_that_is_withdrawn_is_not_waited_for(reading, watched):
    page = watched.open(reading.url(model="translator", text=""), heading=False)
    text, button = page.get_by_label("Text", exact=True), page.locator("form button[type=submit], form button").last
    idle = button.inner_text()
    page.route("**/api/v1/traces", lambda _: None)  # never answered
    text.fill("the old dog")
    expect(button).not_to_have_text(idle)
    text.fill("")
    expect(button).to_have_text(idle)
