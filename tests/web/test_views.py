"""Every page, in both languages, for every family: shown, complete, usable by keyboard, and asking nobody else."""

import math
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

import served
from heedful.inspector.look import Question, look

TEXTS = {
    "translator": "the old dog sees the station .",
    "gpt": "the old dog",
    "bert": "the <mask> dog sees",
    "classes": "two women read a book .",
}
EVERYWHERE = {"answer", "tokens", "attention", "formula", "stream", "compare", "training", "tour"}
VIEWS = {
    "translator": EVERYWHERE | {"lens", "search", "heads", "bias"},
    "gpt": EVERYWHERE | {"lens", "heads", "bias"},
    "bert": EVERYWHERE | {"lens", "heads", "bias"},
    "classes": EVERYWHERE | {"heads"},
}
AXE = Path(__file__).parents[2] / "web/node_modules/axe-core/axe.min.js"


@pytest.mark.sampled(14)
@pytest.mark.parametrize(("model", "view"), [(model, view) for model in VIEWS for view in sorted(VIEWS[model])])
def test_a_page_is_shown_in_both_languages_and_asks_only_its_server(live, watched, model, view):
    page = watched.open(live.url(view, model=model, text=TEXTS[model]))
    assert page.get_attribute("html", "lang") == "en"
    english = page.inner_text("main")
    page.get_by_role("button", name="中文").click()
    expect(page.locator("html")).to_have_attribute("lang", "zh")
    chinese = page.inner_text("main")
    assert any("一" <= character <= "鿿" for character in chinese)
    assert not any("一" <= character <= "鿿" for character in english)
    assert {urlsplit(url).netloc for url in watched.requests} == {urlsplit(live.address).netloc}
    assert watched.complaints == []


@pytest.mark.parametrize("model", VIEWS)
def test_a_family_has_the_views_that_make_sense_for_it(live, watched, model):
    page = watched.open(live.url(model=model, text=TEXTS[model]))
    expect(page.get_by_role("navigation").get_by_role("button")).to_have_count(len(VIEWS[model]))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("view", sorted(VIEWS["translator"]))
def test_a_page_has_no_serious_barrier(live, chromium, view):
    context = chromium.new_context(bypass_csp=True)  # for the checker alone
    page = context.new_page()
    page.goto(live.url(view, model="translator", text=TEXTS["translator"]))
    page.wait_for_selector("main h2")
    page.wait_for_timeout(300)
    page.add_script_tag(path=AXE)
    found = page.evaluate("axe.run()")["violations"]
    context.close()
    serious = [
        (rule["id"], [node["html"][:120] for node in rule["nodes"]][:3])
        for rule in found
        if rule["impact"] in ("serious", "critical")
    ]
    assert serious == []


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 390), ("light", 320)])
@pytest.mark.parametrize("view", sorted(VIEWS["translator"]))
def test_a_page_fits_a_phone_and_a_screen_at_four_times_its_size(live, chromium, view, scheme, width):
    context = chromium.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
    page = context.new_page()
    page.goto(live.url(view, model="translator", text=TEXTS["translator"]))
    page.wait_for_selector("main h2")
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()


REACHABLE = """() => [...document.querySelectorAll("a[href], button, input, select, textarea, [tabindex='0']")]
    .filter(x => !x.disabled && x.tabIndex >= 0 && x.checkVisibility() && x.closest(".skip") !== x)
    .map((x, i) => (x.dataset.number = i)).length"""


@pytest.mark.sampled(4)
@pytest.mark.parametrize("view", sorted(VIEWS["translator"]))
def test_everything_on_a_page_is_reached_by_keyboard_alone(live, watched, view):
    page = watched.open(live.url(view, model="translator", text=TEXTS["translator"]))
    page.wait_for_timeout(400)
    count = page.evaluate(REACHABLE)
    page.get_by_role("button", name="English").focus()
    reached = set()
    for _ in range(count + 20):
        reached.add(page.evaluate("document.activeElement.dataset.number ?? null"))
        page.keyboard.press("Tab")
    missed = page.evaluate(
        """reached => [...document.querySelectorAll("[data-number]")]
        .filter(x => !reached.includes(x.dataset.number) && x.type !== "radio").map(x => x.outerHTML.slice(0, 120))""",
        list(reached),
    )
    assert missed == []


