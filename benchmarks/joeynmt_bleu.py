"""BLEU of JoeyNMT's recurrent translator on a recipe's text: python benchmarks/joeynmt_bleu.py RECIPE --data DATA

The recipe names a recurrent model of heedful's. JoeyNMT gets its text in heedful's own pieces, each as a word, and the
same vocabulary; cell, sizes, attention, dropout, label smoothing and search are the recipe's as well. JoeyNMT trains
for the minutes given, with a rate that falls as the inverse square root, and keeps the checkpoint of the best
validation loss; its translations of the test set are scored as `heedful evaluate --tokenised` does. JoeyNMT comes from
an environment of its own (--joeynmt PYTHON). The folder --out keeps what it made.
"""

import argparse
import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import record
from rich.console import Console

from heedful.architectures.recurrent.settings import RecurrentConfig
from heedful.config.load import load_recipe
from heedful.config.schema import Recipe
from heedful.data.readers.corpus import read_pairs
from heedful.data.stores import PairStore
from heedful.metrics import Scoring, score
from heedful.tasks.text_to_text import Translation

SPECIAL = {"unk": "<unk>", "pad": "<pad>", "bos": "<s>", "eos": "</s>"}


def pieces(ids: Iterable[int]) -> str:
    """Write token ids as words of letters and digits, which no tokenizer splits."""
    return " ".join(f"p{id}" for id in ids)


def ids(line: str) -> list[int]:
    """Read token ids from the words that `pieces` wrote; a special symbol of JoeyNMT's among them is left out."""
    return [int(word[1:]) for word in line.split() if word.startswith("p")]


