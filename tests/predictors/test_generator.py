"""Prompts to texts: each request for itself, whatever the batch, and streams that say the same."""

import random
from collections import Counter
from dataclasses import replace

import pytest
import torch
from torch import nn

from heedful.architectures import LanguageModel
from heedful.config.schema import GenerateConfig, ModelConfig, TokenizerConfig
from heedful.predictors.generator import GenerationRequest, Generator
from heedful.search.generation import GenerationRow
from heedful.search.sampling import sample
from heedful.text.tokenizer import BOS, EOS, MASK, PAD, Tokenizer
from heedful.text.training import train_tokenizer
from toy_language_models import ToyLanguageModel, ToyPrefixes, random_logits, script

WORDS = [f"w{number}" for number in range(19)]
SHORT = GenerateConfig(max_tokens=11)
CONFIGS = (
    SHORT,
    replace(SHORT, temperature=0.0, repetition_penalty=1.5),
    replace(SHORT, top_k=5, frequency_penalty=0.5, max_tokens=17),
    replace(SHORT, top_p=0.8, no_repeat_ngram=2, stop=("w3", "w5 w")),
    replace(SHORT, min_tokens=4, temperature=0.0),
    replace(SHORT, typical=0.7, min_p=0.05, presence_penalty=0.3, temperature=1.7),
)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(WORDS, TokenizerConfig(kind="word", byte_fallback=False, pretokenized=True))


@pytest.fixture(scope="module")
def spelling() -> Tokenizer:
    """Bytes only: every character beyond ASCII takes several tokens."""
    return train_tokenizer(["a"], TokenizerConfig(kind="byte"))


def toy(tokenizer: Tokenizer, context: int | None = None, config: GenerateConfig = SHORT) -> Generator:
    return Generator(ToyLanguageModel(random_logits(len(tokenizer))), tokenizer, config, context)


def states(generator: Generator) -> list[ToyPrefixes]:
    assert isinstance(generator.model, ToyLanguageModel)
    return generator.model.states


def says(tokenizer: Tokenizer, text: str, *after: int) -> Generator:
    """A generator that says this text to an empty prompt."""
    tokens = [*tokenizer.encode(text), *after]
    return Generator(ToyLanguageModel(script(len(tokenizer), 1, tokens)), tokenizer, SHORT)