def test_a_link_shows_what_it_was_made_of(live, watched):
    page = watched.open(live.url("attention", model="translator", text=TEXTS["translator"], block="enc.1.self", head=1))
    expect(page.locator("main")).to_contain_text("Encoder 2, self, head 2")
    page.get_by_role("button", name="Answer").click()
    expect(page).to_have_url(re.compile(r"#/answer\?"))
    page.go_back()
    expect(page.locator("main")).to_contain_text("Encoder 2, self, head 2")


def test_attention_is_walked_by_keyboard_alone(live, watched):
    page = watched.open(live.url("attention", model="translator", text=TEXTS["translator"]))
    page.wait_for_selector("canvas")
    grid, matrix = page.get_by_role("application").all()
    grid.focus()
    page.keyboard.press("PageUp")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect(page.locator("main")).to_contain_text("Encoder 2, self, head 2")
    for _ in range(20):
        page.keyboard.press("Tab")
        if matrix.evaluate("x => x === document.activeElement"):
            break
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect(page.locator("[aria-live]").first).to_contain_text("weight on")
    expect(page).to_have_url(re.compile("query=1"))


def test_a_text_is_asked_about_while_it_is_written(live, watched):
    page = watched.open(live.url(model="translator", text="dog"))
    before = page.inner_text("main")
    page.get_by_label("Text", exact=True).fill("two women read a book .")
    page.wait_for_function("before => document.querySelector('main').innerText !== before", arg=before)
    expect(page).to_have_url(re.compile(r"two\+women\+read"))


def test_what_is_written_while_an_answer_is_awaited_stays(live, watched):
    page = watched.open(live.url(model="translator", text="dog"))
    written = page.get_by_label("Text", exact=True)

    def write_on(route):
        if "again" not in route.request.post_data:
            written.press_sequentially(" again")
        route.continue_()

    page.route("**/api/v1/traces", write_on)
    written.fill("the old dog")
    page.wait_for_function("() => document.title.startsWith('the old dog again')")
    assert written.input_value() == "the old dog again"


def refused(route):
    route.fulfill(status=503, json={"error": "busy"})


def test_what_a_server_refuses_is_told_and_leaves_no_older_numbers(live, watched):
    page = watched.open(live.url("tokens", model="translator", text="the old dog"))
    nearest = page.locator("section ol .piece")
    expect(nearest.first).to_be_visible()
    page.route("**/neighbours?**", refused)
    page.locator(".pieces button").nth(2).click()
    expect(page.get_by_role("alert")).to_have_text("busy")
    expect(nearest).to_have_count(0)


def test_attention_that_cannot_be_fetched_is_no_empty_page(live, watched):
    watched.page.route("**/tensors?**", refused)
    page = watched.open(live.url("attention", model="translator", text="the old dog"))
    expect(page.get_by_role("alert")).to_have_text("busy")
    assert not [said for said in watched.complaints if "503" not in said]


def test_the_error_of_a_wrong_input_is_shown(live, watched):
    page = watched.open(live.url(model="translator", text="dog " * 1200), heading=False)
    assert "the model takes at most 999" in page.wait_for_selector("[role=alert]").inner_text()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("model", ["translator", "run", "gpt", "bert"])
def test_the_tour_is_walked_from_its_first_stop_to_its_last(live, watched, model):
    text = "w1 w2 w3 w4" if model == "run" else TEXTS[model]
    page = watched.open(live.url("tour", model=model, text=text))
    page.get_by_role("button", name="Begin").click()
    bar = page.get_by_role("complementary", name="Tour")
    expect(bar).to_contain_text("Stop 1 of ")
    count = int(re.findall(r"Stop 1 of (\d+)", bar.inner_text())[0])
    for number in range(1, count + 1):
        expect(bar).to_contain_text(f"Stop {number} of {count}")
        expect(page.locator("main h2")).to_be_visible()
        expect(bar.get_by_role("button", name="Show this stop again")).to_have_count(0)
        if number < count:
            bar.get_by_role("button", name="Next").click()
    assert ("training" in page.url) == (model == "run")
    assert watched.complaints == []


def test_a_stop_of_the_tour_brings_its_part_of_the_page_into_sight(live, watched):
    page = watched.open(live.url("tokens", model="translator", text=TEXTS["translator"], tour=2))
    expect(page.locator("main section[aria-label='Positions']")).to_be_in_viewport(ratio=0.5)


def test_whoever_leaves_a_stop_of_the_tour_is_led_back(live, watched):
    page = watched.open(live.url("tour", model="translator", text=TEXTS["translator"], tour=4))
    back = page.get_by_role("button", name="Show this stop again")
    back.click()
    expect(back).to_have_count(0)
    page.locator("main").get_by_role("button", name="Next", exact=True).click()
    expect(back).to_be_visible()


