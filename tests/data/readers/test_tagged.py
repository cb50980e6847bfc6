"""Words with tags, and the spans that tags describe."""

import gzip
import random
from itertools import pairwise

import pytest

from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.drop_report import DropReport
from heedful.data.readers.tagged import Span, Tagged, may_follow, read_tagged, spans, tags_of, with_beginnings
from heedful.errors import InputError


@pytest.fixture
def tagged(tmp_path):
    """A function that writes one file and reads its sentences."""

    def read(content, report=None, *, name="a.conll", policy="error", part=(0.0, 1.0)):
        raw = content.encode() if isinstance(content, str) else content
        (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
        data = DataConfig(root=str(tmp_path), bad_utf8=policy)
        return list(read_tagged(CorpusConfig(source=name, part=part), data, report))

    return read


TWO = [Tagged(1, ("Ada", "Byron", "went"), ("B-person", "I-person", "O")), Tagged(5, ("Hi",), ("O",))]


@pytest.mark.parametrize(
    "text",
    [
        "Ada\tB-person\nByron\tI-person\nwent\tO\n\nHi\tO\n",
        "Ada B-person\nByron  I-person\nwent O\n\nHi O",
        "\ufeffAda NNP B-NP B-person\r\nByron NNP I-NP I-person \r\nwent VBD B-VP O\r\n\r\nHi UH O O\r\n\r\n",
        "Ada\tB-person\t\nByron\tI-person\nwent\tO\n\t\nHi\tO\n\n\n",
    ],
    ids=["tabs", "spaces", "four columns and CRLF", "stray tabs"],
)
def test_words_and_their_tags_are_read_sentence_by_sentence(tagged, text):
    assert tagged(text) == TWO
    assert tagged(text, name="a.conll.gz") == TWO


def test_document_marks_and_comments_are_no_words(tagged):
    text = "-DOCSTART- -X- O O\n\n# sent_id = 3-B\n# text = a\na O\n-DOCSTART- O\nb B-x\n"
    assert tagged(text) == [Tagged(5, ("a",), ("O",)), Tagged(7, ("b",), ("B-x",))]


def test_a_hash_is_a_word_where_it_has_a_tag(tagged):
    assert tagged("#\tO\n#tag\tB-x\n# O\n") == [Tagged(1, ("#", "#tag", "#"), ("O", "B-x", "O"))]


def test_a_word_may_hold_spaces_between_tabs(tagged):
    assert tagged("New York\tU-place\n\u00a0\tO\n") == [Tagged(1, ("New York", "\u00a0"), ("U-place", "O"))]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("alone", "line 3: 'alone' is not a word with a tag"),
        ("word\t", "line 3: .*is not a word with a tag"),
        ("\tO", "line 3: .*is not a word with a tag"),
        ("# comment inside", "line 3: the tag 'inside' is neither O nor"),
        ("word\tperson", "line 3: the tag 'person' is neither O nor a kind with a prefix"),
        ("the\tDET", "line 3: .* A single-word tag, such as a part of speech, is written with S: S-DET"),
        ("word\tX-person", "line 3: the tag 'X-person'"),
        ("word\tB-", "line 3: the tag 'B-'"),
        ("word\to", "line 3: the tag 'o'"),
    ],
)
def test_what_is_no_word_with_a_tag_is_refused_with_its_line(tagged, line, problem):
    with pytest.raises(InputError, match=r"a\.conll, " + problem):
        tagged(f"a O\nb O\n{line}\n")


BARE = [Tagged(1, ("dog", "O"), ("S-NOUN", "S-O")), Tagged(5, ("#", "it"), ("S-SYM", "S-PRON"))]
CONLLU = "{}\t{}\t_\t{}" + "\t_" * 6 + "\n"


@pytest.mark.parametrize(
    "text",
    [
        "dog\tNOUN\nO\tO\n\n# a comment\n#\tSYM\nit\tPRON\n",
        "dog\tx\tNOUN\nO\tx\tO\n\n\n#\tx\tSYM\nit\tx\tPRON\n",
        CONLLU.format(1, "dog", "NOUN")
        + CONLLU.format(2, "O", "O")
        + "\n# sent_id = 2\n"
        + CONLLU.format(1, "#", "SYM")
        # A word of two words, and one that is not written.
        + CONLLU.format(2, "it", "PRON")
        + CONLLU.format("2-3", "du", "_")
        + CONLLU.format("8.1", "sees", "VERB"),
    ],
    ids=["two columns", "three columns", "CoNLL-U"],
)
def test_tags_of_single_words_need_no_prefix(tagged, text):
    assert tagged(text) == BARE


def test_tags_with_and_without_a_prefix_do_not_mix(tagged):
    with pytest.raises(InputError, match=r"line 3: the tag 'B-per' has a prefix, but the first .* 'B_per', has none"):
        tagged("Ann B_per\nruns O\nBob B-per\n")


def test_bad_utf8_drops_the_sentence_and_is_counted(tagged):
    report = DropReport()
    text = b"a O\n\xff O\nc O\n\nd O\n"
    assert tagged(text, report, policy="skip") == [Tagged(5, ("d",), ("O",))]
    assert report.rows() == [("bad UTF-8", 1, "a.conll, line 2")]


