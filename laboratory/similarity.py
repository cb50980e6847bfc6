"""Do the states of different tokens become alike in deep layers? python laboratory/similarity.py [--help]

Dong et al. (2021) prove it for attention alone, and name what works against it: residual and feed-forward networks.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from models import BLUE, BROWN
from report import arguments, check, publish
from scenes_model import CONFIG, LAYERS, PAD, build, corpus, states_and_attention, trained
from torch import Tensor

from heedful.architectures.transformer.masked_models import MaskedLanguageModel
from heedful.config.schema import ModelConfig

TRAINING, MEASURED, UPDATES, DEPTH = 20_000, 200, 3_000, 24
EARLY = 4  # the layer at which states without residual connections are compared
DEEP = replace(CONFIG, encoder_layers=DEPTH)
NO_FEED_FORWARD = {"enc.*.ffn.out": torch.zeros_like}  # edits of a forward pass
RANDOM: dict[str, tuple[ModelConfig, Mapping[str, Callable[[Tensor], Tensor]] | None, str]] = {
    "no residual connections": (replace(DEEP, residual=False), None, "#a05195"),
    "post-norm": (replace(DEEP, norm="post"), None, BROWN),
    "no feed-forward networks": (DEEP, NO_FEED_FORWARD, "#3a7d44"),
    "pre-norm": (DEEP, None, BLUE),
}


def similarities(
    model: MaskedLanguageModel, tokens: Tensor, edits: Mapping[str, Callable[[Tensor], Tensor]] | None = None
) -> list[float]:
    """Return, for each layer, the mean cosine similarity of the states of two different words of a sentence."""
    states, _ = states_and_attention(model, tokens, edits)
    real = tokens != PAD
    pairs = real[:, :, None] & real[:, None] & (tokens[:, :, None] != tokens[:, None])
    units = (F.normalize(layer, dim=-1) for layer in states)
    return [float((unit @ unit.transpose(1, 2))[pairs].mean()) for unit in units]


def main() -> None:
    options = arguments(__doc__, seeds=3)
    data = corpus(500 if options.quick else TRAINING, MEASURED)
    tokens = data.batch(data.measured)
    updates = 2 if options.quick else UPDATES
    curves: dict[str, list[list[float]]] = {}
    for seed in range(options.seeds):
        for name, (config, edits, _) in RANDOM.items():
            model = build(data, seed, config)
            curves.setdefault(name, []).append(similarities(model, tokens, edits))
        curves.setdefault("before training", []).append(similarities(build(data, seed), tokens))
        curves.setdefault("after training", []).append(similarities(trained(data, seed, updates), tokens))

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
    for name, (_, _, colour) in RANDOM.items():
        left.plot(np.mean(curves[name], axis=0), label=name, color=colour)
    for name, style in (("before training", ":"), ("after training", "-")):
        right.plot(np.mean(curves[name], axis=0), label=name, color=BLUE, linestyle=style)
    left.set(title=f"{DEPTH} layers, random weights", xlabel="layer", ylabel="similarity of two words' states")
    right.set(title=f"{LAYERS} layers, pre-norm", xlabel="layer")
    for axes in (left, right):
        axes.legend(fontsize="small")

    def values(name: str, layer: int) -> list[float]:
        return [curve[layer] for curve in curves[name]]

    def difference(name: str, other: str) -> list[float]:
        """The similarities in the last layer of one model minus those of another."""
        return [one - two for one, two in zip(values(name, -1), values(other, -1), strict=True)]

    predictions = [
        check(
            "random", values("no residual connections", EARLY), least=0.99, name="no residual connections", layer=EARLY
        ),
        check("random", values("post-norm", DEPTH), least=0.99, name="post-norm", layer=DEPTH),
        check("random", values("pre-norm", DEPTH), least=0.5, most=0.95, name="pre-norm", layer=DEPTH),
        check("difference", difference("no feed-forward networks", "pre-norm"), least=0.02),
        check("trained", values("after training", LAYERS), most=0.5),
        check("training", difference("after training", "before training"), most=-0.1),
    ]
    publish("similarity", predictions, figure, options)


if __name__ == "__main__":
    main()