def asked(count: int) -> list[GenerationRequest]:
    """Requests of all kinds."""
    chance = random.Random(count)
    prompts = [" ".join(chance.choices(WORDS, k=chance.randint(0, 7))) for _ in range(count)]
    return [GenerationRequest(p, replace(CONFIGS[i % len(CONFIGS)], seed=i // 3)) for i, p in enumerate(prompts)]


def one_by_one(tokenizer: Tokenizer, request: GenerationRequest, context: int | None) -> list[int]:
    """The tokens said, without batches and states: all that is to be read is read again for each."""
    logits = random_logits(len(tokenizer))
    row = GenerationRow(request.config, tokenizer.encode(request.prompt))
    read = row.prompt or [EOS]
    while len(row.output) < request.config.max_tokens:
        if context and len(read) > context:
            read = read[-(context // 2) :]
        tokens, _ = sample(logits(tuple(read))[None], [row], [PAD, BOS])
        if tokens[0] == EOS:
            break
        row.output.append(int(tokens[0]))
        read = [*read, row.output[-1]]
    return row.output


@pytest.mark.sampled(2)
@pytest.mark.parametrize("context", [None, 5, 2, 1])
def test_what_a_request_gets_does_not_depend_on_its_batch(tokenizer, context):
    requests = asked(19)
    together = toy(tokenizer, context).generate(requests)
    assert {g.reason for g in together} == {"eos", "stop", "length"}
    assert len({g.text for g in together}) > 13
    assert toy(tokenizer, context).generate(requests[::-1])[::-1] == together
    for size in (1, 37):
        generator = toy(tokenizer, context, GenerateConfig(batch_tokens=size))
        assert generator.generate(requests) == together
    for request, expected in zip(requests[:5], together, strict=False):
        assert toy(tokenizer, context).generate([request]) == [expected]


@pytest.mark.parametrize("context", [None, 7, 2])
def test_tokens_are_those_of_a_model_that_reads_everything_anew(tokenizer, context):
    requests = [request for request in asked(17) if not request.config.stop]
    for request, found in zip(requests, toy(tokenizer, context).generate(requests), strict=True):
        assert found.tokens == one_by_one(tokenizer, request, context)


@pytest.mark.parametrize("context", [7, 2, 1])
def test_no_more_than_the_context_is_ever_read(tokenizer, context):
    generator = toy(tokenizer, context)
    generator.generate([*asked(13), GenerationRequest(" ".join(WORDS), SHORT)])
    assert max(state.width for state in states(generator)) == context  # padding included


def test_a_full_context_goes_on_from_its_last_half(tokenizer):
    generator = toy(tokenizer, 7)
    request = GenerationRequest("w1 w2 w3 w5 w7", replace(SHORT, no_repeat_ngram=1))
    (found,) = generator.generate([request])
    prompt = tokenizer.encode(request.prompt)
    text = prompt + found.tokens
    begins = [list(state.everything[0][0]) for state in states(generator)]
    assert begins == [prompt, text[5:8], text[10:13], text[15:16]][: len(begins)]
    assert len(begins) > 1
    assert max(Counter(text).values()) == 1  # what was said before the cut is still known


def test_batches_stay_within_their_budget(tokenizer):
    generator = toy(tokenizer, 13, GenerateConfig(batch_tokens=53))
    generator.generate(asked(23))
    rows = [len(state.everything) for state in states(generator)]
    assert all(count * state.width <= 53 for count, state in zip(rows, states(generator), strict=True))
    assert max(rows) > 3


def real(tokenizer: Tokenizer, positions: str, context: int) -> Generator:
    """A decoder with weights, whose choices differ."""
    config = ModelConfig(family="decoder", d_model=12, d_ff=23, heads=2, positions=positions, max_positions=context)
    model = LanguageModel(replace(config, decoder_layers=2), len(tokenizer)).eval()
    nn.init.normal_(model.output.weight, std=0.7)
    return Generator(model, tokenizer, SHORT, context)


@pytest.mark.parametrize("positions", ["learned", "rotary"])
def test_a_real_model_answers_alike_in_every_batch(tokenizer, positions):
    generator = real(tokenizer, positions, 13)
    requests = asked(7)
    for request, together in zip(requests, generator.generate(requests), strict=True):
        (alone,) = generator.generate([request])
        assert (alone.tokens, alone.text, alone.reason) == (together.tokens, together.text, together.reason)
        assert alone.token_scores == pytest.approx(together.token_scores, abs=1e-4)


def test_scores_are_the_log_probabilities_of_the_model(tokenizer):
    generator = real(tokenizer, "sinusoidal", 29)
    requests = [GenerationRequest(prompt, replace(CONFIGS[2], seed=3)) for prompt in ("", "w1", "w2 w3 w5 w7")]
    for request, found in zip(requests, generator.generate(requests), strict=True):
        prompt = tokenizer.encode(request.prompt) or [EOS]
        said = [*found.tokens, *([EOS] if found.reason == "eos" else [])]
        read = torch.tensor([prompt + said])[:, :-1]
        log_probs = generator.model(read, torch.ones_like(read, dtype=torch.bool))[0].log_softmax(-1)
        expected = log_probs[range(len(prompt) - 1, read.size(1)), said].tolist()
        assert found.token_scores == pytest.approx(expected, abs=1e-4)


def test_temperature_zero_is_greedy(tokenizer):
    generator = toy(tokenizer)
    prompt, logits_after = tokenizer.encode("w3 w5"), random_logits(len(tokenizer))
    (found,) = generator.generate([GenerationRequest("w3 w5", replace(SHORT, temperature=0.0, seed=7))])
    assert found.tokens
    for i, token in enumerate(found.tokens):
        logits = logits_after((*prompt, *found.tokens[:i]))
        logits[[PAD, BOS]] = -torch.inf
        assert token == logits.argmax()


def test_no_sequence_of_n_tokens_comes_twice(tokenizer):
    loop = torch.randn(len(tokenizer)) * 3  # wants to say the same all the time
    loop[EOS] = -100.0
    generator = Generator(ToyLanguageModel(lambda _: loop), tokenizer, SHORT)
    for size in (1, 2, 3):
        config = GenerateConfig(max_tokens=13, no_repeat_ngram=size, temperature=0.0)
        (found,) = generator.generate([GenerationRequest("w1 w2 w1", config)])
        text = tokenizer.encode("w1 w2 w1") + found.tokens
        grams = [tuple(text[i : i + size]) for i in range(len(text) - size + 1)]
        own = grams[3 - size + 1 :]
        assert len(found.tokens) == 13
        assert len(set(own)) == len(own)
        assert not set(own) & set(grams[: 3 - size + 1])


@pytest.mark.parametrize("context", [None, 5])
def test_a_stream_says_what_generate_says(tokenizer, context):
    requests = asked(11)
    generator = toy(tokenizer, context)
    for request, expected in zip(requests, generator.generate(requests), strict=True):
        parts = list(generator.stream(request))
        assert "".join(parts) == expected.text
        assert all(parts)


def test_a_stream_gives_a_character_with_its_last_byte(spelling):
    text = "é語🙂!"
    generator = says(spelling, text, EOS)
    steps = [(part, len(states(generator)[0].read[0])) for part in generator.stream(GenerationRequest("", SHORT))]
    assert steps == [("é", 2), ("語", 5), ("🙂", 9), ("!", 10)]


def test_an_output_cut_inside_a_character_ends_in_a_replacement(spelling):
    generator = says(spelling, "aé")
    request = GenerationRequest("", replace(SHORT, max_tokens=2))
    assert generator.generate([request])[0].text == "a\ufffd"
    assert list(generator.stream(request)) == ["a", "\ufffd"]


@pytest.mark.parametrize(
    ("stop", "text", "reason"),
    [(("🙂",), "é語", "stop"), (("語🙂.",), "é語🙂!", "eos"), (("!?", "語🙂!"), "é", "stop"), (("é",), "", "stop")],
)
def test_a_stop_string_may_straddle_tokens(spelling, stop, text, reason):
    generator = says(spelling, "é語🙂!", EOS)
    request = GenerationRequest("", replace(SHORT, stop=stop))
    (found,) = generator.generate([request])
    assert (found.text, found.reason) == (text, reason)
    assert "".join(generator.stream(request)) == text


def test_nothing_of_a_stop_string_is_streamed(spelling):
    generator = says(spelling, "ab<en<end>cd", EOS)
    assert list(generator.stream(GenerationRequest("", replace(SHORT, stop=("<end>",))))) == ["a", "b", "<en"]


def test_each_end_has_its_reason_and_its_scores(tokenizer):
    ended, stopped, cut = (
        says(tokenizer, "w1 w2 w3", EOS).generate([GenerationRequest("", replace(SHORT, **settings))])[0]
        for settings in ({}, {"stop": ("w3",)}, {"max_tokens": 3})
    )
    assert [(g.text, g.reason) for g in (ended, stopped, cut)] == [
        ("w1 w2 w3", "eos"),
        ("w1 w2 ", "stop"),
        ("w1 w2 w3", "length"),
    ]
    assert ended.tokens == stopped.tokens == cut.tokens == tokenizer.encode("w1 w2 w3")
    assert [g.token_scores for g in (ended, stopped, cut)] == [[0.0] * 4, [0.0] * 3, [0.0] * 3]


@pytest.mark.parametrize(
    ("settings", "length", "reason"),
    [({}, 0, "eos"), ({"min_tokens": 5}, 5, "eos"), ({"ignore_eos": True}, 11, "length")],
    ids=["neither", "min_tokens", "ignore_eos"],
)
def test_a_model_that_wants_to_end_writes_as_much_as_is_asked_for(tokenizer, settings, length, reason):
    model = ToyLanguageModel(lambda _: torch.zeros(len(tokenizer)).index_fill(0, torch.tensor(EOS), 90.0))
    config = replace(SHORT, **settings)
    requests = [GenerationRequest("", config), GenerationRequest("w3", replace(config, seed=7))]
    generations = Generator(model, tokenizer, SHORT).generate(requests)
    assert [(len(generation.tokens), generation.reason) for generation in generations] == [(length, reason)] * 2


def test_an_empty_prompt_begins_where_a_document_begins(tokenizer):
    generator = toy(tokenizer)
    generator.generate([GenerationRequest("", SHORT), GenerationRequest("w5", SHORT)])
    assert {rows[0] for rows in states(generator)[0].everything} == {(EOS,), tuple(tokenizer.encode("w5"))}


def test_the_beginning_of_a_document_is_not_penalised(tokenizer):
    model = ToyLanguageModel(lambda _: torch.zeros(len(tokenizer)).index_fill(0, torch.tensor(EOS), 1.0))
    config = replace(SHORT, repetition_penalty=100.0, no_repeat_ngram=1, temperature=0.0)
    (found,) = Generator(model, tokenizer, SHORT).generate([GenerationRequest("", config)])
    assert (found.tokens, found.reason) == ([], "eos")


def test_prompt_and_text_read_on_without_a_seam(tokenizer):
    (first,) = says(tokenizer, "w1 w2", EOS).generate([GenerationRequest("", SHORT)])
    tokens = [*tokenizer.encode("w2"), EOS]
    model = ToyLanguageModel(script(len(tokenizer), 1, tokens))
    (after,) = Generator(model, tokenizer, SHORT).generate([GenerationRequest("w1", SHORT)])
    assert (first.text, after.text) == ("w1 w2", " w2")


def test_padding_beginning_and_mask_are_never_said():
    tokenizer = train_tokenizer(WORDS, TokenizerConfig(kind="word", byte_fallback=False, mask=True))
    logits = torch.zeros(len(tokenizer)).index_fill(0, torch.tensor([PAD, BOS, MASK]), 30.0)
    generator = Generator(ToyLanguageModel(lambda _: logits), tokenizer, SHORT)
    found = generator.generate([GenerationRequest("", replace(SHORT, seed=seed)) for seed in range(29)])
    said = {token for generation in found for token in generation.tokens}
    assert len(said) > 10
    assert not said & {PAD, BOS, MASK}


def test_a_model_in_training_is_used_without_dropout_and_stays_in_training(tokenizer):
    generator = toy(tokenizer)  # the toy refuses to start while it trains
    generator.model.train()
    stream = generator.stream(GenerationRequest("", SHORT))
    next(stream)
    assert generator.model.training
    stream.close()
    assert generator.model.training


def test_no_requests_are_answered_with_nothing(tokenizer):
    assert toy(tokenizer).generate([]) == []


def test_a_prompt_longer_than_the_context_is_known_as_such(tokenizer):
    generator = toy(tokenizer, 3)
    assert generator.reads_whole("w1 w2 w3")
    assert not generator.reads_whole("w1 w2 w3 w5")
    assert toy(tokenizer).reads_whole(" ".join(WORDS))
