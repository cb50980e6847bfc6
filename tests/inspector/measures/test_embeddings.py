"""The neighbours of a token are those that a plain search finds, in the table of its own line."""

import numpy as np
import pytest
import torch

import every_architecture
from heedful.errors import InputError
from heedful.inspector.capture.trace import trace
from heedful.inspector.measures.embeddings import neighbours, row
from subjects import GERMAN, TEXT, filler, generator, searcher, translator

FAMILIES = {
    "encoder-decoder": (translator, ("src", "tgt")),
    "decoder": (generator, ("tgt",)),
    "encoder": (filler, ("src",)),
    "without an output": (searcher, ("src",)),
}


def of_line(subject, line):
    if hasattr(subject, "tokenizers"):
        return subject.tokenizers.source if line == "src" else subject.tokenizers.target
    return getattr(subject, "reader", subject).tokenizer


@pytest.mark.parametrize("family", FAMILIES)
def test_neighbours_have_the_largest_cosines_of_all_other_tokens(family):
    make, lines = FAMILIES[family]
    subject = make()
    model = (subject.reader or subject).model
    for line in lines:
        tokenizer = of_line(subject, line)
        found = neighbours(model, tokenizer, line, 71, 7)
        rows = [torch.tensor(row(model, line, token).values) for token in range(len(tokenizer))]
        cosines = {
            other: float(torch.cosine_similarity(rows[71], rows[other], dim=0))
            for other in range(len(tokenizer))
            if other != 71
        }
        expected = sorted(cosines, key=lambda other: -cosines[other])[:7]
        assert [one.token for one in found] == expected
        assert [one.piece for one in found] == tokenizer.pieces(expected)
        assert [one.cosine for one in found] == pytest.approx([cosines[other] for other in expected], abs=1e-6)


def test_a_row_times_its_scale_is_what_enters_the_model():
    subject = translator()
    seen = trace(subject, TEXT, GERMAN)
    for line in ("src", "tgt"):
        for place, token in enumerate(seen.lines[line].read.ids):
            found = row(subject.model, line, token)
            values = torch.tensor(found.values)
            torch.testing.assert_close(
                values * found.scale, torch.from_numpy(seen[f"{line}.tok"].values[place]), rtol=1e-6, atol=1e-6
            )
            assert found.norm == pytest.approx(float(values.square().sum().sqrt()))
            assert not found.segments


@pytest.mark.parametrize(
    ("make", "name"),
    [(every_architecture.translator, name) for name in every_architecture.ENCODER_DECODERS]
    + [(every_architecture.generator, name) for name in every_architecture.LANGUAGE_MODELS],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_every_architecture_shows_the_rows_that_its_tokens_are_looked_up_in(make, name):
    subject = make(name)
    seen = trace(subject, TEXT, GERMAN)
    for line, tokens in seen.lines.items():
        rows = [row(subject.model, line, token) for token in tokens.read.ids]
        expected = np.array([np.array(found.values) * found.scale for found in rows])
        np.testing.assert_allclose(seen[f"{line}.tok"].values, expected, rtol=1e-6, atol=1e-6)


def test_segments_are_told_of():
    assert row(filler().model, "src", 5).segments
    assert not row(generator().model, "tgt", 5).segments


def test_no_more_neighbours_are_found_than_there_are():
    subject = generator()
    assert len(neighbours(subject.model, subject.tokenizer, "tgt", 5, 100_000)) == len(subject.tokenizer) - 1


@pytest.mark.parametrize(
    ("line", "token", "words"), [("src", 5, "its inputs are tgt"), ("tgt", -1, "token -1"), ("tgt", 10**6, "0")]
)
def test_what_is_not_there_is_refused(line, token, words):
    subject = generator()
    with pytest.raises(InputError, match=words):
        neighbours(subject.model, subject.tokenizer, line, token)
    with pytest.raises(InputError, match=words):
        row(subject.model, line, token)
