"""Parameter counts: all rows of Table 3 of Vaswani et al. (2017), exactly, and where the parameters are."""

from dataclasses import replace
from functools import partial

import pytest

from heedful.architectures import EncoderDecoder, LanguageModel
from heedful.architectures.parameters import count_parameters, count_without_building
from heedful.architectures.transformer.model import CONVENTIONS
from heedful.config.presets import PRESETS, TABLE_3
from heedful.config.schema import ModelConfig
from heedful.config.validate import recipe_from_dict

# From the paper's formulas alone: vocabulary 37,000 without biases in attention; 40,960 with them and 32 rows more.
COUNTS = {
    "base": (63_045_632, 65_126_400),
    "A-h1": (63_045_632, 65_126_400),
    "A-h4": (63_045_632, 65_126_400),
    "A-h16": (63_045_632, 65_126_400),
    "A-h32": (63_045_632, 65_126_400),
    "B-dk16": (55_967_744, 58_034_688),
    "B-dk32": (58_327_040, 60_398_592),
    "C-N2": (33_644_544, 35_700_736),
    "C-N4": (48_345_088, 50_413_568),
    "C-N8": (77_746_176, 79_839_232),
    "C-d256": (26_816_512, 27_856_896),
    "C-d1024": (163_815_424, 167_976_960),
    "C-ff1024": (50_450_432, 52_531_200),
    "C-ff4096": (88_236_032, 90_316_800),
    "D-dropout0.0": (63_045_632, 65_126_400),
    "D-dropout0.2": (63_045_632, 65_126_400),
    "D-smoothing0.0": (63_045_632, 65_126_400),
    "D-smoothing0.2": (63_045_632, 65_126_400),
    "E-learned": (63_045_632 + 2 * 1024 * 512, 65_126_400 + 2 * 1024 * 512),
    "big": (214_171_648, 218_333_184),
}

SMALL = ModelConfig(d_model=14, d_ff=19, heads=2, d_k=3, d_v=5, encoder_layers=2, decoder_layers=3)


def preset_model(name: str) -> ModelConfig:
    return recipe_from_dict(PRESETS[name], name).model


@pytest.mark.parametrize("row", TABLE_3, ids=lambda row: row.name)
class TestTableThree:
    def test_counts_are_exact_under_both_conventions(self, row) -> None:
        config = preset_model(f"vaswani-{row.name}")
        assert tuple(convention.count(config) for convention in CONVENTIONS) == COUNTS[row.name]

    def test_the_first_code_reproduces_every_printed_figure_but_big(self, row) -> None:
        if row.millions is not None:
            printed = round(CONVENTIONS[1].count(preset_model(f"vaswani-{row.name}")) / 1e6)
            assert (printed == row.millions) == (row.name != "big")


def test_the_feed_forward_network_has_two_thirds_of_an_encoder_and_two_fifths_of_base() -> None:
    counts = count_without_building(lambda: EncoderDecoder(preset_model("vaswani-base"), 37_000, 37_000)).weights
    feed_forward, attention = counts["feed-forward"], counts["self-attention"] + counts["cross-attention"]
    encoder = count_without_building(lambda: LanguageModel(replace(preset_model("vaswani-base"), family="decoder"), 9))
    shares = [
        encoder.weights["feed-forward"] / (encoder.weights["feed-forward"] + encoder.weights["self-attention"]),
        feed_forward / (feed_forward + attention),
        feed_forward / (feed_forward + attention + counts["embeddings"]),
    ]
    assert [f"{share:.1%}" for share in shares] == ["66.7%", "57.1%", "40.0%"]


def test_biases_on_the_projections_of_base_are_36_864() -> None:
    base = preset_model("vaswani-base")
    without, with_biases = (
        count_without_building(partial(EncoderDecoder, replace(base, attention_bias=bias), 37_000, 37_000)).total
        for bias in (False, True)
    )
    assert (without, with_biases) == (63_045_632, 63_082_496)


