"""Small random models of Hugging Face, made on the spot: weights, settings and a tokenizer in a folder."""

import json
from pathlib import Path
from typing import Any

import torch
from torch import nn

from foreign_folders import (
    SPOKEN,
    write_bert,
    write_clip,
    write_gpt2,
    write_llama,
    write_marian,
    write_smollm,
    write_whisper,
)

BERT = {
    "hidden_size": 22,
    "intermediate_size": 37,
    "num_attention_heads": 2,
    "num_hidden_layers": 3,
    "max_position_embeddings": 53,
    "type_vocab_size": 2,
    "hidden_act": "gelu",
}
GPT2 = {"n_embd": 26, "n_inner": 41, "n_head": 2, "n_layer": 3, "n_positions": 59}
LLAMA = {
    "hidden_size": 24,
    "intermediate_size": 41,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 10,
    "num_hidden_layers": 3,
    "max_position_embeddings": 59,
    "rms_norm_eps": 1e-4,
}
CLIP_TEXT = {
    "hidden_size": 22,
    "intermediate_size": 37,
    "num_attention_heads": 2,
    "num_hidden_layers": 3,
    "max_position_embeddings": 61,
}
CLIP_VISION = {
    "hidden_size": 26,
    "intermediate_size": 41,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "image_size": 35,
    "patch_size": 7,
}
MARIAN = {
    "d_model": 34,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_ffn_dim": 43,
    "decoder_ffn_dim": 43,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "activation_function": "swish",
    "scale_embedding": True,
    "max_position_embeddings": 61,
}
WHISPER = {
    "d_model": 26,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_ffn_dim": 41,
    "decoder_ffn_dim": 41,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "num_mel_bins": 13,
    "max_source_positions": 50,
    "max_target_positions": 59,
}


def bert(folder: Path, architecture: str = "BertForPreTraining", **settings: Any) -> nn.Module:
    """A model of this class, saved in the folder."""
    write_bert(folder)
    rows = len((folder / "vocab.txt").read_text().splitlines())
    return _saved(architecture, "BertConfig", folder, 0.2, BERT | {"vocab_size": rows} | settings)


def gpt2(folder: Path, architecture: str = "GPT2LMHeadModel", **settings: Any) -> nn.Module:
    write_gpt2(folder)
    vocabulary = json.loads((folder / "vocab.json").read_text())
    end = vocabulary["<|endoftext|>"]
    ends = {"vocab_size": len(vocabulary), "bos_token_id": end, "eos_token_id": end}
    return _saved(architecture, "GPT2Config", folder, 0.3, GPT2 | ends | settings)


def llama(folder: Path, kind: str = "llama", **settings: Any) -> nn.Module:
    """A Llama with the tokenizer of Llama 2 ("llama"), or byte-level BPE with a pre-tokenizer such as "smollm"."""
    if kind == "llama":
        write_llama(folder)
    else:
        write_smollm(folder, kind)
    ids = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    ends = ("<s>", "</s>") if kind == "llama" else ("<|endoftext|>", "<|endoftext|>")
    rows = {"vocab_size": len(ids), "bos_token_id": ids[ends[0]], "eos_token_id": ids[ends[1]]}
    return _saved("LlamaForCausalLM", "LlamaConfig", folder, 0.3, LLAMA | rows | settings)


def marian(folder: Path, **settings: Any) -> nn.Module:
    write_marian(folder)
    names = json.loads((folder / "vocab.json").read_text())
    ids = {"pad_token_id": names["<pad>"], "eos_token_id": names["</s>"], "decoder_start_token_id": names["<pad>"]}
    settings = MARIAN | ids | {"vocab_size": len(names), "forced_eos_token_id": None} | settings
    return _saved("MarianMTModel", "MarianConfig", folder, 0.3, settings)


def clip(folder: Path, text: dict[str, Any] | None = None, **settings: Any) -> nn.Module:
    """A model of images and texts; `settings` are of both encoders, `text` of that of texts only."""
    write_clip(folder)
    names = json.loads((folder / "vocab.json").read_text())
    begin, end = names["<|startoftext|>"], names["<|endoftext|>"]
    rows = {"vocab_size": len(names), "bos_token_id": begin, "eos_token_id": end, "pad_token_id": end}
    tables = {
        "text_config": CLIP_TEXT | rows | settings | (text or {}),
        "vision_config": CLIP_VISION | settings,
        "projection_dim": 19,
    }
    return _saved("CLIPModel", "CLIPConfig", folder, 0.3, tables)


def whisper(folder: Path, **settings: Any) -> nn.Module:
    """A Whisper that reads one second, with its settings for generating and for audio."""
    names = write_whisper(folder, times=WHISPER["max_source_positions"] + 1)
    ids = {name: i for i, name in enumerate(names)}
    end = ids["<|endoftext|>"]
    special = {"pad_token_id": end, "bos_token_id": end, "eos_token_id": end}
    special |= {"decoder_start_token_id": ids["<|startoftranscript|>"], "vocab_size": len(names)}
    model = _saved("WhisperForConditionalGeneration", "WhisperConfig", folder, 0.3, WHISPER | special | settings)
    generation = json.loads((folder / "generation_config.json").read_text()) | {
        "suppress_tokens": [3, 7, ids["<|startoflm|>"], ids["<|startofprev|>"]],
        "begin_suppress_tokens": [ids["Ġ"], end],
        "is_multilingual": True,
        "lang_to_id": {f"<|{code}|>": ids[f"<|{code}|>"] for code in SPOKEN},
        "no_timestamps_token_id": ids["<|notimestamps|>"],
    }
    (folder / "generation_config.json").write_text(json.dumps(generation))
    sound = {"feature_size": 13, "sampling_rate": 16_000, "hop_length": 160, "n_fft": 400, "chunk_length": 1}
    (folder / "preprocessor_config.json").write_text(json.dumps(sound))
    return model


def _saved(architecture: str, config: str, folder: Path, std: float, settings: dict[str, Any]) -> nn.Module:
    import transformers

    torch.manual_seed(7)
    model = getattr(transformers, architecture)(getattr(transformers, config)(**settings)).eval()
    for parameter in model.parameters():
        if parameter.requires_grad:  # Marian's positions are not trained
            draw = torch.randn_like(parameter)
            parameter.data = 1 + 0.1 * draw if parameter.ndim == 1 and parameter.data.eq(1).all() else std * draw
    if architecture == "MarianMTModel":
        model.final_logits_bias.normal_()
    if architecture in ("GPT2LMHeadModel", "LlamaForCausalLM"):
        model.lm_head.weight.data[settings["eos_token_id"]] *= 3  # so that texts end at many lengths
    if architecture == "WhisperForConditionalGeneration":
        model.model.encoder.layer_norm.weight.data *= 7  # so that what is written depends on what is heard
    model.save_pretrained(folder)
    return model
