"""Write the weights of one of heedful's translators as a model of CTranslate2, whose words are the ids: MODEL OUT

Runs in CTranslate2's own environment (see `environments.sh`), where heedful is not installed.
"""

import json
import sys
from pathlib import Path

import numpy as np
from ctranslate2.specs import TransformerSpec, common_spec
from safetensors.numpy import load_file


def main(model: Path, out: Path) -> None:
    config = json.loads((model / "recipe.json").read_text(encoding="utf-8"))["recipe"]["model"]
    weights = load_file(model / "model.safetensors")
    table = weights["source_embedding.weight"]
    spec = TransformerSpec.from_config(
        (config["encoder_layers"], config["decoder_layers"]),
        config["heads"],
        pre_norm=config["norm"] == "pre",
        activation=common_spec.Activation.RELU,
    )
    for stack, name in ((spec.encoder, "encoder"), (spec.decoder, "decoder")):
        stack.position_encodings.encodings = sinusoids(config["max_positions"], config["d_model"])
        stack.scale_embeddings = True
        if config["norm"] == "pre":
            norm(stack.layer_norm, weights, f"{name}.norm")
        for i, layer in enumerate(stack.layer):
            block = f"{name}.blocks.{i}"
            fused(layer.self_attention.linear[0], weights, f"{block}.self_attention", "qkv")
            linear(layer.self_attention.linear[1], weights, f"{block}.self_attention.out")
            norm(layer.self_attention.layer_norm, weights, f"{block}.self_residual.norm")
            if name == "decoder":
                fused(layer.attention.linear[0], weights, f"{block}.cross_attention", "q")
                fused(layer.attention.linear[1], weights, f"{block}.cross_attention", "kv")
                linear(layer.attention.linear[2], weights, f"{block}.cross_attention.out")
                norm(layer.attention.layer_norm, weights, f"{block}.cross_residual.norm")
            linear(layer.ffn.linear_0, weights, f"{block}.feed_forward.up")
            linear(layer.ffn.linear_1, weights, f"{block}.feed_forward.down")
            norm(layer.ffn.layer_norm, weights, f"{block}.feed_residual.norm")
    spec.encoder.embeddings[0].weight = table
    spec.decoder.embeddings.weight = weights.get("target_embedding.weight", table)
    spec.decoder.projection.weight = weights.get("output.weight", spec.decoder.embeddings.weight)
    spec.config.add_source_eos = True
    spec.config.decoder_start_token = "2"
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = "2", "3", "1"
    words = [str(i) for i in range(len(table))]
    spec.register_source_vocabulary(words)
    spec.register_target_vocabulary(words)
    spec.validate()
    spec.optimize(quantization=None)
    out.mkdir(parents=True, exist_ok=True)
    spec.save(str(out))


def linear(spec, weights, name: str) -> None:
    fused(spec, {f"{name}.weight": weights[f"{name}.weight"], f"{name}.bias": weights[f"{name}.bias"]}, name, None)


def fused(spec, weights, name: str, parts: str | None) -> None:
    names = [name] if parts is None else [f"{name}.{part}" for part in parts]
    spec.weight = np.concatenate([weights[f"{n}.weight"] for n in names])
    spec.bias = np.concatenate([weights[f"{n}.bias"] for n in names])


def norm(spec, weights, name: str) -> None:
    spec.gamma, spec.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]


def sinusoids(length: int, d_model: int) -> np.ndarray:
    angle = np.arange(length)[:, None] * 10000.0 ** (-np.arange(0, d_model, 2) / d_model)
    return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(length, d_model).astype(np.float32)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