def test_tiny_has_the_published_size_at_the_published_vocabulary() -> None:
    assert count_without_building(lambda: EncoderDecoder(preset_model("tiny"), 9_712, 9_712)).total == 2_568_192


def test_kinds_are_counted_apart() -> None:
    counts = count_parameters(EncoderDecoder(SMALL, 31, 31))
    assert counts.weights == {
        "embeddings": 31 * 14,
        "self-attention": 5 * 14 * 2 * (3 + 3 + 5 + 5),
        "cross-attention": 3 * 14 * 2 * (3 + 3 + 5 + 5),
        "feed-forward": 5 * 2 * 14 * 19,
        "norms": (2 * 2 + 3 * 3) * 14,
    }
    assert counts.biases == {
        "self-attention": 5 * (2 * (3 + 3 + 5) + 14),
        "cross-attention": 3 * (2 * (3 + 3 + 5) + 14),
        "feed-forward": 5 * (19 + 14),
        "norms": (2 * 2 + 3 * 3) * 14,
    }


def test_an_untied_model_has_three_matrices() -> None:
    counts = count_parameters(EncoderDecoder(replace(SMALL, tie="none", positions="learned", max_positions=11), 31, 37))
    assert counts.weights["embeddings"] == (31 + 37) * 14
    assert counts.weights["output"] == 37 * 14
    assert counts.weights["positions"] == 2 * 11 * 14


def test_pre_norm_ends_each_stack_with_a_norm() -> None:
    post = count_parameters(EncoderDecoder(SMALL, 31, 31))
    pre = count_parameters(EncoderDecoder(replace(SMALL, norm="pre"), 31, 31))
    assert pre.total - post.total == 2 * 2 * 14


def test_grouped_heads_share_keys_and_values() -> None:
    full = count_parameters(EncoderDecoder(replace(SMALL, attention_bias=False), 31, 31)).weights["self-attention"]
    grouped = count_parameters(EncoderDecoder(replace(SMALL, attention_bias=False, kv_heads=1), 31, 31)).weights[
        "self-attention"
    ]
    assert full - grouped == 5 * 14 * (3 + 5)


def test_experts_that_a_token_does_not_use_are_counted_but_not_active() -> None:
    dense = count_parameters(EncoderDecoder(SMALL, 31, 31))
    more = {"feed_forward": "experts", "experts": 7, "experts_per_token": 3, "shared_experts": 1}
    mixed = count_parameters(EncoderDecoder(replace(SMALL, **more), 31, 31))
    layers, routers = SMALL.encoder_layers + SMALL.decoder_layers, 7 * SMALL.d_model
    one = dense.weights["feed-forward"] // layers
    biases = dense.biases["feed-forward"] // layers
    assert mixed.weights["feed-forward"] == layers * (8 * one + routers)
    assert mixed.total - mixed.active == layers * 4 * (one + biases)
    assert dense.active == dense.total


def test_the_projections_of_latent_attention_count_as_self_attention() -> None:
    config = replace(SMALL, attention="latent", kv_rank=9, q_rank=8, d_rope=4, attention_bias=False)
    layers, width = config.encoder_layers + config.decoder_layers, config.heads * (config.head_size + 4)
    values = config.heads * (config.d_v or config.head_size)
    one = 14 * 8 + 8 + 8 * width + 14 * 9 + 9 + 9 * (config.heads * config.head_size + values) + 14 * 4 + values * 14
    assert count_parameters(EncoderDecoder(config, 31, 31)).weights["self-attention"] == layers * one


def test_nothing_is_left_uncounted() -> None:
    for config in (SMALL, replace(SMALL, tie="output", norm="pre", positions="learned")):
        model = EncoderDecoder(config, 31, 31)
        counts = count_parameters(model)
        assert counts.total == sum(parameter.numel() for parameter in model.parameters())
        assert "" not in counts.weights | counts.biases
