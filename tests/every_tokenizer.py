"""A tokenizer of each kind that can be trained, and of each foreign one that can be adopted, for tests of all."""

from functools import cache
from pathlib import Path

import pytest

from foreign_folders import write_bert, write_gpt2, write_marian, write_unigram
from heedful.config.schema import TokenizerConfig
from heedful.text.hugging_face import from_hugging_face
from heedful.text.tokenizer import Tokenizer
from heedful.text.training import train_tokenizer

KINDS = ("word", "character", "byte", "bpe", "unigram", "wordpiece")
FOREIGN = {"bert": write_bert, "gpt2": write_gpt2, "unigram": write_unigram, "marian": write_marian}
LINES = ["The cat sits on the mat, and the other cat sat there.", "Äpfel schmecken süß.", "我吃苹果。"] * 5

every_tokenizer = pytest.mark.parametrize("name", [*KINDS, *FOREIGN])


@cache
def trained(kind: str) -> Tokenizer:
    return train_tokenizer(LINES, TokenizerConfig(kind=kind, vocab_size=383))


def all_tokenizers(folder: Path) -> dict[str, Tokenizer]:
    found = {name: from_hugging_face(write(folder / name))[0] for name, write in FOREIGN.items()}
    return found | {kind: trained(kind) for kind in KINDS}
