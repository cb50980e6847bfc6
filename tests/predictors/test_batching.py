"""What a text gives depends on that text alone."""

import math

import pytest
import torch

from heedful.architectures import TextClassifier
from heedful.config.schema import DataConfig, ModelConfig, TokenizerConfig
from heedful.errors import RunError
from heedful.predictors import Predictor
from heedful.predictors.classifier import Classifier
from heedful.predictors.scorer import Scorer
from heedful.predictors.text_predictor import BatchedModel, Text
from heedful.text.training import train_tokenizer

WORDS = [f"w{number}" for number in range(19)]
TEXTS = [
    Text(" ".join(WORDS[a:b]), second) for a, b, second in ((0, 7, None), (3, 4, "w5 w7"), (2, 19, None), (0, 0, ""))
]
TOKENIZER = train_tokenizer(WORDS, TokenizerConfig(kind="word", byte_fallback=False, pretokenized=True))


def model(family: str, outputs: int = 3) -> TextClassifier:
    torch.manual_seed(0)
    config = ModelConfig(family=family, d_model=16, d_ff=23, heads=2, encoder_layers=1, decoder_layers=1, segments=2)
    return TextClassifier(config, len(TOKENIZER), outputs)


@pytest.mark.parametrize("family", ["encoder", "decoder"])
def test_results_come_in_the_order_of_the_texts_and_depend_on_nothing_else(family, monkeypatch):
    reader = BatchedModel(model(family), TOKENIZER, 23)
    alone = torch.stack([next(reader.read([text])) for text in TEXTS])
    for window, tokens in ((1024, 8192), (2, 8192), (1024, 7)):
        monkeypatch.setattr("heedful.predictors.text_predictor.WINDOW", window)
        monkeypatch.setattr("heedful.predictors.text_predictor.FIRST_WINDOW", 1)
        monkeypatch.setattr("heedful.predictors.text_predictor.BATCH_TOKENS", tokens)
        torch.testing.assert_close(torch.stack([*reader.read(TEXTS)]), alone)
    assert len({tuple(row.tolist()) for row in alone}) == 4


def test_texts_are_read_as_they_are_asked_for(monkeypatch):
    monkeypatch.setattr("heedful.predictors.text_predictor.FIRST_WINDOW", 2)
    taken = []
    reader = BatchedModel(model("encoder"), TOKENIZER, 23)
    results = reader.read(taken.append(text) or text for text in TEXTS)
    next(results)
    assert len(taken) == 2
    assert reader.model.training  # as it was; while it read, dropout was off


def test_a_long_text_loses_its_end():
    reader = BatchedModel(model("encoder"), TOKENIZER, 11)
    long, short = (Text(" ".join(WORDS[:n])) for n in (19, 9))
    assert torch.equal(next(reader.read([long])), next(reader.read([short])))
    assert len(reader.encode(long)) == 11


@pytest.mark.parametrize("kind", [Classifier, Scorer])
def test_an_answer_says_whether_the_end_of_its_text_was_cut_off(kind):
    predictor = kind(model("encoder", 1), TOKENIZER, DataConfig(max_length=11, labels=("yes",)))
    whole, pair = " ".join(WORDS[:9]), Text(" ".join(WORDS[:4]), " ".join(WORDS[:4]))
    texts = [whole, f"{whole} w1", pair, pair._replace(first=f"{pair.first} w1"), ""]
    assert [answer.truncated for answer in predictor.predict(texts)] == [False, True, False, True, False]


def test_answers_are_lines_and_all_that_is_known():
    classifier = Classifier(model("encoder"), TOKENIZER, DataConfig(max_length=23, labels=("no", "yes", "maybe")))
    scorer = Scorer(model("encoder", 1), TOKENIZER, DataConfig(max_length=23))
    assert isinstance(classifier, Predictor)
    assert isinstance(scorer, Predictor)
    for answer, logits in zip(classifier.predict(TEXTS), classifier.reader.read(TEXTS), strict=True):
        assert str(answer) == answer.label == ("no", "yes", "maybe")[logits.argmax()]
        assert sum(answer.probabilities.values()) == pytest.approx(1.0)
    for answer, output in zip(scorer.predict(TEXTS), scorer.reader.read(TEXTS), strict=True):
        assert answer.score == output.item()
        assert str(answer) == f"{answer.score:.4f}"


def test_a_model_that_computes_no_numbers_gives_no_answer():
    broken = model("encoder")
    next(broken.parameters()).data.fill_(math.nan)
    with pytest.raises(RunError, match="is not a number"):
        list(BatchedModel(broken, TOKENIZER, 23).read(TEXTS))
