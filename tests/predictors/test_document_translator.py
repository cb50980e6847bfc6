"""A document is translated sentence by sentence; its blanks, line breaks and tags are where they were."""

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.config.schema import Recipe, TokenizerConfig
from heedful.documents.document import Segment, Tag
from heedful.documents.tags import Link
from heedful.errors import InputError
from heedful.predictors.document_translator import DocumentTranslator
from heedful.predictors.translator import Alternative, Translation, Translator
from heedful.search.hypothesis import Hypothesis
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer

WORDS = train_tokenizer(["a small dog ."], TokenizerConfig(kind="word", byte_fallback=False))


class Stub(Translator):
    """A translator that copies a text, or changes each of its letters to upper case."""

    @property
    def longest_source(self) -> int:
        return 1000

    def __init__(self, *, copies: bool, source: str = "en", target: str = "de") -> None:
        self.copies = copies
        self.texts: list[str] = []
        self.tokenizers = TokenizerPair(WORDS, WORDS)
        recipe = Recipe()
        self.recipe = replace(recipe, data=replace(recipe.data, source_language=source, target_language=target))

    def with_options(self, **options):
        return self

    def align(self, pairs: Any) -> Any:
        raise InputError("the model has no cross-attention")

    def translate_lines(self, lines, window=1024, done=lambda _: None, **options):
        for line in lines:
            self.texts.append(line)
            done(1)
            text = line if self.copies else line.upper()
            yield Translation([Alternative(text, Hypothesis([7], [-0.5, -0.5], 1.0))], truncated=False)


def translated(*segments, **facts):
    return [part.segment for part in DocumentTranslator(Stub(**facts)).translate_segments(segments)]


def test_a_paragraph_is_translated_sentence_by_sentence():
    stub = Stub(copies=False)
    text = "  Dr. Smith sleeps.  The dog does not.\nIt barks at Mr. Jones!\n\n\tWhy? "
    [part] = DocumentTranslator(stub).translate_segments([Segment(text)])
    assert part.segment.text == text.upper()
    assert [each.text for each in part.sentences] == [
        "DR. SMITH SLEEPS.",
        "THE DOG DOES NOT.",
        "IT BARKS AT MR. JONES!",
        "WHY?",
    ]
    assert "Dr. Smith sleeps." in stub.texts


def test_a_sentence_that_occurs_twice_is_translated_once():
    stub = Stub(copies=False)
    list(DocumentTranslator(stub).translate_segments([Segment("Save."), Segment("Open."), Segment("Save. Open.")]))
    assert sorted(stub.texts) == ["Open.", "Save."]


def test_chinese_sentences_are_followed_by_a_space_only_in_other_languages():
    [english] = translated(Segment("我吃苹果。你呢？"), copies=True, source="zh", target="zh")
    assert english.text == "我吃苹果。你呢？"

    class Terse(Stub):
        def translate_lines(self, lines, window=1024, done=lambda _: None, **options):
            for translation in super().translate_lines(lines, window, done):
                yield Translation([Alternative("Yes.", translation.alternatives[0].hypothesis)], truncated=False)

    stub = Terse(copies=True, source="zh", target="en")
    [part] = DocumentTranslator(stub).translate_segments([Segment("我吃苹果。你呢？")])
    assert part.segment.text == "Yes. Yes."


def test_inline_code_is_translated_as_a_word():
    source = Segment(
        "Run  now. It works.", (Tag(4, "<code>ls</code>", "empty"), Tag(10, "<b>", "open"), Tag(19, "</b>", "close"))
    )
    stub = Stub(copies=False)
    [part] = DocumentTranslator(stub).translate_segments([source])
    assert "Run {1} now." in stub.texts
    assert part.segment == Segment(source.text.upper(), source.tags)