def test_parts_are_cut_between_sentences(tagged):
    text = "".join(f"w{i} O\nx O\n\n" for i in range(7))
    first, second = (tagged(text, part=part) for part in ((0.0, 0.5), (0.5, 1.0)))
    assert first + second == tagged(text)
    assert [len(first), len(second)] == [3, 4]


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("I-a I-a O I-a", [(0, 2, "a"), (3, 4, "a")]),
        ("B-a I-a B-a O", [(0, 2, "a"), (2, 3, "a")]),
        ("B-a I-a E-a S-a O", [(0, 3, "a"), (3, 4, "a")]),
        ("B-a I-a L-a U-a O", [(0, 3, "a"), (3, 4, "a")]),
        ("O I-a I-b", [(1, 2, "a"), (2, 3, "b")]),
        ("B-a E-a I-a E-a E-a", [(0, 2, "a"), (2, 4, "a"), (4, 5, "a")]),
        ("S-a I-a", [(0, 1, "a"), (1, 2, "a")]),
        ("B-a-b I-a-b I-a", [(0, 2, "a-b"), (2, 3, "a")]),
        ("O", []),
        ("", []),
    ],
)
def test_tags_of_every_scheme_become_spans(tags, expected):
    assert spans(tags.split()) == [Span(*span) for span in expected]


def written(cut, length, scheme):
    """The tags of spans in a scheme, whose words are named by place in a span: first, inside, last, only."""
    first, inside, last, only = scheme
    tags = ["O"] * length
    for begin, end, kind in cut:
        names = [first, *[inside] * (end - begin - 2), last] if end - begin > 1 else [only]
        tags[begin:end] = [f"{name}-{kind}" for name in names]
    return tags


@pytest.mark.parametrize("scheme", ["BIIB", "BIES", "BILU"])
def test_spans_survive_being_written_as_tags(scheme):
    draw = random.Random(7)
    for _ in range(101):
        cuts = sorted(draw.sample(range(23), 8))
        cut = [Span(begin, end, draw.choice("ab")) for begin, end in pairwise(cuts) if draw.random() < 0.7]
        assert spans(written(cut, 23, scheme)) == cut


SCHEMES = {
    "IO": ("O", "I-a", "I-b"),
    "BIO": ("O", "B-a", "I-a", "B-b", "I-b"),
    "IOBES": ("O", "B-a", "I-a", "E-a", "S-a", "B-b", "I-b", "E-b", "S-b"),
    "BILOU": ("O", "B-a", "I-a", "L-a", "U-a"),
    "one kind without a beginning": ("O", "B-a", "I-a", "I-b"),
}


@pytest.mark.parametrize("known", SCHEMES.values(), ids=SCHEMES)
def test_beginnings_change_no_span_and_follow_the_scheme(known):
    rng = random.Random(1)
    closing = [tag for tag in known if tag[0] in "EL"]
    for _ in range(83):
        tags = rng.choices(known, k=rng.randrange(7))
        found = with_beginnings(tags, known)
        assert spans(found) == spans(tags)
        assert set(found) <= set(known)
        assert with_beginnings(found, known) == found
        assert closing or all(may_follow(a, b, known) for a, b in pairwise(["O", *found, "O"]))


def test_iob1_becomes_bio():
    tags = ["I-a", "I-a", "B-a", "O", "I-b", "I-a"]
    assert with_beginnings(tags, SCHEMES["BIO"]) == ["B-a", "I-a", "B-a", "O", "B-b", "B-a"]
    assert with_beginnings(tags, SCHEMES["IO"]) == tags


LEGAL = {
    "IO": {(a, b) for a in SCHEMES["IO"] for b in SCHEMES["IO"]},
    "BIO": {
        (a, b) for a in SCHEMES["BIO"] for b in SCHEMES["BIO"] if b[0] in "OB" or (a[0] in "BI" and a[1:] == b[1:])
    },
    "BILOU": {
        *((a, b) for a in ("O", "L-a", "U-a") for b in ("O", "B-a", "U-a")),
        *((a, b) for a in ("B-a", "I-a") for b in ("I-a", "L-a")),
    },
}


@pytest.mark.parametrize("name", LEGAL)
def test_a_tag_follows_another_where_the_scheme_allows_it(name):
    known = SCHEMES[name]
    assert {(a, b) for a in known for b in known if may_follow(a, b, known)} == LEGAL[name]


def test_the_tags_are_those_of_the_training_data(tmp_path):
    for name, text in {"a": "x\tI-b\ny\tB-b\n", "b": "z\tB-a\n", "c": "z\tO\n", "d": "z\tO\nz\tS-d\n"}.items():
        (tmp_path / name).write_text(text)
    corpora = {name: CorpusConfig(source=name) for name in "abcd"}

    def tags(names, labels=()):
        data = DataConfig(root=str(tmp_path), train=tuple(corpora[name] for name in names), labels=labels)
        return tags_of(data)

    assert tags("bad") == ("O", "B-a", "B-b", "I-b", "S-d")
    assert tags("a", labels=("I-b", "O")) == ("I-b", "O")
    assert tags("a", labels=("DET", "NOUN")) == ("S-DET", "S-NOUN")
    with pytest.raises(InputError, match="c: tagging needs at least two tags, but found \\['O'\\]"):
        tags("c")
    with pytest.raises(InputError, match=r"data\.labels: .person. is neither O nor a kind"):
        tags("a", labels=("O", "person"))
