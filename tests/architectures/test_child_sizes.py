"""How many parameters BERT and GPT have: the figures that others publish, to the last one."""

from dataclasses import replace

import pytest

from heedful.architectures import LanguageModel, MaskedLanguageModel, TextClassifier
from heedful.architectures.parameters import count_parameters, count_without_building
from heedful.config.presets import PRESETS
from heedful.config.schema import ModelConfig
from heedful.config.validate import recipe_from_dict

SMALL = ModelConfig(d_model=14, d_ff=19, heads=2, encoder_layers=2, decoder_layers=3, segments=2, positions="learned")


def preset(name: str) -> ModelConfig:
    return recipe_from_dict(PRESETS[name], name).model


def language_model(name: str, vocab: int):
    return count_without_building(lambda: LanguageModel(preset(name), vocab))


@pytest.mark.parametrize(
    ("name", "total"),
    [("gpt2", 124_439_808), ("gpt2-medium", 354_823_168), ("gpt2-large", 774_030_080), ("gpt2-xl", 1_557_611_200)],
)
def test_gpt_2_has_the_published_sizes_at_its_50_257_tokens(name, total):
    """All of it: token and position vectors, blocks and the last norm; the output is the matrix of the tokens."""
    counts = language_model(name, 50_257)
    assert counts.total == total
    assert "output" not in counts.weights


def test_gpt_3_has_175_billion_parameters_in_96_layers():
    """Brown et al. (2020), table 2.1."""
    gpt_3 = replace(preset("gpt2"), decoder_layers=96, d_model=12_288, d_ff=49_152, heads=96, max_positions=2048)
    assert round(count_without_building(lambda: LanguageModel(gpt_3, 50_257)).total / 1e9) == 175


@pytest.mark.parametrize(("name", "total"), [("bert-base", 109_482_240), ("bert-large", 335_141_888)])
def test_bert_has_the_published_sizes_at_its_30_522_tokens(name, total):
    """The encoder with its vectors of tokens, 512 positions and 2 segments, the norm on them, and the pooler."""
    built: list[MaskedLanguageModel] = []

    def build() -> MaskedLanguageModel:
        built.append(MaskedLanguageModel(preset(name), 30_522, pairs=True))
        return built[0]

    whole = count_without_building(build).total
    width, (model,) = preset(name).d_model, built
    pooler = width * width + width
    assert count_parameters(model.backbone).total + pooler == total
    heads = width * width + width + 2 * width + 30_522 + 2 * width + 2  # transform, its norm, output bias, neighbours
    assert whole == total + heads


def test_the_base_model_for_pre_training_has_110_106_428():
    """What Hugging Face counts in BertForPreTraining: both heads, the output matrix being that of the tokens."""
    assert count_without_building(lambda: MaskedLanguageModel(preset("bert-base"), 30_522, pairs=True)).total == (
        110_106_428
    )


def test_shakespeares_model_has_the_size_that_nanogpt_prints():
    """10.65M at 65 characters, position vectors left out, as nanoGPT counts."""
    counts = language_model("shakespeare", 65)
    assert counts.total - counts.weights["positions"] == 10_646_784


def test_kinds_of_a_bert_are_counted_apart():
    counts = count_parameters(MaskedLanguageModel(SMALL, 31, pairs=True))
    assert counts.weights == {
        "embeddings": 31 * 14,
        "segments": 2 * 14,
        "positions": 1024 * 14,
        "self-attention": 2 * 4 * 14 * 14,
        "feed-forward": 2 * 2 * 14 * 19,
        "norms": (2 * 2 + 1) * 14,
        "pooler": 14 * 14,
        "output": 14 * 14 + 14 * 2,
    }


@pytest.mark.parametrize("family", ["encoder", "decoder"])
def test_nothing_is_left_uncounted(family):
    config = ModelConfig(**{**vars(SMALL), "family": family, "output_bias": True})
    for model in (
        TextClassifier(config, 31, 5),
        LanguageModel(config, 31),
        MaskedLanguageModel(config, 31, pairs=True),
    ):
        counts = count_parameters(model)
        assert counts.total == sum(parameter.numel() for parameter in model.parameters())
        assert "" not in counts.weights | counts.biases
