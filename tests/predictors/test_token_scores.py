"""Log-probabilities of given texts are those of the model's forward pass, whatever else is in the batch."""

import random
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from heedful.architectures import LanguageModel
from heedful.architectures.transformer.model import EncoderDecoder
from heedful.config.schema import DecodeConfig, GenerateConfig, ModelConfig, TokenizerConfig
from heedful.errors import InputError
from heedful.predictors.generator import Generator
from heedful.predictors.translator import Translator
from heedful.text.tokenizer import BOS, EOS
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer

WORDS = [f"w{number}" for number in range(41)]
TOKENIZER = train_tokenizer(WORDS, TokenizerConfig(kind="word", byte_fallback=False, pretokenized=True))
MODEL = ModelConfig(family="decoder", d_model=26, d_ff=37, heads=2, encoder_layers=1, decoder_layers=2, tie="none")


def texts(count: int = 19, longest: int = 23) -> list[str]:
    chance = random.Random(count)
    return ["", *(" ".join(chance.choices(WORDS, k=chance.randint(1, longest))) for _ in range(count))]


@pytest.fixture
def generator() -> Generator:
    torch.manual_seed(3)
    model = LanguageModel(MODEL, len(TOKENIZER)).eval()
    torch.nn.init.normal_(model.output.weight)
    return Generator(model, TOKENIZER, GenerateConfig(batch_tokens=97))


@pytest.fixture
def translator() -> Translator:
    torch.manual_seed(5)
    model = EncoderDecoder(replace(MODEL, family="encoder_decoder"), len(TOKENIZER), len(TOKENIZER)).eval()
    torch.nn.init.normal_(model.output.weight)
    return Translator(model, TokenizerPair(TOKENIZER, TOKENIZER), DecodeConfig(batch_tokens=97))


@torch.no_grad()
def forward(generator: Generator, tokens: list[int]) -> list[float]:
    logits = generator.model(torch.tensor([[EOS, *tokens]]))[0, :-1]
    return logits.log_softmax(-1)[range(len(tokens)), tokens].tolist()


@pytest.mark.parametrize("end", [False, True])
def test_the_score_of_a_text_is_that_of_the_forward_pass(generator, end):
    scores = generator.score(texts(), end=end)
    for text, score in zip(texts(), scores, strict=True):
        tokens = TOKENIZER.encode(text) + [EOS] * end
        assert score.tokens == tokens
        assert score.pieces == TOKENIZER.pieces(tokens)
        assert score.log_probs == pytest.approx(forward(generator, tokens), abs=2e-5)
        assert score.total == pytest.approx(sum(score.log_probs))


def test_what_is_generated_has_the_score_that_it_was_generated_with(generator):
    generated = generator.generate("", temperature=0.0, max_tokens=17)
    score = generator.score(generated.text, end=generated.reason == "eos")
    assert score.log_probs == pytest.approx(generated.token_scores, abs=2e-5)


@pytest.mark.parametrize("name", ["generator", "translator"])
def test_the_score_does_not_depend_on_the_batch(name, request):
    predictor = request.getfixturevalue(name)
    given = texts() if name == "generator" else list(zip(texts(), reversed(texts()), strict=True))
    for one, score in zip(given, predictor.score(iter(given)), strict=True):
        assert predictor.score(one).log_probs == pytest.approx(score.log_probs, abs=2e-5)


@pytest.mark.parametrize("context", [1, 2, 5, 8])
def test_every_token_of_a_long_text_is_scored_once_from_what_fits_the_context(generator, context):
    generator.context = context
    for text in texts():
        tokens = TOKENIZER.encode(text)
        score = generator.score(text)
        assert len(score.log_probs) == len(tokens)
        assert score.log_probs[:context] == pytest.approx(forward(generator, tokens)[:context], abs=2e-5)


@torch.no_grad()
def test_the_score_of_a_translation_is_that_of_the_forward_pass(translator):
    pairs = list(zip(texts(), reversed(texts()), strict=True))
    for (source, target), score in zip(pairs, translator.score(pairs), strict=True):
        read, written = [*TOKENIZER.encode(source), EOS], [*TOKENIZER.encode(target), EOS]
        masks = [torch.ones(1, len(row), dtype=torch.bool) for row in (read, written)]
        logits = translator.model(torch.tensor([read]), masks[0], torch.tensor([[BOS, *written[:-1]]]), masks[1])
        expected = logits[0].log_softmax(-1)[range(len(written)), written].tolist()
        assert score.tokens == written
        assert score.pieces[-1] == "<eos>"
        assert score.log_probs == pytest.approx(expected, abs=2e-5)


def test_a_translation_has_the_score_of_its_search(translator):
    (found,) = translator.translate_lines(["w3 w5 w7"], beam=1, max_extra=7)
    hypothesis = found.alternatives[0].hypothesis
    score = translator.score(("w3 w5 w7", found.text))
    assert score.tokens[:-1] == hypothesis.tokens
    assert score.log_probs[: len(hypothesis.token_scores)] == pytest.approx(hypothesis.token_scores, abs=2e-5)


@pytest.mark.parametrize("given", ["w1", ["w1 w2"], [("w1",)], [("w1", 3)], [None]])
def test_what_is_not_a_pair_is_refused(translator, given):
    with pytest.raises(InputError, match=r"pair|text"):
        translator.score(given)


@pytest.mark.parametrize("given", ["ab", SimpleNamespace(columns=["en", "de"])], ids=["text", "frame"])
def test_what_would_be_read_as_pairs_by_mistake_is_named(translator, given):
    with pytest.raises(
        InputError, match=r"^('ab' \(str\)|.*\(SimpleNamespace\)) is not a pair; give \(source, translation\)"
    ):
        translator.score(given)


def test_a_pair_that_the_model_cannot_read_is_refused_with_its_number():
    config = replace(MODEL, family="encoder_decoder", positions="learned", max_positions=59)
    model = EncoderDecoder(config, len(TOKENIZER), len(TOKENIZER)).eval()
    translator = Translator(model, TokenizerPair(TOKENIZER, TOKENIZER), DecodeConfig(max_extra=5))
    with pytest.raises(InputError, match="pair 2: the translation has 61 tokens, but the model reads at most 59"):
        translator.score([("w1", "w2"), ("w1", " ".join(["w2"] * 60))])
