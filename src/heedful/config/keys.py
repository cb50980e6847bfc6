"""Dotted keys of a recipe: lists them, finds unknown ones, and suggests the keys that a user probably meant."""

import re
from collections.abc import Collection, Iterator
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from typing import Any, get_args, get_type_hints

from heedful.config.schema import ArchitectureConfig, ModelConfig, Recipe

# Names in other toolkits, which a search for similar spellings would miss.
_OTHER_NAMES = {
    "accum_count": "train.accumulate",
    "accumulate_grad_batches": "train.accumulate",
    "adam_betas": "optimizer.betas",
    "adam_epsilon": "optimizer.eps",
    "amp": "train.precision",
    "average_checkpoints": "train.average_last",
    "batch": "train.batch_tokens",
    "batch_size": "train.batch_tokens",
    "beam_size": "decode.beam",
    "best_checkpoint_metric": "train.best",
    "bf16": "train.precision",
    "block_size": "data.max_length",
    "checkpoint_activations": "train.activation_checkpointing",
    "clip": "optimizer.clip_norm",
    "context_length": "data.max_length",
    "cuda": "train.device",
    "dataloader_num_workers": "train.workers",
    "decay_method": "optimizer.schedule",
    "dim": "model.d_model",
    "dim_feedforward": "model.d_ff",
    "do_lower_case": "tokenizer.lowercase",
    "early_stopping": "train.patience",
    "early_stopping_patience": "train.patience",
    "emb_size": "model.d_model",
    "embed_dim": "model.d_model",
    "embedding_size": "model.d_model",
    "epoch": "train.max_epochs",
    "epochs": "train.max_epochs",
    "eval_every": "train.validate_every",
    "eval_interval": "train.validate_every",
    "eval_steps": "train.validate_every",
    "ffn_dim": "model.d_ff",
    "finetune_from_model": "train.start",
    "fp16": "train.precision",
    "from_pretrained": "train.start",
    "gpu": "train.device",
    "grad_clip": "optimizer.clip_norm",
    "gradient_accumulation_steps": "train.accumulate",
    "gradient_checkpointing": "train.activation_checkpointing",
    "gradient_clip_val": "optimizer.clip_norm",
    "hidden_size": "model.d_model",
    "init_from": "train.start",
    "intermediate_size": "model.d_ff",
    "joined_dictionary": "tokenizer.joint",
    "keep_checkpoint": "train.keep_last",
    "keep_last_epochs": "train.keep_last",
    "layers": "model.encoder_layers",
    "learning_rate": "optimizer.lr",
    "length_penalty": "decode.alpha",
    "lenpen": "decode.alpha",
    "log_interval": "train.log_every",
    "logging_steps": "train.log_every",
    "lower": "tokenizer.lowercase",
    "lr_scheduler": "optimizer.schedule",
    "lr_scheduler_type": "optimizer.schedule",
    "max_epoch": "train.max_epochs",
    "max_grad_norm": "optimizer.clip_norm",
    "max_iters": "train.max_updates",
    "max_len": "data.max_length",
    "max_len_b": "decode.max_extra",
    "max_length_b": "decode.max_extra",
    "max_new_tokens": "generate.max_tokens",
    "max_position_embeddings": "model.max_positions",
    "max_seq_len": "data.max_length",
    "max_seq_length": "data.max_length",
    "max_steps": "train.max_updates",
    "max_time": "train.max_minutes",
    "max_update": "train.max_updates",
    "metric_for_best_model": "train.best",
    "min_new_tokens": "generate.min_tokens",
    "minutes": "train.max_minutes",
    "mixed_precision": "train.precision",
    "mlm_probability": "masking.rate",
    "model_name_or_path": "train.start",
    "n_embd": "model.d_model",
    "n_epochs": "train.max_epochs",
    "n_head": "model.heads",
    "n_heads": "model.heads",
    "n_layer": "model.decoder_layers",
    "n_layers": "model.encoder_layers",
    "nbest": "decode.n_best",
    "nhead": "model.heads",
    "no_cuda": "train.device",
    "no_repeat_ngram_size": "generate.no_repeat_ngram",
    "num_attention_heads": "model.heads",
    "num_beams": "decode.beam",
    "num_epochs": "train.max_epochs",
    "num_heads": "model.heads",
    "num_hidden_layers": "model.encoder_layers",
    "num_layers": "model.encoder_layers",
    "num_return_sequences": "decode.n_best",
    "num_steps": "train.max_updates",
    "num_threads": "train.threads",
    "num_train_epochs": "train.max_epochs",
    "num_train_steps": "train.max_updates",
    "num_warmup_steps": "optimizer.warmup",
    "num_workers": "train.workers",
    "optim": "optimizer.name",
    "per_device_train_batch_size": "train.batch_tokens",
    "pretrained": "train.start",
    "report_every": "train.log_every",
    "save_checkpoint_steps": "train.save_every",
    "save_interval": "train.save_every",
    "save_interval_updates": "train.save_every",
    "save_steps": "train.save_every",
    "save_total_limit": "train.keep_last",
    "scheduler": "optimizer.schedule",
    "seq_len": "data.max_length",
    "share_embeddings": "model.tie",
    "share_vocab": "tokenizer.joint",
    "smoothing": "train.label_smoothing",
    "source_lang": "data.source_language",
    "src_lang": "data.source_language",
    "steps": "train.max_updates",
    "target_lang": "data.target_language",
    "temp": "generate.temperature",
    "tgt_lang": "data.target_language",
    "tie_embeddings": "model.tie",
    "tie_word_embeddings": "model.tie",
    "total_steps": "train.max_updates",
    "train_batch_size": "train.batch_tokens",
    "train_from": "train.start",
    "train_steps": "train.max_updates",
    "update_freq": "train.accumulate",
    "updates": "train.max_updates",
    "valid_steps": "train.validate_every",
    "validate_bleu": "train.validate_decoding",
    "validate_interval": "train.validate_every",
    "vocab": "tokenizer.vocab_size",
    "warmup_steps": "optimizer.warmup",
    "warmup_updates": "optimizer.warmup",
    "wd": "optimizer.weight_decay",
}