def test_an_address_that_is_changed_by_hand_asks_again(live, watched):
    page = watched.open(live.url(model="translator", text="dog"))
    before = page.inner_text("main")
    page.evaluate("address => { location.hash = address }", "#/answer?model=translator&text=two+women+read")
    expect(page).to_have_title(re.compile("^two women read"))
    assert page.inner_text("main") != before


def test_a_text_that_was_given_is_shown_with_the_probability_of_its_tokens(live, watched):
    page = watched.open(live.url(model="translator", text="the old dog", target="der Hund ."))
    expect(page.locator("main")).to_contain_text("The output was given")
    shares = [int(text.replace("<1", "0")) for text in page.locator("main .pieces small").all_inner_texts()]
    subject = served.models()["translator"].use()
    expected = look(subject, Question(text="the old dog", target="der Hund .")).answers[0].options[0].log_probs
    assert shares == [pytest.approx(100 * math.exp(x), abs=0.5 + 1e-6) for x in expected]
    page.goto(live.url("search", model="translator", text="the old dog", target="der Hund ."))
    expect(page.locator("main")).to_contain_text("Beam search: nothing to show here")


def test_only_spaces_are_no_text_and_no_target(live, watched):
    page = watched.open(live.url(model="translator", text="dog", target="   "))
    expect(page.locator("main")).not_to_contain_text("The output was given")
    page.get_by_label("Text", exact=True).fill("   ")
    assert not page.evaluate("document.querySelector('form').checkValidity()")


def test_words_that_a_model_cannot_read_are_named_on_every_page(live, watched):
    page = watched.open(live.url("attention", model="run", text="w1 wolf w3 cub wolf"))
    expect(page.get_by_role("status").first).to_have_text(re.compile("vocabulary: wolf, cub. The model sees <unk>"))
    page.get_by_role("button", name="中文").click()
    expect(page.get_by_role("status").first).to_contain_text("词表里没有：wolf、cub")
    page.get_by_label("文本", exact=True).fill("w1 w3")
    expect(page.locator("main")).not_to_contain_text("<unk>")


def test_a_model_that_is_not_there_is_named_until_another_is_chosen(live, watched):
    page = watched.open(live.url(model="nobody", text="dog"))
    missing = page.get_by_role("alert")
    expect(missing).to_have_text(re.compile("model nobody is not on this server.*Available: translator, gpt"))
    page.get_by_label("Text", exact=True).fill("two women")
    expect(page).to_have_title(re.compile("^two women"))
    expect(missing).to_be_visible()
    page.locator("header").get_by_role("combobox").select_option("gpt")
    expect(missing).to_have_count(0)


def test_a_second_model_that_is_not_there_is_named(live, watched):
    page = watched.open(live.url("compare", model="translator", beside="nobody", text="dog"))
    expect(page.get_by_role("alert")).to_contain_text("model nobody is not on this server")
    page.locator("main").get_by_role("combobox").select_option("second")
    expect(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.parametrize(
    ("line", "words"), [("src", "This stack has no"), ("tgt", "The causal mask also conveys the order")]
)
def test_positions_are_not_called_all_that_tells_the_order_where_a_mask_tells_it(live, watched, line, words):
    page = watched.open(live.url("tokens", model="translator", text=TEXTS["translator"], line=line))
    expect(page.locator("main section[aria-label='Positions']")).to_contain_text(words)


def test_a_beginning_that_was_forced_is_told_on_every_page(live, watched):
    page = watched.open(live.url("attention", model="translator", text="dog", prefix="der"))
    expect(page.locator("main")).to_contain_text("Given beginning of the output: der")


def test_a_newcomer_is_offered_a_sentence(live, watched):
    page = watched.open(live.address, heading=False)
    page.get_by_role("button", name="Two young women are reading a book in the park.").click()
    expect(page.locator("main h2")).to_have_text("Answer")


def test_a_row_of_the_stream_stands_in_the_address(live, watched):
    page = watched.open(live.url("stream", model="translator", text=TEXTS["translator"], block="dec.1.ffn", query=2))
    expect(page.locator("tr.chosen")).to_contain_text("Decoder 2, FFN")
    page.get_by_role("button", name="Attention").click()
    expect(page.locator("main")).to_contain_text("Decoder 2, self, head 1")
