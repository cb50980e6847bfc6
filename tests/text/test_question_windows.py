"""Questions beside windows of a text, and where answers are in both."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from every_tokenizer import every_tokenizer, trained
from heedful.errors import InputError
from heedful.text.sequences import Context, encode_context, question_windows
from heedful.text.tokenizer import BOS, EOS

words = st.builds(str.__add__, st.sampled_from("atTÄS苹果é☃("), st.text("ate\u0301\u200d苹☃.,)", max_size=5))
texts = st.text(alphabet="at ÄS苹果\u0301é\u200d<>☃\t\n", max_size=31) | st.text()


@every_tokenizer
@given(
    sides=st.tuples(*[st.lists(words, min_size=1, max_size=3).map(" ".join)] * 3), space=st.sampled_from([" ", "  "])
)
def test_an_answer_of_whole_words_is_cut_from_the_text_itself(tokenizers, name, sides, space):
    before, answer, _ = sides
    context = encode_context(tokenizers[name], space.join(sides))
    begin = len(before + space)
    tokens = context.tokens(begin, begin + len(answer))
    assert context.characters(tokens[0], tokens[-1]) == (begin, begin + len(answer))


@every_tokenizer
@settings(max_examples=20)
@given(text=texts)
def test_every_piece_is_among_the_tokens_of_the_characters_that_it_stands_for(tokenizers, name, text):
    context = encode_context(tokenizers[name], text)
    for token in range(len(context.ids)):
        begin, end = context.characters(token, token)
        assert 0 <= begin <= end <= len(text)
        assert begin == end or token in context.tokens(begin, end)
        assert text[begin:end] == text[begin:end].strip()


def test_space_around_an_answer_does_not_count():
    context = encode_context(trained("bpe"), "The  cat sat")
    assert context.tokens(3, 9) == context.tokens(5, 8)
    assert not context.tokens(3, 5)


@pytest.mark.parametrize("causal", [False, True])
def test_a_row_is_the_question_and_a_window_of_the_text(causal):
    context = Context("", list(range(100, 141)), [])
    question = [50, 51, 52]
    rows = question_windows(question, context, 17, causal=causal, name="it")
    assert [i for row in rows for i in context.ids[row.window.first : row.window.stop]] == context.ids
    for row in rows:
        window = context.ids[row.window.begin : row.window.end]
        assert row.ids == [BOS, *question, EOS, *window, EOS]
        assert row.ids[row.begin : row.begin + len(window)] == window
        assert row.nowhere == (len(row.ids) - 1 if causal else 0)
        for first in range(len(context.ids)):
            tokens = range(first, min(first + 3, len(context.ids)))
            begin, end = row.place(tokens)
            if {*tokens} <= {*range(row.window.begin, row.window.end)}:
                assert row.ids[begin : end + 1] == [context.ids[token] for token in tokens]
            else:
                assert (begin, end) == (row.nowhere, row.nowhere)
        assert row.place(range(0)) == (row.nowhere, row.nowhere)


def test_a_question_leaves_half_of_the_row_to_its_text():
    context = Context("", list(range(100, 141)), [])
    assert len(question_windows([50] * 8, context, 22, causal=False, name="it")[0].ids) == 22
    with pytest.raises(
        InputError, match=r"line 7: a question of 9 tokens .* data.max_length = 22 .* shorten the question"
    ):
        question_windows([50] * 9, context, 22, causal=False, name="line 7")


def test_an_empty_text_is_read_too():
    (row,) = question_windows([50], Context("", [], []), 11, causal=False, name="it")
    assert row.ids == [BOS, 50, EOS, EOS]