def table_of(hint: Any, options: type = ModelConfig) -> type | None:
    """Find the dataclass in a field's type, such as `CorpusConfig | None` or `tuple[CorpusConfig, ...]`.

    Args:
        hint: the type of the field.
        options: the dataclass of [model], which depends on the architecture.
    """
    found = next((part for part in (hint, *get_args(hint)) if isinstance(part, type) and is_dataclass(part)), None)
    return options if found is not None and issubclass(found, ArchitectureConfig) else found


def all_keys(options: type = ModelConfig, table: type = Recipe, prefix: str = "") -> Iterator[str]:
    """Iterate over every dotted key and table of a recipe; a list of tables is listed once, with the number 0."""
    hints = get_type_hints(table)
    for field in fields(table):
        hint = hints[field.name]
        yield f"{prefix}{field.name}"
        if inner := table_of(hint, options):
            index = "0." if Ellipsis in get_args(hint) else ""
            yield from all_keys(options, inner, f"{prefix}{field.name}.{index}")


def unknown_keys(values: Any, options: type = ModelConfig, table: type = Recipe, prefix: str = "") -> Iterator[str]:
    """Iterate over the dotted keys in `values` that a recipe does not have; `options` is the dataclass of [model]."""
    if isinstance(values, list):
        for index, item in enumerate(values):
            yield from unknown_keys(item, options, table, f"{prefix}{index}.")
    elif isinstance(values, dict):
        hints = get_type_hints(table)
        for key, value in values.items():
            if key not in hints:
                yield f"{prefix}{key}"
            elif inner := table_of(hints[key], options):
                yield from unknown_keys(value, options, inner, f"{prefix}{key}.")


def nearest(key: str, options: type = ModelConfig) -> list[str]:
    """Suggest the valid recipe keys that an unknown `key` most likely stands for, at most three.

    Keys of the same name in another table come first, then names in other toolkits, then similar spellings.
    """
    index = re.search(r"\.(\d+)\.", key)
    key = re.sub(r"\.\d+\.", ".0.", key)
    leaf = _leaf(key)
    known = list(all_keys(options))
    leaves = sorted({_leaf(other) for other in known})
    found = same_name(leaf, known)
    if not found:
        found = get_close_matches(key, known, n=1, cutoff=0.8)
    if not found:
        close = get_close_matches(leaf, leaves, n=1, cutoff=0.7)
        found = [other for other in known if _leaf(other) in close]
    return [other.replace(".0.", index[0] if index else ".0.") for other in found[:3]]


def same_name(name: str, known: Collection[str]) -> list[str]:
    """List the keys of this name, with or without the name of the table; else the one that has it in other toolkits."""
    found = [key for key in known if name in (key, _leaf(key))]
    other = _OTHER_NAMES.get(name)
    return found or ([other] if other is not None and other in known else [])


def siblings(key: str, options: type = ModelConfig) -> list[str]:
    """List the names that are valid in the table that contains `key`."""
    table = re.sub(r"\.\d+\b", ".0", key.rpartition(".")[0])
    start = f"{table}." if table else ""
    return [other[len(start) :] for other in all_keys(options) if re.fullmatch(re.escape(start) + r"[^.]+", other)]


def _leaf(key: str) -> str:
    return key.rpartition(".")[2]
