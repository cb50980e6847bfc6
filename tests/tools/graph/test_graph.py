"""The graph of a model is what its forward pass computes: boxes, order, edges and repeated blocks."""

from dataclasses import replace
from typing import Any

import pytest

from every_architecture import ENCODER_DECODERS, ENCODERS, LANGUAGE_MODELS, MEDIA_CLASSIFIERS
from heedful.architectures.transformer.layers import Block
from heedful.architectures.word2vec.settings import Word2VecConfig
from heedful.config.load import load_preset
from heedful.config.schema import DataConfig, ModelConfig, Recipe, TextModelConfig
from heedful.errors import InputError
from heedful.tools.graph import Graph, graph_of
from heedful.tools.graph.trace import Node
from shown_modules import rows

SMALL = ModelConfig(d_model=16, d_ff=23, heads=2, encoder_layers=3, decoder_layers=2, tie="none")


def name(node: Node) -> str:
    """The name of a module; for the sum of a residual connection, that of the module around it and the symbol."""
    return f"{node.path} {node.kind}".strip() if node.is_operator else node.path or node.kind


def reads(graph: Graph) -> dict[str, list[str]]:
    """The nodes in their order, each with what it reads."""
    return {
        name(node): [f"{name(source)} {node.label(source)}".rstrip() for source in node.inputs] for node in graph.nodes
    }


def graph(config: TextModelConfig, task: str = "translation", **settings: Any) -> Graph:
    return graph_of(Recipe(task=task, model=config, **settings), (97, 97))


def sizes(graph: Graph) -> list[tuple[int, int]]:
    return [(group.count, len(group.nodes)) for group in graph.groups]


def test_the_base_model_is_figure_1_of_the_paper():
    found = graph_of(load_preset("vaswani-base"), (37_000, 37_000))
    assert reads(found) == {
        "source": [],
        "target": [],
        "target_embedding": ["target"],
        "source_embedding": ["source"],
        "encoder.positions": [],
        "encoder +": ["source_embedding", "encoder.positions"],
        "encoder.blocks.0.self_attention": ["encoder +"],
        "encoder.blocks.0.self_residual +": ["encoder +", "encoder.blocks.0.self_attention"],
        "encoder.blocks.0.self_residual.norm": ["encoder.blocks.0.self_residual +"],
        "encoder.blocks.0.feed_forward": ["encoder.blocks.0.self_residual.norm"],
        "encoder.blocks.0.feed_residual +": ["encoder.blocks.0.self_residual.norm", "encoder.blocks.0.feed_forward"],
        "encoder.blocks.0.feed_residual.norm": ["encoder.blocks.0.feed_residual +"],
        "decoder.positions": [],
        "decoder +": ["target_embedding", "decoder.positions"],
        "decoder.blocks.0.self_attention": ["decoder +"],
        "decoder.blocks.0.self_residual +": ["decoder +", "decoder.blocks.0.self_attention"],
        "decoder.blocks.0.self_residual.norm": ["decoder.blocks.0.self_residual +"],
        "decoder.blocks.0.cross_attention": [
            "encoder.blocks.0.feed_residual.norm k, v",
            "decoder.blocks.0.self_residual.norm q",
        ],
        "decoder.blocks.0.cross_residual +": [
            "decoder.blocks.0.self_residual.norm",
            "decoder.blocks.0.cross_attention",
        ],
        "decoder.blocks.0.cross_residual.norm": ["decoder.blocks.0.cross_residual +"],
        "decoder.blocks.0.feed_forward": ["decoder.blocks.0.cross_residual.norm"],
        "decoder.blocks.0.feed_residual +": ["decoder.blocks.0.cross_residual.norm", "decoder.blocks.0.feed_forward"],
        "decoder.blocks.0.feed_residual.norm": ["decoder.blocks.0.feed_residual +"],
        "output": ["decoder.blocks.0.feed_residual.norm"],
        "result": ["output"],
    }
    assert sizes(found) == [(6, 6), (6, 9)]
    assert [node.title for node in found.nodes if "attention" in node.kind] == [
        "self-attention",
        "masked self-attention",
        "cross-attention",
    ]
    assert found.shared == [["source_embedding", "target_embedding", "output"]]
    assert {node.path for node in found.nodes if node.is_shared} == set(found.shared[0])
    details = {node.path: node.detail for node in found.nodes}
    assert details["encoder.blocks.0.self_attention"] == "Attention 512, 8 heads"
    assert details["encoder.blocks.0.feed_forward"] == "FeedForward 512 → 2,048 → 512, relu"
    assert details["source_embedding"] == "Embedding 37,000 × 512"
    assert details["output"] == "OutputProjection 512 → 37,000"
    assert not found.steps
    assert not found.unused


