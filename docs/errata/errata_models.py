"""The right values of layers, models and their predecessors, one function for each `computation` of rows.toml."""

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from errata_examples import EXAMPLES, SMALL, Values, attention, everywhere, example, measured, same, small_model
from torch import Tensor, nn

from heedful.architectures import DecoderOnly, EncoderDecoder, EncoderOnly, LanguageModel
from heedful.architectures.parameters import count_without_building
from heedful.architectures.recurrent.layers import RecurrentLayer
from heedful.architectures.recurrent.settings import RecurrentConfig
from heedful.architectures.transformer.layers import (
    Block,
    DecoderBlock,
    FeedForward,
    PostNorm,
    PreNorm,
    Residual,
    Stack,
    layer_norm,
)
from heedful.architectures.transformer.model import CONVENTIONS
from heedful.config.families import FAMILIES
from heedful.config.load import load_preset
from heedful.config.modalities import AudioConfig
from heedful.config.presets import TABLE_3
from heedful.config.schema import DecodeConfig, ModelConfig
from heedful.machine.speed import count_flops
from heedful.nn.embedding import Embedding
from heedful.nn.masks import AttentionMask, causal_mask
from heedful.nn.meta_device import meta_device
from heedful.nn.patches import patchify
from heedful.registry import POSITIONS
from heedful.search.beam import greedy_search
from heedful.tasks.parts.sequence_to_sequence import pair_batch
from heedful.text.tokenizer import BOS, EOS

CPU = torch.device("cpu")

# Layers


def residuals(block: nn.Module) -> int:
    return sum(isinstance(module, Residual) for module in block.modules())


def norms(block: nn.Module) -> int:
    return sum(isinstance(module, nn.LayerNorm) for module in block.modules())


def residuals_of_an_encoder_layer() -> Values:
    return {"right": [residuals(Block(SMALL))], "decoder": residuals(DecoderBlock(SMALL))}


def norms_of_a_layer(side: str) -> Values:
    return {"right": [norms({"encoder": Block, "decoder": DecoderBlock}[side](SMALL))]}


def order_of_the_paper() -> Values:
    return {"right": [load_preset("vaswani-base").model.norm]}


def orders_of_norms() -> Values:
    """The largest difference between the printed formulas of Post-Norm and Pre-Norm, and heedful's layers."""
    torch.manual_seed(0)
    x, sublayer = torch.randn(1, 5, SMALL.d_model), nn.Linear(SMALL.d_model, SMALL.d_model)
    post, pre = PostNorm(SMALL).eval(), PreNorm(SMALL).eval()
    printed = torch.stack([post.norm(x + sublayer(x)), x + sublayer(pre.norm(x))])
    layers = torch.stack([post(x, sublayer), pre(x, sublayer)])
    return {"document": [0.0], "right": [(printed - layers).abs().max().item()]}


def normalised(x: Tensor) -> Tensor:
    """The layer normalisation of heedful, with new gains and biases."""
    return layer_norm(ModelConfig(d_model=x.size(-1))).to(x.dtype)(x)


def layer_norm_example() -> Values:
    x = example("features")
    y = normalised(x).tolist()
    return {"right": [x.mean().item(), x.var(correction=0).item(), *y], "normalised": y}


def all_tokens_normalised() -> Values:
    tokens = torch.stack([example("features"), 10 * example("features")])
    together = nn.functional.layer_norm(tokens, tokens.shape)
    return {"document": together[0].tolist(), "right": normalised(tokens)[0].tolist()}


def share_within_one_deviation() -> Values:
    share = (normalised(example("features")).abs() < 1).double().mean().item()
    return {"document": [math.erf(0.5**0.5)], "right": [share]}


def constant_features() -> Values:
    x = torch.full((4,), 3.0)
    printed = (x - x.mean()) / x.std(correction=0)
    return {"document": printed.tolist(), "right": normalised(x).tolist(), "epsilon": SMALL.norm_eps}


def gain_and_bias() -> Values:
    """The largest differences between x and 2x, and between their layer normalisations with the same gain and bias."""
    torch.manual_seed(0)
    x = example("features")
    norm = layer_norm(ModelConfig(d_model=4)).double()
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    once, twice = norm(x), norm(2 * x)
    return {"document": [x.max().item()], "right": [(twice - once).abs().max().item()]}


def equal_inputs() -> Values:
    """The correlation of the outputs at two positions that have the same input, over random inputs."""
    torch.manual_seed(0)
    network, x = FeedForward(SMALL).eval(), torch.randn(100, 1, SMALL.d_model).expand(-1, 2, -1)
    outputs = network(x)[..., 0]
    return {"document": [0.0], "right": [torch.corrcoef(outputs.T)[0, 1].item()]}


