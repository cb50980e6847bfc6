"""`heedful encode` and `heedful search` take a BERT of one's own."""

import subprocess
import sys

import torch
from invocation import invoke

from heedful.architectures import MaskedLanguageModel, weights
from heedful.checkpoint import write_model
from heedful.config.schema import DataConfig, Recipe
from heedful.text.tokenizer_pair import TokenizerPair
from subjects import BERT_SHAPE, TOKENIZER

TEXTS = ["the old dog", "two women read a book .", "the"]


def test_the_commands_for_vectors_take_a_bert(tmp_path):
    torch.manual_seed(1)
    model = MaskedLanguageModel(BERT_SHAPE, len(TOKENIZER), pairs=True)
    recipe = Recipe(task="masked_lm", model=BERT_SHAPE, data=DataConfig(max_length=31))
    write_model(tmp_path / "bert", recipe, TokenizerPair(TOKENIZER, TOKENIZER), weights(model))
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    options = ("--corpus", tmp_path / "texts.txt", "--model", tmp_path / "bert", "--count", "1")
    assert TEXTS[1] in invoke("search", TEXTS[1], *options).stdout
    assert len(invoke("encode", "--model", tmp_path / "bert", *TEXTS).stdout.splitlines()) == len(TEXTS)

    # A warning that the library logs begins as the command's own.
    command = [sys.executable, "-m", "heedful", "encode", "--model", str(tmp_path / "bert"), TEXTS[0]]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    [warning] = [line for line in done.stderr.splitlines() if "not for sentence vectors" in line]
    assert warning.startswith(f"heedful: {tmp_path}/bert was trained for the task")
