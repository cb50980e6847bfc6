"""What is not language comes out as it went in, wherever it is in a line and whatever a model makes of it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful import load
from heedful.config.schema import TokenizerConfig
from heedful.predictors.literal_preserving_translator import (
    NAMES,
    LiteralPreservingTranslator,
    edges,
    has_language,
    literals,
)
from heedful.predictors.translator import Alternative, Translation, Translator
from heedful.search.hypothesis import Hypothesis
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer

LITERALS = [
    *("https://example.org/a?b=1", "http://x.org/a_(b)", "www.example.org", "ftp://files.org/a.txt", "a.b+c@mail.de"),
    *("{name}", "{0}", "{{count}}", "${user.name}", "$HOME", "%s", "%d", "%1$s", "%(name)s", "%.2f", "%@", "`ls -l`"),
    *("%{n}", "#{user}", "%%", "<%= name %>", "{% if n %}", "$t(key.name)", "@string/app_name", "?attr/color"),
    *("{count, plural, one {# file} other {# files}}", "{ n, select, a {x} other {y} }"),
    *("@tom_smith", "#hashtag", "user_name", "/etc/passwd", "~/notes.txt", "./run.sh", "C:\\temp\\a.txt", "getName()"),
    *(
        "030 1234567",
        "+49 (30) 1234567",
        "$1,234.50",
        "€ 5",
        "12.50 €",
        "£3",
        "2024-05-17",
        "17/05/2024",
        "192.168.0.1",
    ),
    *("1234567", "3.14159", "DE89 3704 0044 0532", "A-1234", "4111-1111-1111-1111"),
    *("😀", "❤️", "👩‍💻", "🇩🇪", "→", "✓", ":-)", ";)", "<3", "™"),
    *("<br>", "<br/>", "<b>", "</b>", '<a href="x.html">', "<!-- note -->", "&nbsp;", "&#39;", "[[link]]"),
]
BULLETS = ["- ", "* ", "• ", "1. ", "12) ", "(3) ", "a) ", "# ", "### ", "> ", "– ", "[ ] ", "- [x] "]
BLANKS = ["\t", "  ", "\u00a0", "\u3000", " \t "]


WORDS = train_tokenizer(["alle meine entchen ."], TokenizerConfig(kind="word", byte_fallback=False))


class Stub(Translator):
    """A translator that turns each word of letters around; all else it loses, and names, too, unless it keeps these."""

    @property
    def longest_source(self) -> int:
        return 1000

    def __init__(self, *, keeps: bool) -> None:
        self.keeps = keeps
        self.asked: list[str] = []
        self.tokenizers = TokenizerPair(WORDS, WORDS)

    def translate_lines(self, lines, window=1024, done=lambda _: None, **options):
        for line in lines:
            self.asked.append(line)
            done(1)
            words = [word for word in re.findall(r"\w+|\S", line) if self.keeps or word not in NAMES]
            text = " ".join(word if word in NAMES else word[::-1] for word in words if word.isalpha() or word in ".!?")
            yield Translation([Alternative(text, Hypothesis([7], [-0.5, -0.5], 1.0))], truncated=False)


def translated(line, *, keeps=True):
    [found] = LiteralPreservingTranslator(Stub(keeps=keeps)).translate_lines([line])
    return found.text


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("literal", LITERALS)
@pytest.mark.parametrize(
    "line", ["{} we are tired now.", "we are {} tired now.", "we are tired now {}", "say {}, then go."]
)
def test_a_literal_comes_out_as_it_went_in_wherever_it_is(literal, line, keeps):
    text = translated(line.replace("{}", literal), keeps=keeps)
    assert text.count(literal) == 1
    assert all(word[::-1] in text for word in re.findall(r"[a-z]+", line.replace("{}", "")))


@pytest.mark.parametrize("literal", ["https://example.org/a?b=1", "a.b@mail.de", "{name}", "1234567", "😀"])
def test_a_literal_in_a_script_without_spaces_comes_out_as_it_went_in(literal):
    for line in ("请看{}了解详情。", "{}在哪里", "我们去{}"):
        assert translated(line.replace("{}", literal), keeps=False).count(literal) == 1


@pytest.mark.parametrize("literal", [*LITERALS, "---", "…", "12345", "42", "!!!"])
def test_a_line_without_language_is_not_translated(literal):
    stub = Stub(keeps=True)
    for line in (literal, f"  {literal}", f"{literal}\t"):
        [found] = LiteralPreservingTranslator(stub).translate_lines([line])
        assert found.text == line
        assert found.complete
    assert stub.asked == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("so, So, so, so!", "os, os, os, os!"),
        ("- so? so? so? so?", "- os? os? os? os?"),
        ("SO SO SO SO", "OS OS OS OS"),
    ],
)
def test_a_word_that_is_repeated_is_translated_once(line, expected):
    stub = Stub(keeps=True)
    [translation] = LiteralPreservingTranslator(stub).translate_lines([line])
    assert translation.text == expected
    assert all(len(text.split()) == 1 for text in stub.asked)


@pytest.mark.parametrize("bullet", BULLETS)
def test_bullets_stay(bullet):
    assert translated(f"{bullet}We are tired now.") == f"{bullet}eW era derit won ."
    assert translated(f"\t{bullet}We are tired now.") == f"\t{bullet}eW era derit won ."


@pytest.mark.parametrize("blank", BLANKS)
def test_blanks_at_the_ends_stay(blank):
    assert translated(f"{blank}We are tired now.{blank}") == f"{blank}eW era derit won .{blank}"


@pytest.mark.parametrize("around", ["()", "[]", ("**", "**"), "__", ("--- ", " ---"), ("<b>", "</b>"), ("<p>", "</p>")])
def test_what_is_around_a_whole_line_stays(around):
    before, after = around
    assert translated(f"{before}We are tired now.{after}") == f"{before}eW era derit won .{after}"


def test_tags_within_a_sentence_stay_around_their_words():
    stub = Stub(keeps=True)
    [found] = LiteralPreservingTranslator(stub).translate_lines(["we are <b>very</b> tired and <i>hungry</i>"])
    assert found.text == "ew era <b>yrev</b> derit dna <i>yrgnuh</i>"
    assert stub.asked[0] == "we are very tired and hungry"


def test_a_tag_is_closed_after_the_word_before_which_it_is_opened():
    class Short(Stub):
        def translate_lines(self, lines, window=1024, done=lambda _: None, **options):
            for _ in lines:
                yield Translation([Alternative("eins zwei drei vier", Hypothesis([7], [-0.5], 0.5))], truncated=False)

    [found] = LiteralPreservingTranslator(Short(keeps=True)).translate_lines(["one two <b>three</b> four five"])
    assert found.text == "eins zwei <b>drei</b> vier"


def test_tags_around_the_same_word_keep_their_order():
    [found] = LiteralPreservingTranslator(Stub(keeps=True)).translate_lines(["we are <b><i>very</i></b> tired now"])
    assert found.text == "ew era <b><i>yrev</i></b> derit won"


def test_several_literals_keep_their_places():
    line = "we sent {name} to a@b.org and 030 1234567."
    assert translated(line) == "ew tnes {name} ot a@b.org dna 030 1234567 ."


@pytest.mark.parametrize(
    "line", ["WE ARE TIRED.", "WE ARE TIRED AND I AM OLD", "HELLO", "SAY {name}, WE ARE OLD", "ÄLTERE SÄTZE"]
)
def test_capitals_are_translated_as_words_and_come_out_as_capitals(line):
    stub = Stub(keeps=True)
    [found] = LiteralPreservingTranslator(stub).translate_lines([line])
    assert all(not re.search(r"[A-Z]{2}", asked) for asked in stub.asked)
    assert found.text.replace("{name}", "") == found.text.replace("{name}", "").upper()
    assert found.text.count("{name}") == line.count("{name}")


@pytest.mark.parametrize("line", ["I", "We are at NASA.", "A dog", "你好", "we are tired now"])
def test_lines_that_are_not_in_capitals_stay_as_they_are(line):
    stub = Stub(keeps=True)
    list(LiteralPreservingTranslator(stub).translate_lines([line]))
    assert stub.asked[0] == line


def test_a_loop_is_written_once_unless_the_source_repeats_itself():
    class Looping(Stub):
        def translate_lines(self, lines, window=1024, done=lambda _: None, **options):
            for _ in lines:
                text = "ja " + "immer weiter " * 7 + "so."
                yield Translation([Alternative(text, Hypothesis([7], [-0.5], 0.5))], truncated=False)

    for line, expected in {"we are tired now.": 1, "we are so so so so tired.": 7}.items():
        [found] = LiteralPreservingTranslator(Looping(keeps=True)).translate_lines([line])
        assert found.text.count("immer weiter") == expected


class Certain(Stub):
    """A translator that is certain only of the texts it knows; it repeats all else word by word."""

    def __init__(self, *known: str) -> None:
        super().__init__(keeps=True)
        self.known = known

    def translate_lines(self, lines, window=1024, done=lambda _: None, **options):
        for line in lines:
            score = -0.1 if line in self.known else -2.0
            yield Translation([Alternative(f"[{line}]", Hypothesis([7, 8], [score, score], score))], truncated=False)


@pytest.mark.parametrize(
    ("line", "known", "expected"),
    [
        ("We ask.  We know.", ["We ask.", "We know."], "[We ask.]  [We know.]"),
        ("We ask.  We know.", ["We ask.  We know."], "[We ask.  We know.]"),
        ("我问。我知道。", ["我问。", "我知道。"], "[我问。] [我知道。]"),
        ("we ask", ["We ask."], "[We ask.]"),
        ("we ask", ["we ask"], "[we ask]"),
    ],
)
def test_a_text_is_translated_whole_or_as_sentences_whichever_the_model_is_certain_of(line, known, expected):
    [translation] = LiteralPreservingTranslator(Certain(*known)).translate_lines([line])
    assert translation.text == expected


def test_the_full_stop_that_was_added_to_a_line_is_not_in_its_translation():
    class Echo(Certain):
        def translate_lines(self, lines, window=1024, done=lambda _: None, **options):
            for line, translation in zip(lines, super().translate_lines(lines), strict=True):
                yield Translation([Alternative(line, translation.alternatives[0].hypothesis)], truncated=False)

    assert [each.text for each in LiteralPreservingTranslator(Echo("We ask.")).translate_lines(["we ask"])] == [
        "We ask"
    ]


def test_a_word_that_is_doubled_in_the_translation_of_a_word_is_written_once():
    class Doubling(Stub):
        def translate_lines(self, lines, window=1024, done=lambda _: None, **options):
            for line in lines:
                text = f"{line.rstrip('.')} {line.lower()}"
                yield Translation([Alternative(text, Hypothesis([7], [-0.5], 0.5))], truncated=False)

    translations = LiteralPreservingTranslator(Doubling(keeps=True)).translate_lines(["Dark.", "a dark cat"])
    assert [each.text for each in translations] == ["Dark.", "a dark cat a dark cat"]


def test_a_line_of_which_every_translation_loops_is_copied():
    class Looping(Stub):
        def translate_lines(self, lines, window=1024, done=lambda _: None, **options):
            for _ in lines:
                text = "nicht " + " ".join(f"das ist so {word}" for word in "abcdef")
                yield Translation([Alternative(text, Hypothesis([7], [-0.5], 0.5))], truncated=False)

    translator = LiteralPreservingTranslator(Looping(keeps=True))
    expected = {
        "we are tired.": "we are tired.",
        "we are tired. we are tired. we are tired. we are tired?": "nicht das ist so a",
    }
    for line, begin in expected.items():
        [translation] = translator.translate_lines([line])
        assert translation.text.startswith(begin)


PLAIN = ["we are tired now.", "the old dog sleeps, and we do not.", "", "   ", "why do you ask? we know."]


def test_lines_without_literals_are_translated_as_before_and_do_not_depend_on_others():
    stub = Stub(keeps=True)
    lines = [*PLAIN, "hello {name}, we go.", "- we are tired now."]
    together = [found.text for found in LiteralPreservingTranslator(stub).translate_lines(lines)]
    assert together == [translated(line) for line in lines]
    assert together[:2] == [found.text for found in stub.translate_lines(PLAIN[:2])]
    assert together[2:4] == ["", ""]
    assert [found.text for found in LiteralPreservingTranslator(stub).translate_lines(lines, window=2)] == together


@pytest.mark.parametrize(
    ("number", "written", "kept"),
    [
        ("50,000", "50.000", True),
        ("1.5", "1,5", True),
        ("50,000", "5.000", False),
        ("192.168.0.1", "192,168,0,1", False),
    ],
)
def test_a_number_may_be_written_as_the_other_language_does(number, written, kept):
    class Writing(Stub):
        def translate_lines(self, lines, window=1024, done=lambda _: None, **options):
            for line in lines:
                text = line.replace(number, written)
                yield Translation([Alternative(text, Hypothesis([7], [-0.5], 0.5))], truncated=False)

    [found] = LiteralPreservingTranslator(Writing(keeps=True)).translate_lines([f"we have {number} of them."])
    assert found.text == f"we have {written if kept else number} of them."


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_text_of_several_lines_is_translated_as_the_model_does(end):
    stub = Stub(keeps=True)
    text = f"- we are tired.{end}hello {{name}}!"
    assert len(list(LiteralPreservingTranslator(stub).translate_lines([text]))) == 1
    assert stub.asked == [text]


def test_progress_counts_each_line_once():
    counts = []
    lines = [*PLAIN, "hello {name}, we go.", "no", "😀"] * 3
    translations = LiteralPreservingTranslator(Stub(keeps=False)).translate_lines(lines, 5, counts.append)
    assert len(list(translations)) == len(lines)
    assert sum(counts) == len(lines)


@given(st.text(alphabet=st.sampled_from(" \t-*#1.)<b>/{x}%s😀:$5,0aB_@~()"), max_size=40))
def test_any_line_becomes_a_line_and_its_edges_are_its_own(line):
    before, core, after = edges(line)
    assert before + core + after == line
    assert all(0 <= span.begin < span.end <= len(line) for span in literals(line))
    if not has_language(line) and line.strip():
        assert translated(line) == line
    assert "\n" not in translated(line, keeps=False)


def test_the_bundled_model_translates_odd_lines():
    expected = {
        "WHERE IS THE TRAIN STATION?": "WO IST DER BAHNHOF?",
        "- I am tired.": "- Ich bin müde.",
        "\tI am tired.": "\tIch bin müde.",
        "Hello {name}!": "Hallo, {name}!",
        "<b>I am tired.</b>": "<b>Ich bin müde.</b>",
        "I am <b>very</b> tired.": "Ich bin <b>sehr</b> müde.",
        "The price is $1,234.50.": "Der Preis ist $1,234.50.",
        "Tom": "Tom",
        "no": "Nein",
    }
    found = LiteralPreservingTranslator(load("en-de")).translate_lines(expected)
    assert [translation.text for translation in found] == list(expected.values())


@given(st.text(st.sampled_from("ab ,.;我"), max_size=300), st.integers(2, 12))
def test_a_sentence_that_is_too_long_is_split_and_nothing_of_it_is_lost(text, limit):
    class Short(Stub):
        @property
        def longest_source(self) -> int:
            return limit

        def translate_lines(self, lines, window=1024, done=lambda _: None, **options):
            for line in lines:
                assert len(WORDS.encode(line)) < limit
                yield Translation([Alternative(line, Hypothesis([7], [-0.5, -0.5], 1.0))], truncated=False)

    [translation] = LiteralPreservingTranslator(Short(keeps=True)).translate_lines([text])
    assert translation.text.replace(" ", "") == text.replace(" ", "")


def test_a_long_sentence_is_split_at_clauses():
    class Short(Stub):
        @property
        def longest_source(self) -> int:
            return 10

    stub = Short(keeps=True)
    list(LiteralPreservingTranslator(stub).translate_lines(["we are very tired now, and it is late; we go home"]))
    assert stub.asked == ["we are very tired now,", "and it is late; we go home"]
