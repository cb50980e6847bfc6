"""The right values of tokens, positions, attention and masks, one function for each `computation` of rows.toml."""

import math

import torch
from errata_examples import EXAMPLES, Values, attention, everywhere, example, measured, small_model
from torch import Tensor, nn

from heedful.config.load import load_preset
from heedful.config.schema import ModelConfig
from heedful.nn.attention import Attention, scaled_scores
from heedful.nn.embedding import Embedding
from heedful.nn.masks import causal_mask
from heedful.nn.positions import sinusoids
from heedful.tasks.parts.sequence_to_sequence import pair_batch
from heedful.text.tokenizer import BOS, EOS

CPU = torch.device("cpu")

# Tokens, embeddings and positions


def one_hot_product() -> Values:
    row, width = torch.empty(1, 100_000, device="meta"), load_preset("vaswani-base").model.d_model
    printed, matrix = torch.empty(100_000, 1, device="meta"), torch.empty(100_000, width, device="meta")
    return {"document": list((row @ printed).shape), "right": list((row @ matrix).shape)}


@torch.enable_grad()
def gradient_of_look_up() -> Values:
    torch.manual_seed(0)
    embedding, token, weights = Embedding(1000, ModelConfig(d_model=512)), torch.tensor([[345]]), torch.randn(512)
    matrix = embedding.weight.detach().requires_grad_()
    product = nn.functional.one_hot(token, 1000).float() @ matrix * embedding.scale
    [by_row] = torch.autograd.grad((embedding(token) @ weights).sum(), embedding.weight)
    [by_product] = torch.autograd.grad((product @ weights).sum(), matrix)
    return {"right": [by_row.count_nonzero().item()], "difference": (by_row - by_product).abs().max().item()}


def initial_vector() -> Values:
    vector, deviation = example("initial_vector"), load_preset("vaswani-base").model.d_model ** -0.5
    variance = float(EXAMPLES["initial_variance"])
    return {
        "right": [vector.square().mean().item()],
        "deviations": (vector[-1] / variance**0.5).item(),
        "deviation": deviation,
    }


def position_formula() -> Values:
    angles = [1 / 10_000 ** (2 * i / 4) for i in range(4)]
    printed = [math.cos(angle) if i % 2 else math.sin(angle) for i, angle in enumerate(angles)]
    return {"document": printed, "right": sinusoids(2, 4)[1].tolist()}


def position(number: int) -> Values:
    return {"right": sinusoids(2, 4)[number].tolist(), "cosine": math.cos(0.01)}


def shifted_position() -> Values:
    """The largest error of PE(pos + k) as a rotation of PE(pos), for 512 dimensions, 500 positions and k = 50."""
    pairs = sinusoids(550, 512).double().unflatten(-1, (-1, 2))
    points = torch.complex(pairs[..., 1], pairs[..., 0])  # cosine and sine: a product rotates by the sum of the angles
    return {"document": [0.0], "right": [(points[:500] * points[50] - points[50:]).abs().max().item()]}


def beyond_the_trained_length() -> Values:
    trained, twice = (
        measured("longer-texts", "back", name="sinusoidal", first=last - 7, last=last) for last in (32, 64)
    )
    return {"document": [trained], "right": [twice]}


def first_position() -> Values:
    table = sinusoids(2, 4)
    return {"document": table[1].tolist(), "right": table[0].tolist(), "scale": Embedding(1, ModelConfig()).scale}


# Attention and masks


def scores_divided_by_8() -> Values:
    return {"right": (example("scores") / 64**0.5).flatten().tolist()}


def weights_of_i_eat_apples() -> Values:
    scores = example("scores")
    # A head of size 64 whose scores are those of the example.
    q, k = nn.functional.pad(scores, (0, 61)), torch.eye(3, 64, dtype=scores.dtype)
    weights = attention(q, k, torch.eye(3, dtype=scores.dtype))[1]
    spread = (weights.amax(1) - weights.amin(1)).max().item()
    return {"right": weights.flatten().tolist(), "rows": weights.tolist(), "spread": spread}


def equal_weights() -> Values:
    weights = weights_of_i_eat_apples()["rows"][2]
    return {"right": [weights[0], weights[2]]}


def weight_among_fewer_keys() -> Values:
    without_apples = (example("scores")[0, :2] / 8).softmax(0)
    return {"document": without_apples[:1].tolist(), "right": weights_of_i_eat_apples()["rows"][0][:1]}


