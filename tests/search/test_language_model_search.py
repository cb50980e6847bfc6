"""Searching and sampling with what a GPT remembers, and with nothing remembered at all: the same outputs."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from heedful.architectures import LanguageModel
from heedful.architectures.heads import LanguageModelState
from heedful.config.schema import DecodeConfig, GenerateConfig, ModelConfig, TokenizerConfig
from heedful.predictors.generator import GenerationRequest, Generator
from heedful.registry import POSITIONS
from heedful.search.beam import search
from heedful.text.tokenizer import BOS, EOS, PAD
from heedful.text.training import train_tokenizer

WORDS = [f"w{number}" for number in range(13)]


def model(positions: str, vocab: int = 17, kind: type[LanguageModel] = LanguageModel) -> LanguageModel:
    """A decoder with grouped heads whose opinions are strong; always the same one."""
    torch.manual_seed(3)
    config = ModelConfig(family="decoder", d_model=24, d_ff=37, heads=4, kv_heads=2, decoder_layers=2, tie="none")
    built = kind(replace(config, positions=positions, max_positions=61), vocab).eval()
    nn.init.normal_(built.output.weight, std=1.0)
    return built


class Forgetful(LanguageModelState):
    """A state that keeps the text of each row and reads all of it again for each token."""

    def __init__(self, built: LanguageModel, prompts: list[list[int]]) -> None:
        self.model = built
        self.begin = torch.tensor([prompt[-1] for prompt in prompts])
        self.texts = [prompt[:-1] for prompt in prompts]

    @torch.no_grad()
    def step(self, tokens: Tensor) -> Tensor:
        self.texts = [[*text, token] for text, token in zip(self.texts, tokens.tolist(), strict=True)]
        rows = [torch.tensor([text]) for text in self.texts]
        return torch.cat([self.model(row, torch.ones_like(row, dtype=torch.bool))[:, -1] for row in rows])

    def select(self, rows: Tensor) -> None:
        self.texts = [self.texts[row] for row in rows.tolist()]


class ReadsAnew(LanguageModel):
    """A model whose states are forgetful."""

    def start(self, prompts: Tensor, padding_mask: Tensor) -> Any:
        return Forgetful(self, [row[real].tolist() for row, real in zip(prompts, padding_mask, strict=True)])


def start(built: LanguageModel, prompts: list[list[int]]):
    tokens = torch.zeros(len(prompts), max(map(len, prompts)), dtype=torch.long)
    for row, prompt in zip(tokens, prompts, strict=True):
        row[len(row) - len(prompt) :] = torch.tensor(prompt)
    return built.start(tokens, tokens != PAD)


PROMPTS = [[EOS], [EOS, 5, 7, 11, 5], [EOS, 13], [EOS, 6, 6, 9]]


@pytest.mark.parametrize(("positions", "beam"), [(name, 3) for name in POSITIONS] + [("rotary", 1)])
def test_a_search_finds_what_one_finds_that_reads_everything_anew(positions, beam):
    built = model(positions)
    config = DecodeConfig(beam=beam, n_best=beam)
    remembered = search(start(built, PROMPTS), [5, 3, 7, 2], config)
    forgotten = search(Forgetful(built, PROMPTS), [5, 3, 7, 2], config)
    for ours, theirs in zip(remembered, forgotten, strict=True):
        assert [h.tokens for h in ours] == [h.tokens for h in theirs]
        assert [h.score for h in ours] == pytest.approx([h.score for h in theirs], abs=1e-4)


@pytest.mark.parametrize("positions", ["learned", "alibi"])
def test_a_beam_of_one_says_the_likeliest_token_each_time(positions):
    built = model(positions)
    for prompt, (found,) in zip(PROMPTS, search(start(built, PROMPTS), [7] * 4, DecodeConfig(beam=1)), strict=True):
        state, said, scores = Forgetful(built, [prompt]), [], []
        token = state.begin
        while len(said) < 7 and EOS not in said:
            logits = state.step(token)[0].log_softmax(-1)
            scores.append(logits.index_fill(0, torch.tensor([PAD, BOS]), -torch.inf).max().item())
            token = logits.index_fill(0, torch.tensor([PAD, BOS]), -torch.inf).argmax()[None]
            said.append(int(token))
        assert found.tokens == [token for token in said if token != EOS]
        assert found.token_scores == pytest.approx(scores, abs=1e-4)


@pytest.mark.parametrize("positions", ["rotary", "relative"])
def test_a_beam_as_wide_as_the_language_finds_the_best_of_all_outputs(positions):
    built = model(positions, vocab=7)
    config = DecodeConfig(beam=400, n_best=5, penalty="average", alpha=0.7)
    words = (1, 4, 5, 6)
    outputs: list[list[tuple[int, ...]]] = [[(*said, EOS) for said in product(words, repeat=n)] for n in range(3)]
    outputs[2] += [*product(words, repeat=3)]
    for prompt in ([EOS], [EOS, 5, 6]):
        (found,) = search(start(built, [prompt]), [3], config)
        scored = []
        for alike in outputs:  # of the same length
            read = torch.tensor([[*prompt, *said] for said in alike])
            logits = built(read, torch.ones_like(read, dtype=torch.bool))[:, len(prompt) - 1 : -1].double()
            totals = logits.log_softmax(-1).gather(2, torch.tensor(alike)[:, :, None]).sum((1, 2))
            scored += [(total / len(said) ** 0.7, said) for total, said in zip(totals.tolist(), alike, strict=True)]
        best = sorted(scored, reverse=True)[:5]
        assert [(*h.tokens, EOS) if h.complete else tuple(h.tokens) for h in found] == [said for _, said in best]
        assert [h.score for h in found] == pytest.approx([score for score, _ in best], abs=1e-5)


@pytest.mark.parametrize("positions", POSITIONS)
def test_samples_are_those_of_a_model_that_reads_everything_anew(positions):
    tokenizer = train_tokenizer(WORDS, TokenizerConfig(kind="word", byte_fallback=False, pretokenized=True))
    config = GenerateConfig(max_tokens=7, top_k=11)
    requests = [
        GenerationRequest(p, replace(config, seed=i)) for i, p in enumerate(["", "w1 w2 w3 w5", "w7", "w3 w3", "w9"])
    ]
    got, want = (
        Generator(model(positions, len(tokenizer), kind), tokenizer, config).generate(requests)
        for kind in (LanguageModel, ReadsAnew)
    )
    assert [g.tokens for g in got] == [g.tokens for g in want]
    assert len({tuple(g.tokens) for g in got}) > 2
    for ours, theirs in zip(got, want, strict=True):
        assert ours.token_scores == pytest.approx(theirs.token_scores, abs=1e-4)
