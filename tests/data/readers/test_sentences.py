import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.readers.documents import split_sentences
from timing import times_as_long

# A bar stands where a sentence ends; the space before it belongs to none.
ENGLISH = [
    "It rained. |We stayed in! |Why not? |Because... |Well.",
    "Mr. Ash and Mrs. Birch met Dr. Oak of St. Elm. |They talked.",
    "J. Reed wrote to A. B. Moss. |It was I. |He knew.",
    "She saw the U.S. Army. |It came at 5 p.m. |All slept.",
    "Pens, ink, etc. Are sold, i.e. Given away, e.g. Here.",
    "Look at No. 7 and p. 12. |No. |Not there.",
    "It costs 3.14 or .5 of it. |$5 is enough. |7 is not.",
    "He waited... and went on. |He waited... |Then he went.",
    "“Stop!” he cried. |“No,” she said. “not yet.” |‘Why?’ |(Nobody knew.) |[Silence.]",
    '"Go!" said he. |"I will." -- and he went. |-- "Good."',
    "1. The end of it. |IV. A new one.",
    "1.B. Of trees. |They grow.",
    "Wait?! |Really!!! |Yes.",
    "Élan is a word. |Él is another. |And éclair too. éclair again.",
    "no capital follows. so it goes on",
    "A file.txt is no end. |Nor is a.b here.",
]
CHINESE = [
    "今天下雨。|我们在家！|为什么？|好；|走吧。",
    "他说：“你好。”|然后走了。|（真的。）|《书。》|好。",
    "我……不知道。|你呢？！|哦……。|好",
    '他说:"走。"|她没动。|"好。" |再见。|"走吧"',
    "我喜欢 tea。|We drink it. |你呢？ |Yes, 3.14 元。",
    "你好! |我来了?我叫王. |你呢",
]


@pytest.mark.parametrize("marked", [*ENGLISH, *CHINESE])
def test_a_sentence_ends_where_something_new_begins(marked):
    assert split_sentences(marked.replace("|", "")) == [sentence.strip() for sentence in marked.split("|")]


def test_line_breaks_are_spaces_but_blank_lines_end_a_sentence():
    text = "CHAPTER I\r\n\r\nIt was late\r\n  and dark. He\nsaw Mr.\nAsh.\n \t\nand then\n\n\n他说\n今天好。明天\nmore"
    expected = ["CHAPTER I", "It was late and dark.", "He saw Mr. Ash.", "and then", "他说今天好。", "明天 more"]
    assert split_sentences(text) == expected


texts = st.text(st.sampled_from("aB1字 \n\t\r.!?…。；”“\"')(-—J\u3000\u2028"), max_size=83) | st.text()


@given(texts)
def test_nothing_is_lost_and_nothing_is_added(text):
    sentences = split_sentences(text)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    assert all(sentence and sentence == sentence.strip() for sentence in sentences)


@given(texts)
def test_a_sentence_holds_no_line_feed(text):
    assert not any("\n" in sentence for sentence in split_sentences(text))


@pytest.mark.parametrize("unit", [".", '"', ".'", " ", "\n", " \n", "。", '。"', "J. ", "(", ". ( ", "a", "\r\n"])
def test_the_time_grows_with_the_length_and_not_with_its_square(unit):
    short, long = ("x" + unit * count + "x" for count in (10_007, 8 * 10_007))
    assert times_as_long(lambda: split_sentences(long), lambda: split_sentences(short)) < 24  # its square: 64