def size_of_a_head() -> Values:
    base = load_preset("vaswani-base").model
    return {"right": [base.d_model // base.heads]}


def query_matrices() -> Values:
    one, all_heads = (Attention(ModelConfig(d_model=512, heads=heads, d_k=64)).q.weight for heads in (1, 8))
    return {"document": [8 * one.numel()], "right": [all_heads.numel()], "one": one.T.shape, "all": all_heads.T.shape}


def dot_products_with_ai(vectors: str, words: list[int]) -> Values:
    return {"right": (example(vectors)[1] @ example(vectors)[words].T).tolist()}


def attention_of_ai(keys: list[int]) -> tuple[Tensor, Tensor]:
    """The output and the weights for "ai" by plain dot products, as in section 2.3."""
    words = example("vectors")
    output, weights = attention(words[1:2] * 3**0.5, words[keys], words[keys])  # the factor undoes the scaling
    return output[0], weights[0]


def weighted_sum_for_ai(part: int) -> Values:
    """The output (0) or the weights (1) of "ai", which attends to the three other words."""
    return {"right": attention_of_ai([0, 2, 3])[part].tolist()}


def own_key_of_ai() -> Values:
    return {"document": attention_of_ai([0, 2, 3])[1].tolist(), "right": attention_of_ai([0, 1, 2, 3])[1].tolist()}


def projected(matrix: str) -> Tensor:
    """The queries, keys or values of the four words, in section 3.2."""
    return example("vectors") @ example(matrix)


def projection(matrix: str, word: int) -> Values:
    return {"right": projected(matrix)[word].tolist()}


def score_of_ai_and_wo() -> Values:
    query, key = projected("W_Q")[1], projected("W_K")[0]
    return {"right": [(query @ key).item()], "printed_query": (example("vectors")[1] @ key).item()}


def scaled_score_of_ai_and_wo() -> Values:
    q, k, v = map(projected, ("W_Q", "W_K", "W_V"))
    output, weights = attention(q, k, v)
    scaled = scaled_scores(q[None, None], k[None, None])[0, 0, 1, 0].item()
    return {
        "document": score_of_ai_and_wo()["right"],
        "right": [scaled],
        "weights": weights[1].tolist(),
        "output": output[1].tolist(),
    }


def features_of_a_head() -> Values:
    x = torch.empty(5, 512)
    return {"document": [x[:, 0].numel() // len(x)], "right": [Attention(ModelConfig(d_model=512)).q.in_features]}


def keys_of_masked_attention() -> Values:
    model, counts = small_model(), []
    block = model.decoder.get_submodule("blocks.0.self_attention")
    block.get_submodule("k").register_forward_hook(lambda *args: counts.append(args[2].size(1)))
    source, target = torch.arange(4, 7)[None], torch.arange(4, 9)[None]
    model(source, everywhere(source), target, everywhere(target))
    return {"document": [source.size(1)], "right": counts}


def size_of_the_mask() -> Values:
    tokens = EXAMPLES["predicted"]
    return {
        "document": [len(EXAMPLES["sentence"].split())],
        "right": [len(causal_mask(len(tokens), len(tokens), CPU))],
    }


def first_row_of_the_mask() -> Values:
    names = dict(enumerate(EXAMPLES["predicted"], start=EOS + 1)) | {BOS: "<bos>", EOS: "<eos>"}
    target = torch.tensor([[*range(EOS + 1, EOS + 1 + len(EXAMPLES["predicted"])), EOS]])
    batch = pair_batch(target, everywhere(target), target, CPU)
    return {"right": [names[int(batch.target_in[0, 0])]]}


def visible_cells() -> Values:
    return {"right": [causal_mask(4, 4, CPU).sum().item()]}


def hidden_cells() -> Values:
    mask = causal_mask(4, 4, CPU)
    return {"document": [sum(j > i for i in range(4) for j in range(4))], "right": [(~mask).sum().item()]}


def connections() -> Values:
    return {"document": [4**2], "right": [causal_mask(4, 4, CPU).sum().item()]}


def score_variance(d_k: int) -> tuple[float, float]:
    """The variances of q.k and of heedful's scores, for components from N(0, 1)."""
    torch.manual_seed(0)
    q, k = torch.randn(2, 2**17, 1, 1, d_k)
    scores = scaled_scores(q, k)
    return (scores * d_k**0.5).var().item(), scores.var().item()


def variance_without_scaling() -> Values:
    products, scores = score_variance(64)
    return {"document": [products], "right": [scores]}


def variance_of_a_product() -> Values:
    products, scores = score_variance(64)
    return {"right": [products], "scaled": scores}


def two_scores() -> Values:
    scores = projected("W_Q") @ projected("W_K").T
    return {"document": [scores[0, 1].item()], "right": [scores[1, 0].item()]}


def doubled_input() -> Values:
    torch.manual_seed(0)
    x = torch.randn(5, 8)
    (once, _), (twice, _) = attention(x, x, x), attention(2 * x, 2 * x, 2 * x)
    (values, _) = attention(x, x, 2 * x)
    return {
        "document": [0.0],
        "right": [(twice - 2 * once).abs().max().item()],
        "linear": (values - 2 * once).abs().max().item(),
    }


def padding_without_a_mask() -> Values:
    model, text = small_model(), torch.arange(4, 9)[None]
    padded = nn.functional.pad(text, (0, 3))
    alone, masked, unmasked = (
        model.encode(tokens, mask).states[:, :5]
        for tokens, mask in ((text, everywhere(text)), (padded, padded > 0), (padded, everywhere(padded)))
    )
    right = [(unmasked - alone).abs().max().item()]
    return {"document": [0.0], "right": right, "masked": (masked - alone).abs().max().item()}


def score_over_positions() -> Values:
    products, positions = projected("W_Q")[1] * projected("W_K")[0], 2
    return {"document": [products[:positions].sum().item()], "right": scaled_score_of_ai_and_wo()["right"]}


def layers_that_give_keys() -> Values:
    model, states = small_model(encoder_layers=load_preset("vaswani-base").model.encoder_layers), []
    for block in model.encoder.blocks:
        block.register_forward_hook(lambda *args: states.append(args[2]))
    source = torch.arange(4, 9)[None]
    read = model.encode(source, everywhere(source)).states
    return {"right": [sum(torch.equal(read, state) for state in states)]}


def keys_from_the_input() -> Values:
    model, source = small_model(), torch.arange(4, 9)[None]
    encoded = model.encode(source, everywhere(source))
    project = model.decoder.get_submodule("blocks.0.cross_attention.k")
    [used, *_] = (keys.transpose(1, 2).flatten(2) for keys, _ in model.decoder.keys_values(encoded))
    from_input, from_output = project(model.source_embedding(source)), project(encoded.states)
    difference = (used - from_output).abs().max().item()
    return {"document": [0.0], "right": [(used - from_input).abs().max().item()], "output": difference}