def test_tags_go_with_the_words_that_the_model_aligns():
    class Reversing(Stub):
        def translate_lines(self, lines, window=1024, done=lambda _: None, **options):
            for translation in super().translate_lines(lines, window, done):
                text = " ".join(reversed(translation.text.split()))
                yield Translation([Alternative(text, translation.alternatives[0].hypothesis)], truncated=False)

        def align(self, pairs: Any) -> Any:
            def links(source, target):
                words, others = ([match.span() for match in re.finditer(r"\S+", text)] for text in (source, target))
                return tuple(map(Link, words, reversed(others)))

            return [SimpleNamespace(links=links(*pair)) for pair in pairs]

    source = Segment("One. two three four", (Tag(9, "<b>", "open"), Tag(14, "</b>", "close")))
    [part] = DocumentTranslator(Reversing(copies=True)).translate_segments([source])
    assert part.segment == Segment("One. four three two", (Tag(10, "<b>", "open"), Tag(15, "</b>", "close")))


TEXTS = st.text(st.sampled_from("ab .!?\n\t我。{}%s0-5A\u00a0"), max_size=40)
SEGMENTS = st.builds(
    lambda text, numbers: Segment(
        text, tuple(Tag(min(n, len(text)), f"<{i}>", "empty") for i, n in enumerate(sorted(numbers)))
    ),
    TEXTS,
    st.lists(st.integers(0, 40), max_size=3),
)


@given(st.lists(SEGMENTS, max_size=6), st.integers(1, 4))
def test_texts_that_a_translator_copies_stay_the_same(segments, window):
    parts = list(DocumentTranslator(Stub(copies=True)).translate_segments(segments, window))
    assert [part.segment.text for part in parts] == [segment.text for segment in segments]
    assert [[tag.markup for tag in part.segment.tags] for part in parts] == [
        [t.markup for t in s.tags] for s in segments
    ]


@given(st.lists(SEGMENTS, max_size=6), st.integers(1, 4))
def test_the_translation_of_a_segment_does_not_depend_on_others(segments, window):
    alone = [translated(segment, copies=False)[0] for segment in segments]
    together = DocumentTranslator(Stub(copies=False)).translate_segments(segments, window)
    assert [part.segment for part in together] == alone


def test_a_tab_stays():
    assert translated(Segment("Name:\tTom\t\tSmith."), copies=False) == [Segment("NAME:\tTOM\t\tSMITH.")]


def test_tags_are_not_placed_into_placeholders():
    class Aligning(Stub):
        def align(self, pairs: Any) -> Any:
            return [SimpleNamespace(links=[Link((6, 12), (9, 13))]) for _ in pairs]

    source = Segment("Hello {{user}}, go.", (Tag(6, "<b>", "open"), Tag(14, "</b>", "close")))
    [part] = DocumentTranslator(Aligning(copies=True)).translate_segments([source])
    assert part.segment == source


def test_progress_counts_sentences():
    counts: list[int] = []
    segments = [Segment("One. Two. One."), Segment(""), Segment("https://a.example/"), Segment("Three.")]
    translator = DocumentTranslator(Stub(copies=True))
    list(translator.translate_segments(segments, done=counts.append))
    assert sum(counts) == sum(len(list(translator.sentences(s.text))) for s in segments) == 5


def test_texts_and_files_are_translated_in_python(tmp_path):
    stub = Stub(copies=False)
    assert stub.translate_text("A dog. A cat.\n - {name}!") == "A DOG. A CAT.\n - {name}!"
    assert stub.translate_text(["a", ""]) == ["A", ""]
    source, output = tmp_path / "a.txt", tmp_path / "b.txt"
    source.write_bytes(b"A dog.\r\n\r\n  A cat.")
    stub.translate_file(source, output)
    assert output.read_bytes() == b"A DOG.\r\n\r\n  A CAT."
    output.write_bytes(b"precious")
    with pytest.raises(InputError, match="already exists, and heedful did not write it"):
        stub.translate_file(source, output)
    with pytest.raises(InputError, match=r"a.pdf: is not a document that heedful can read; the name must end in"):
        stub.translate_file(tmp_path / "a.pdf", output)