def inverted_bottleneck() -> Values:
    base = load_preset("vaswani-base").model
    return {"right": [base.d_ff // base.d_model]}


def deep_stacks() -> Values:
    pre, post = (measured("depth", "accuracy", name=name, layers=100) for name in ("pre-norm", "post-norm"))
    return {"document": [pre], "right": [post]}


# Models, training and decoding


def kinds_of_models() -> Values:
    return {"right": [sum(bool(family.layers) for family in FAMILIES.values())]}


def fixed_length() -> Values:
    model, text = small_model(), torch.arange(4, 7)[None]
    padded = nn.functional.pad(text, (0, 7))
    states = model.encode(text, everywhere(text)).states
    difference = (model.encode(padded, padded > 0).states[:, :3] - states).abs().max().item()
    return {"right": [states.size(1)], "difference": difference}


def encoder_output() -> Values:
    with meta_device():
        tokens = torch.ones(1, 3, dtype=torch.long)
        model = EncoderDecoder(load_preset("vaswani-base").model, 37_000, 37_000)
        return {"right": list(model.encode(tokens, everywhere(tokens)).states.shape[1:])}


def gpt(layers: int) -> int:
    """The parameters of a GPT-3 with a given number of layers (Brown et al. 2020, table 2.1)."""
    sizes: dict[str, int] = {"d_model": 12_288, "d_ff": 49_152, "heads": 96, "max_positions": 2048}
    config = replace(load_preset("gpt2").model, decoder_layers=layers, **sizes)
    return count_without_building(lambda: LanguageModel(config, 50_257)).total


def layers_of_gpt_3() -> Values:
    layer = gpt(2) - gpt(1)
    rest = gpt(1) - layer
    size, thousand = (rest + layers * layer for layers in (96, 1000))
    return {
        "right": [round((175e9 - rest) / layer)],
        "billions": size / 1e9,
        "thousand": thousand / 1e9,
        "hundred_millions": size / 1e8,  # as Chinese counts
        "trillions": thousand / 1e12,
    }


def published_layers() -> Values:
    paper, *berts = (load_preset(name).model for name in ("vaswani-base", "bert-base", "bert-large"))
    gpts = (load_preset(name).model.decoder_layers for name in ("gpt2", "gpt2-xl"))
    layers = [paper.encoder_layers, paper.decoder_layers, *(bert.encoder_layers for bert in berts), *gpts]
    return {"right": [*layers, *layers_of_gpt_3()["right"]]}


def layers_of_a_prototype() -> Values:
    return {"right": [load_preset("tiny").model.encoder_layers]}


def numbers_of_heads() -> Values:
    return {"right": [load_preset(f"vaswani-{name}").model.heads for name in ("base", "big")]}


def heads_times_size() -> Values:
    base, narrow = (load_preset(f"vaswani-{name}").model for name in ("base", "B-dk16"))
    assert narrow.d_k is not None
    return {"document": [base.d_model], "right": [narrow.heads * narrow.d_k]}


def share_of_feed_forward_networks() -> Values:
    base = load_preset("vaswani-base").model
    counts = count_without_building(lambda: EncoderDecoder(base, 37_000, 37_000)).weights
    # A GPT has the blocks of an encoder.
    encoder = count_without_building(lambda: LanguageModel(replace(base, family="decoder"), 9)).weights
    gpt_2 = count_without_building(lambda: LanguageModel(load_preset("gpt2").model, 50_257))

    def share(weights: dict[str, int], *others: str) -> float:
        return weights["feed-forward"] / sum(weights[kind] for kind in ("feed-forward", "self-attention", *others))

    return {
        "right": [share(counts, "cross-attention", "embeddings")],
        "encoder": share(encoder),
        "stacks": share(counts, "cross-attention"),
        "gpt_2": gpt_2.weights["feed-forward"] / gpt_2.total,
    }


def parameters_of_small_models() -> Values:
    rows = [row for row in TABLE_3 if row.millions and row.name != "big"]
    text, code = (
        [convention.count(load_preset(f"vaswani-{row.name}").model) / 1e6 for row in rows] for convention in CONVENTIONS
    )
    return {
        "document": [str(row.millions) for row in rows],
        "right": text,
        "matches": sum(map(same, [str(row.millions) for row in rows], code)),
        "vocab": CONVENTIONS[1].vocab,
    }


def parameters_of_big() -> Values:
    big = load_preset("vaswani-big").model
    text, code = (convention.count(big) for convention in CONVENTIONS)
    others = text - CONVENTIONS[0].vocab * big.d_model
    rows = [math.ceil((212.5e6 - others) / big.d_model), math.floor((213.5e6 - others) / big.d_model)]
    return {"right": [text / 1e6], "code": code / 1e6, "rows": rows}


def row_of_d_k_16() -> Values:
    [name] = [row.name for row in TABLE_3 if row.changes.get("model", {}).get("d_k") == 16]
    return {"right": [name[0]]}


def french_bleu() -> Values:
    return {"right": [EXAMPLES["french_bleu_of_table_2"]]}


def gain_over_ensembles() -> Values:
    return {"right": [EXAMPLES["german_bleu"] - max(EXAMPLES["german_bleu_of_ensembles"])]}


def cost_of_training(hours: list[float]) -> Values:
    """Eight P100 for some hours, at the 9.5 TFLOP/s that the paper assumes."""
    return {"right": [8 * 9.5e12 * 3600 * duration for duration in hours]}


def counted_operations(name: str) -> int:
    """The operations of all updates of a preset, with 1,000 pairs of 25 and 25 tokens in a batch."""
    recipe = load_preset(name)
    with meta_device():
        model, tokens = EncoderDecoder(recipe.model, 37_000, 37_000), torch.ones(1000, 25, dtype=torch.long)
        mask = everywhere(tokens)
        with torch.enable_grad():
            operations = count_flops(lambda: model(tokens, mask, tokens, mask).sum().backward())
    assert recipe.train.max_updates is not None
    return operations * recipe.train.max_updates


def operations_of_training() -> Values:
    return {"right": [float(counted_operations(name)) for name in ("vaswani-base", "vaswani-big")]}


def dearer_systems() -> Values:
    big, german = EXAMPLES["cost_of_big"], EXAMPLES["german_costs"]
    french = EXAMPLES["french_costs"]
    return {
        "document": [len(french)],
        "right": [sum(cost > big for cost in french)],
        "german": sum(cost > big for cost in german),
        "german_systems": len(german),
    }


def speed_by_cost() -> Values:
    return {"right": [EXAMPLES["cost_of_gnmt"] / EXAMPLES["cost_of_base"]]}


def pairs_of_an_update() -> Values:
    """The pairs in an update of the base model, if all are as long as the preset allows."""
    recipe = load_preset("vaswani-base")
    tokens = recipe.train.batch_tokens * recipe.train.accumulate
    return {"right": [tokens // recipe.data.filters.max_tokens], "tokens": tokens}


def input_of_the_decoder() -> Values:
    target = torch.tensor([[EOS + 1, EOS + 2, EOS + 3, EOS]])
    names = dict(zip(range(EOS + 1, EOS + 4), EXAMPLES["translation"].split(), strict=True)) | {BOS: "<bos>"}
    batch = pair_batch(target, everywhere(target), target, CPU)
    return {"right": [" ".join(names[token] for token in batch.target_in[0, :3].tolist())]}


def effect_of_the_first_token() -> Values:
    """Change of the last state of an RNN, and of a feed-forward network, when the first of three tokens is replaced."""
    torch.manual_seed(0)
    layer, network = RecurrentLayer(RecurrentConfig(cell="elman", d_model=8), 8, 1), FeedForward(ModelConfig(d_model=8))
    x = torch.randn(3, 8)
    changed = torch.cat([-x[:1], x[1:]])
    states = [layer(tokens, torch.ones(3, dtype=torch.long), layer.begin(1))[0][-1] for tokens in (x, changed)]
    outputs = [network.eval()(tokens[None])[0, -1] for tokens in (x, changed)]
    return {
        "document": [(outputs[0] - outputs[1]).abs().max().item()],
        "right": [(states[0] - states[1]).abs().max().item()],
    }


class WaitingState:
    """A decoding state that counts its steps, and never writes <eos>."""

    def __init__(self) -> None:
        self.begin, self.steps = torch.tensor([BOS]), 0

    def step(self, tokens: Tensor) -> Tensor:
        self.steps += 1
        return nn.functional.one_hot(torch.full_like(tokens, EOS + 1), EOS + 2).float()

    def select(self, rows: Tensor) -> None:
        del rows


def steps_of_decoding() -> Values:
    state = WaitingState()
    greedy_search(state, [50], DecodeConfig(beam=1))
    return {"right": [state.steps]}


def multiply_adds(call: Callable[[], object]) -> int:
    return count_flops(call) // 2


def cost_of_an_encoder_layer() -> Values:
    length, config = 50, load_preset("vaswani-base").model
    stack, x = Stack(config, 1, POSITIONS["none"](config, causal=False)).eval(), torch.randn(1, length, config.d_model)
    mask = AttentionMask(torch.ones(1, length, dtype=torch.bool), length, causal=False)
    return {
        "document": [length**2 * config.d_model],
        "right": [multiply_adds(lambda: stack(x, mask))],
        "equal": 6 * config.d_model,
    }


def attention_and_recurrence() -> Values:
    length, width = 50, 512
    x = torch.randn(length, width)
    layer = RecurrentLayer(RecurrentConfig(cell="elman", d_model=width), width, 1)
    steps = torch.ones(length, dtype=torch.long)
    recurrence = multiply_adds(lambda: layer(x, steps, layer.begin(1)))
    products = multiply_adds(lambda: attention(x, x, x))
    projections = 4 * length * width**2  # of queries, keys, values and the output
    return {
        "document": [1.0],
        "right": [products / recurrence],
        "products": products,
        "recurrence": recurrence,
        "whole": products + projections,
    }


def steps_between_ends(direct: Tensor) -> int:
    """The number of steps from the first token to the last; `direct` has the connections of one step."""
    reached, steps = direct, 1
    while not reached[-1, 0]:
        reached, steps = (reached.int() @ direct.int()) > 0, steps + 1
    return steps


def path_lengths() -> Values:
    length = 50
    neighbours = causal_mask(length, length, CPU).triu(-1)
    ends = [steps_between_ends(direct) for direct in (neighbours, torch.ones(length, length, dtype=torch.bool))]
    return {"document": [length - 1, 1], "right": ends}


def effect_of_a_later_token() -> Values:
    """Change of the first state of a BERT, and of a GPT, when the last of five tokens is replaced."""
    torch.manual_seed(0)
    text = torch.arange(4, 9)[None]
    other = text.clone()
    other[0, -1] = 9
    changes = []
    for family, backbone in (("decoder", DecoderOnly), ("encoder", EncoderOnly)):
        config = replace(SMALL, family=family)
        model = backbone(config, Embedding(23, config)).eval()
        first, second = (model(tokens, everywhere(tokens))[0, 0] for tokens in (text, other))
        changes.append((first - second).abs().max().item())
    return {"document": changes[:1], "right": changes[1:]}


def longest_input() -> Values:
    limit = load_preset("bert-base").model.max_positions
    tokens = torch.ones(1, limit + 1, dtype=torch.long)
    return {"document": [limit], "right": [small_model().encode(tokens, everywhere(tokens)).states.size(1)]}


def copied_beyond_the_trained_length() -> Values:
    trained, beyond = (measured("distance", "copy", name="Transformer", distance=distance) for distance in (16, 32))
    return {"right": [beyond], "trained": trained}


# Word vectors, recurrent networks, images and audio


def nearest_word() -> Values:
    before, after = example("vectors_before"), example("vectors")
    names = list(EXAMPLES["vectors"])

    def distances(vectors: Tensor) -> dict[str, float]:
        return {name: (vectors[1] - vectors[names.index(name)]).norm().item() for name in ("chi", "li")}

    first, last = distances(before), distances(after)
    return {"document": ["chi"], "right": [min(last, key=last.__getitem__)], "before": first, "after": last}


def swapped_words() -> Values:
    """Change of the mean state of a text when its words are swapped, without and with positions."""
    text = torch.tensor([[4, 5, 6, 7]])
    models = [small_model(positions=positions) for positions in ("none", "sinusoidal")]
    means = [[model.encode(x, everywhere(x)).states.mean(1) for x in (text, text.flip(1))] for model in models]
    bag, ordered = ((first - second).abs().max().item() for first, second in means)
    return {"document": [bag], "right": [ordered]}


def gradient_of_an_lstm() -> Values:
    lstm, rnn = (measured("gradients", "ratio", name=name) for name in ("LSTM", "RNN"))
    return {"document": [0.0], "right": [lstm], "rnn": rnn}


def state_of_an_rnn() -> Values:
    """The second state of heedful's RNN, and that of a network that reads its output instead of its state."""
    torch.manual_seed(0)
    layer, output = RecurrentLayer(RecurrentConfig(cell="elman", d_model=3), 3, 1), nn.Linear(3, 3)
    x = torch.randn(2, 3)
    states = layer(x, torch.ones(2, dtype=torch.long), layer.begin(1))[0]
    weights = dict(layer.rnn.named_parameters())

    def second(previous: Tensor) -> Tensor:
        read = nn.functional.linear(x[1], weights["weight_ih_l0"], weights["bias_ih_l0"])
        return (read + nn.functional.linear(previous, weights["weight_hh_l0"], weights["bias_hh_l0"])).tanh()

    jordan, elman = second(output(states[0]).softmax(-1)), second(states[0])
    return {
        "document": [0.0],
        "right": [(jordan - states[1]).abs().max().item()],
        "elman": (elman - states[1]).abs().max().item(),
    }


def king_and_queen() -> Values:
    return {"right": [nn.functional.cosine_similarity(example("king"), example("queen"), dim=0).item()]}


def patches_of_an_image() -> Values:
    return {"right": [patchify(torch.empty(1, 224, 224, 3), 16).flatten(1, 2).size(1)]}


def frames_of_ten_seconds() -> Values:
    audio = AudioConfig(features="samples", hop=320, stem="linear")  # 20 ms at 16 kHz
    return {"right": [audio.frames(10 * audio.rate)]}