def test_pre_norm_normalises_what_a_sublayer_reads_and_the_end_of_a_stack():
    found = reads(graph(replace(SMALL, norm="pre")))
    block = "encoder.blocks.0"
    assert found[f"{block}.self_residual.norm"] == ["encoder +"]
    assert found[f"{block}.self_attention"] == [f"{block}.self_residual.norm"]
    assert found[f"{block}.self_residual +"] == ["encoder +", f"{block}.self_attention"]
    assert found[f"{block}.feed_residual.norm"] == [f"{block}.self_residual +"]
    assert found[f"{block}.feed_forward"] == [f"{block}.feed_residual.norm"]
    assert found[f"{block}.feed_residual +"] == [f"{block}.self_residual +", f"{block}.feed_forward"]
    assert found["encoder.norm"] == [f"{block}.feed_residual +"]
    assert found["decoder.blocks.0.cross_attention"] == ["encoder.norm k, v", "decoder.blocks.0.cross_residual.norm q"]
    assert found["output"] == ["decoder.norm"]


def test_without_norms_or_residual_connections_they_are_missing():
    bare = graph(replace(SMALL, norm="none"))
    assert not [node for node in bare.nodes if node.kind == "norms"]
    assert sizes(bare) == [(3, 4), (2, 6)]
    unbridged = graph(replace(SMALL, residual=False))
    assert [name(node) for node in unbridged.nodes if node.is_operator] == ["encoder +", "decoder +"]
    assert reads(unbridged)["encoder.blocks.0.self_residual.norm"] == ["encoder.blocks.0.self_attention"]


def test_the_order_is_that_of_the_code_that_runs(monkeypatch):
    def feed_forward_first(self, x, inputs, cache=None):
        x = self.feed_residual(x, self.feed_forward)
        keys_values = self.self_attention.keys_values(x, inputs.rotate)
        return x + self.self_attention(self.self_attention.queries(x), *keys_values, inputs.attention_bias)

    monkeypatch.setattr(Block, "forward", feed_forward_first)
    found = reads(graph(SMALL))
    assert found["encoder.blocks.0.feed_forward"] == ["encoder +"]
    assert found["encoder.blocks.0.self_attention"] == ["encoder.blocks.0.feed_residual.norm"]
    assert found["encoder.blocks.0 +"] == ["encoder.blocks.0.feed_residual.norm", "encoder.blocks.0.self_attention"]


@pytest.mark.parametrize("positions", ["rotary", "alibi", "relative"])
def test_positions_that_act_in_the_attention_are_read_by_the_attention_of_each_block(positions):
    found = graph(replace(SMALL, positions=positions))
    assert reads(found)["encoder.blocks.0.self_attention"] == ["source_embedding", "encoder.positions"]
    assert "encoder.positions" not in reads(found)["decoder.blocks.0.self_attention"]
    assert sizes(found) == [(3, 6), (2, 9)]
    assert {node.title for node in found.nodes} >= {"masked self-attention", "self-attention"}


def test_without_positions_blocks_read_the_embeddings():
    assert reads(graph(replace(SMALL, positions="none")))["encoder.blocks.0.self_attention"] == ["source_embedding"]


def test_a_bert_adds_segments_and_positions_before_a_norm_and_trains_a_head_that_is_not_run():
    found = graph_of(load_preset("bert-tiny"), (97, 97))
    nodes = reads(found)
    assert nodes["backbone +"] == ["backbone.embedding", "backbone.segments"]
    assert nodes["backbone.stack +"] == ["backbone +", "backbone.stack.positions"]
    assert nodes["backbone.stack.embedding_norm"] == ["backbone.stack +"]
    assert nodes["backbone.stack.blocks.0.self_attention"] == ["backbone.stack.embedding_norm"]
    assert nodes["output"] == ["transform.norm"]
    assert found.unused == ["next_sentence.output", "next_sentence.pooler"]


