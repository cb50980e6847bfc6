"""What is recorded of a tagger and an answerer is the row from which their answers come."""

import pytest
import torch

from heedful.architectures import TokenClassifier
from heedful.config.schema import DataConfig, ModelConfig, TokenizerConfig
from heedful.errors import InputError
from heedful.inspector.capture.forward_inputs import reading
from heedful.predictors.answerer import Answerer
from heedful.predictors.tagger import Tagger
from heedful.predictors.text_predictor import Text
from heedful.text.training import train_tokenizer
from heedful.text.words import split_words

MODEL = ModelConfig(family="encoder", d_model=14, d_ff=19, heads=2, encoder_layers=1, segments=2)
TOKENIZER = train_tokenizer(["ada (byron) saw ada, and byron saw(ada)!"] * 3, TokenizerConfig(vocab_size=311))


def subject(kind, labels=()):
    torch.manual_seed(1)
    model = TokenClassifier(MODEL, len(TOKENIZER), len(labels) or 2).eval()
    return kind(model, TOKENIZER, DataConfig(max_length=29, labels=labels))


def recorded(subject, *texts):
    with torch.inference_mode():
        return reading(subject, *texts).run()[0]


def test_a_tagger_is_recorded_with_the_words_that_it_tags():
    tagger, text = subject(Tagger, ("B-a", "I-a")), "ada (byron)!"
    [row] = tagger.rows(split_words(text))
    assert row.ids != tagger.reader.encode(Text(text))
    [expected] = tagger.reader.read_rows([row.ids], tagger.model)
    assert torch.allclose(recorded(tagger, text, None), expected, atol=1e-6)
    with pytest.raises(InputError, match="are a pair; a tagger reads lines without tabs"):
        reading(tagger, text, "saw")


def test_an_answerer_is_recorded_with_the_window_of_its_answer():
    answerer, texts = subject(Answerer), ("saw ada?", "ada saw byron")
    _, [row] = answerer.read(Text(*texts))
    [expected] = answerer.reader.read_rows([row.ids], answerer.model)
    assert torch.allclose(recorded(answerer, *texts), expected, atol=1e-6)


def test_a_text_that_is_read_in_parts_is_refused():
    long = "ada saw byron " * 13
    for one, texts in ((subject(Tagger, ("B-a", "I-a")), (long, None)), (subject(Answerer), ("saw ada?", long))):
        with pytest.raises(InputError, match="parts of at most 29 tokens, of which an inspection shows only one; give"):
            reading(one, *texts)
