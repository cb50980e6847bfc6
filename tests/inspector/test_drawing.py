"""Pictures hold what they should, whatever the words are, and never warn."""

import re

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.image import imread

from heedful.inspector.plots import FONT, FORMATS, HeatMap, draw, fonts_for

PNG = b"\x89PNG\r\n\x1a\n"


def weights(height, width):
    values = np.random.default_rng(1).random((height, width), dtype=np.float32) ** 8
    return values / values.sum(1, keepdims=True)


def picture(source, target, title="Cross-attention, layer 2, head 3", subtitle="model scenes-en-de"):
    return HeatMap(weights(len(target), len(source)), source, target, title, subtitle)


USUAL = picture(["Where", "is", "the", "station", "?", "<eos>"], ["Wo", "ist", "der", "Bahnhof", "?", "<eos>"])


def colours(path):
    """The share of pixels of each of a few colours."""
    pixels = (imread(path)[..., :3] * 255).round().astype(int).reshape(-1, 3)
    return {
        "white": (pixels == 255).all(1).mean(),
        "outline": (abs(pixels - [0xD5, 0x5E, 0x00]).max(1) <= 2).mean(),
        "ink": (pixels.max(1) < 64).mean(),
    }


def test_a_png_has_cells_words_and_outlines_on_white(tmp_path):
    assert draw(USUAL, tmp_path / "a.png") == set()
    assert (tmp_path / "a.png").read_bytes().startswith(PNG)
    found = colours(tmp_path / "a.png")
    assert found["white"] > 0.3
    assert found["outline"] > 0.005
    assert found["ink"] > 0.005


def test_nothing_is_clipped_at_the_edges(tmp_path):
    long = picture(["Donaudampfschifffahrt" * 3, "a", "Rindfleischetikettierung"], ["Überwachungsaufgaben", "b"])
    draw(long, tmp_path / "a.png")
    pixels = imread(tmp_path / "a.png")[..., :3]
    edges = [pixels[:9], pixels[-9:], pixels[:, :9], pixels[:, -9:]]
    assert all((edge == 1).all() for edge in edges)


@pytest.mark.parametrize("suffix", FORMATS)
def test_the_same_picture_is_the_same_file(tmp_path, suffix):
    first, second = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    draw(USUAL, first)
    draw(USUAL, second)
    assert first.read_bytes() == second.read_bytes()


def test_an_svg_outlines_the_strongest_source_word_of_each_target_word(tmp_path):
    chosen = [2, 0, 4, 4, 1, 6, 3]
    shades = np.full((7, 11), 0.01, dtype=np.float32)
    shades[range(7), chosen] = 0.9
    draw(HeatMap(shades, [f"s{i}" for i in range(11)], [f"t{i}" for i in range(7)], "", ""), tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    boxes = re.findall(r'<path d="M ([\d.]+) ([\d.]+) [^>]*stroke: #d55e00', text)
    left, bottom = np.array(boxes, dtype=float).T
    cell = np.diff(bottom).mean()
    assert np.diff(bottom) == pytest.approx(cell)
    assert (left - left[1]) / cell == pytest.approx(chosen)


def test_dollars_and_backslashes_are_words_and_not_formulas(tmp_path):
    odd = picture(["$x", "\\frac{", "$", "<b>&amp;"], ["_^", "$$", "%"], title="$\\bad", subtitle="$a$ \\b")
    assert draw(odd, tmp_path / "a.svg") == set()
    assert "$\\bad" in (tmp_path / "a.svg").read_text(encoding="utf-8")


UNHEARD = "\U0010fffd"  # private use: no font has it


def test_a_word_without_glyphs_becomes_its_number_and_is_reported(tmp_path):
    strange = picture(["a", UNHEARD * 3, "c"], [f"x{UNHEARD}", "y"], subtitle=f"model {UNHEARD}")
    assert draw(strange, tmp_path / "a.svg") == {UNHEARD}
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert "A number replaces a word" in text
    assert "<!-- 2 -->" in text
    assert "<!-- model □ -->" in text
    assert UNHEARD not in text


def test_words_with_glyphs_need_no_note(tmp_path):
    draw(USUAL, tmp_path / "a.svg")
    assert "A number replaces a word" not in (tmp_path / "a.svg").read_text(encoding="utf-8")


def test_a_long_word_is_shortened(tmp_path):
    draw(picture(["x" * 97, "b"], ["c", "d", "e"]), tmp_path / "a.svg")
    assert f"<!-- {'x' * 23}… -->" in (tmp_path / "a.svg").read_text(encoding="utf-8")


def test_a_long_sentence_still_fits_on_a_page(tmp_path):
    draw(picture([f"w{i}" for i in range(211)], ["a", "b"]), tmp_path / "a.png")
    height, width = imread(tmp_path / "a.png").shape[:2]
    assert width < 12_000
    assert height < 2_000


def test_the_font_of_matplotlib_is_enough_for_german():
    assert fonts_for("Größenwahn über Äpfel … ▁ “ok”").families == [FONT]
    assert fonts_for("Größenwahn über Äpfel … ▁ “ok”").missing == set()


def test_a_character_that_another_font_has_is_drawn_by_that_font(tmp_path):
    sum_and_integral = "\u2a0b"  # in a font for formulas that comes with matplotlib
    assert fonts_for(f"a{sum_and_integral}").missing == set()
    assert fonts_for(f"a{sum_and_integral}").families[0] == FONT
    assert draw(picture([f"x{sum_and_integral}", "b"], ["c"]), tmp_path / "a.png") == set()


def test_every_character_is_either_missing_or_in_a_font():
    from matplotlib.font_manager import findfont
    from matplotlib.ft2font import FT2Font

    text = "aß火车"
    fonts = fonts_for(text)
    covered = {chr(code) for name in fonts.families for code in FT2Font(findfont(name)).get_charmap()}
    assert set(text) - covered == fonts.missing