def test_a_gpt_attends_to_earlier_tokens_alone():
    found = graph_of(load_preset("gpt2"), (97, 97))
    assert [node.title for node in found.nodes if "attention" in node.kind] == ["masked self-attention"]
    assert sizes(found) == [(12, 6)]


def test_a_dual_encoder_multiplies_the_vectors_of_two_backbones():
    found = graph_of(load_preset("clip-base"), (97, 97))
    assert reads(found)["·"] == ["pictures.project", "texts.project"]
    assert [node.title for node in found.nodes if "pooling" in node.kind] == ["first pooling", "last pooling"]
    assert [node.detail for node in found.nodes if node.kind == "input"] == ["image, 224 × 224 × 3", "token ids"]


def test_a_recogniser_of_speech_attends_to_frames():
    found = graph_of(load_preset("whisper-tiny"), (97, 97))
    nodes = {node.path: node for node in found.nodes}
    assert nodes["source"].detail == "audio, 80"
    assert nodes["source_embedding"].detail.startswith("ConvolutionalFrames 384 × 80 × 3")
    assert reads(found)["decoder.blocks.0.cross_attention"][0] == "encoder.norm k, v"


def test_words_have_a_second_table_that_only_the_objective_reads():
    found = graph(Word2VecConfig(d_model=14), "word_vectors")
    assert reads(found) == {"words": [], "embedding": ["words"], "result": ["embedding"]}
    assert found.unused == ["output"]


def test_convolutions_are_folded_with_the_attention_of_their_layer():
    found = graph(ENCODER_DECODERS["convolutional"])
    assert [[node.kind for node in group.nodes] for group in found.groups] == [
        ["convolutions", "+"],
        ["convolutions", "cross-attention", "+"],
    ]
    sources = reads(found)["decoder.attentions.0"]
    assert {"decoder.stack.layers.0", "decoder.stack +", "encoder.leave", "decoder +"} == set(sources)


@pytest.mark.parametrize(
    ("architecture", "step"),
    [
        ("lstm with input feeding", ("decoder.combine", "decoder.stack.layers.0.rnn")),
        ("gru with Bahdanau's attention", ("decoder.stack.layers.1.rnn", "decoder.score")),
        ("lstm with general attention", None),
    ],
)
def test_what_a_decoder_passes_to_its_next_step_is_an_edge_by_itself(architecture, step):
    found = graph(ENCODER_DECODERS[architecture])
    assert [(source.path, target.path) for source, target in found.steps] == ([step] if step else [])


def recipes() -> dict[str, Recipe]:
    labels = DataConfig(labels=("a", "b"))
    return {
        **{f"writes, {key}": Recipe(task="translation", model=config) for key, config in ENCODER_DECODERS.items()},
        **{f"continues, {key}": Recipe(task="language_model", model=config) for key, config in LANGUAGE_MODELS.items()},
        **{f"reads, {key}": Recipe(task="classification", model=it, data=labels) for key, it in ENCODERS.items()},
        **{
            f"{task}, {key}": replace(recipe, data=replace(recipe.data, labels=("a", "b")))
            for task, recipes in MEDIA_CLASSIFIERS.items()
            for key, recipe in recipes.items()
        },
    }


@pytest.mark.sampled(12)
@pytest.mark.parametrize("kind", recipes())
def test_every_module_with_weights_has_a_box_after_what_it_reads(kind):
    found = graph_of(recipes()[kind], (97, 97))
    assert not found.unused
    index = {node: number for number, node in enumerate(found.nodes)}
    assert all(index[source] < index[target] for source, target, _ in found.edges())
    assert all(node.inputs or node.kind in ("input", "positions", "segments") for node in found.nodes)
    used = {source for source, _, _ in found.edges()}
    assert [name(node) for node in found.nodes if node not in used] == ["result"]


def test_a_model_that_reads_inputs_of_its_own_is_refused():
    config = rows.RowConfig(
        architecture="rows:RowClassifier", d_model=14, d_ff=23, heads=2, encoder_layers=1, features=3
    )
    recipe = Recipe(task="rows:RowClassification", model=config, data=DataConfig(labels=("a", "b")))
    with pytest.raises(InputError, match="the graph cannot be drawn, because the model does not run on token ids"):
        graph_of(recipe, (0, 0))