def write_pairs(store: PairStore, stem: Path) -> None:
    """Write the sources and targets of a store without their ends of sentence, a sentence a line."""
    for side, row in (("src", store.source), ("trg", store.target)):
        lines = (pieces(row(index).tolist()[:-1]) for index in range(len(store)))
        stem.with_suffix(f".{side}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def settings(recipe: Recipe, model: RecurrentConfig, options: argparse.Namespace) -> dict[str, Any]:
    """Return JoeyNMT's configuration, after the recipe's."""
    half: dict[str, Any] = {"type": "recurrent", "rnn_type": model.cell, "num_layers": model.layers}
    half |= {"embeddings": {"embedding_dim": model.d_model, "scale": False}, "dropout": model.dropout}
    decoder = half | {"hidden_size": model.d_model, "hidden_dropout": model.dropout, "init_hidden": "bridge"}
    decoder |= {"attention": "bahdanau" if model.attention == "additive" else "luong", "input_feeding": True}
    side = {"level": "word", "max_length": 250, "voc_file": str(options.out / "vocabulary")}
    return {
        "name": recipe.name,
        "model_dir": str(options.out / "model"),
        "use_cuda": False,
        "random_seed": recipe.train.seed,
        "data": {
            "train": str(options.out / "train"),
            "dev": str(options.out / "valid"),
            "dataset_type": "plain",
            "src": side | {"lang": "src"},
            "trg": side | {"lang": "trg"},
            "special_symbols": {f"{name}_token": symbol for name, symbol in SPECIAL.items()},
        },
        "testing": {
            "beam_size": recipe.decode.beam,
            "beam_alpha": 1.0,
            "batch_size": 64,
            "batch_type": "sentence",
            "max_output_length": 100,
            "eval_metrics": ["bleu"],
            "sacrebleu_cfg": {"tokenize": "none"},
        },
        "training": {
            "optimizer": "adam",
            "learning_rate": options.lr,
            "learning_rate_min": 0.0,
            "learning_rate_warmup": 400,
            "scheduling": "warmupinversesquareroot",  # its "plateau" names an option that torch no longer has
            "clip_grad_norm": recipe.optimizer.clip_norm or 1.0,  # as in its own recipes
            "label_smoothing": recipe.train.label_smoothing,
            "normalization": "tokens",
            "batch_size": recipe.train.batch_tokens,
            "batch_type": "token",
            "epochs": 1000,
            "validation_freq": 400,
            "logging_freq": 50,
            "early_stopping_metric": "loss",
            "print_valid_sents": [0],
            "keep_best_ckpts": 1,
            "overwrite": True,
        },
        "model": {
            "initializer": "xavier_uniform",
            "embed_initializer": "xavier_uniform",
            "tied_embeddings": model.tie == "all",
            "tied_softmax": model.tie == "all",
            "encoder": half | {"hidden_size": model.d_model // 2, "bidirectional": model.bidirectional},
            "decoder": decoder,
        },
    }


def joeynmt(mode: str, options: argparse.Namespace, **more: Any) -> str:
    """Run JoeyNMT's command line on as many threads as asked, and return what it prints."""
    command = [options.joeynmt, "-m", "joeynmt", mode, options.out / "config.yaml"]
    threads = {"OMP_NUM_THREADS": str(options.threads), "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}
    flags = more.pop("flags", ())
    return subprocess.run(
        [*command, *flags], env=os.environ | threads, stdout=subprocess.PIPE, text=True, check=True, **more
    ).stdout


def main(options: argparse.Namespace) -> None:
    recipe = load_recipe(options.recipe, options.set, options.data)
    if not isinstance(recipe.model, RecurrentConfig) or recipe.data.test is None:
        raise SystemExit(f"{options.recipe}: needs a recurrent model and a [data.test]")
    task = Translation.prepare(recipe, options.out / "data", print)
    tokenizers = task.tokenizers
    (train,) = task.data.examples.train
    write_pairs(train, options.out / "train")
    write_pairs(task.data.examples.valid, options.out / "valid")
    vocabulary = [*SPECIAL.values(), *(pieces([id]) for id in range(len(tokenizers.source)))]
    (options.out / "vocabulary").write_text("".join(f"{word}\n" for word in vocabulary), encoding="utf-8")
    settings_file = options.out / "config.yaml"
    settings_file.write_text(json.dumps(settings(recipe, recipe.model, options), indent=1))  # JSON is YAML
    try:
        joeynmt("train", options, flags=["--skip-test"], timeout=options.minutes * 60)
    except subprocess.TimeoutExpired:
        print(f"JoeyNMT was stopped after {options.minutes} minutes")
    pairs = list(read_pairs(recipe.data.test, recipe.data))
    sources = "".join(f"{pieces(row)}\n" for row in tokenizers.source.encode_batch(pair.source for pair in pairs))
    outputs = joeynmt("translate", options, input=sources).splitlines()[-len(pairs) :]
    texts = [tokenizers.target.decode(ids(line)) for line in outputs]
    (options.out / "translations").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    scoring = Scoring(metrics=("tokenised-bleu",), language=recipe.data.target_language)
    (found,) = score(texts, [[pair.target for pair in pairs]], scoring)
    Console().print(f"{recipe.name}: JoeyNMT's BLEU, tokenised and lower-cased: {found.value:.2f}")
    facts = {"recipe": recipe.name, "settings": options.set, "lr": options.lr, "minutes": options.minutes}
    record.append(__file__, record.machine(options.threads) | facts | {"bleu": found.value})


if __name__ == "__main__":
    arguments = record.parser(__doc__)
    arguments.add_argument("recipe", type=Path)
    arguments.add_argument("--data", type=Path, required=True)
    arguments.add_argument("--joeynmt", required=True, help="the python of the environment with JoeyNMT")
    arguments.add_argument("--minutes", type=float, default=75, help="of training, its validation included")
    arguments.add_argument("--lr", type=float, default=1e-3)
    arguments.add_argument("--set", action="append", default=[])
    arguments.add_argument("--out", type=Path, default=Path("build/joeynmt-bleu"))
    main(arguments.parse_args())
