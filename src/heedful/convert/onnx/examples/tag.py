"""Tag each word of sentences whose words are separated by spaces: python run.py "Ada lives in London ."."""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import tokenizers

FOLDER = Path(__file__).parent
CONFIG = json.loads((FOLDER / "config.json").read_text(encoding="utf-8"))
TOKENIZER = tokenizers.Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
TOKENIZER.enable_truncation(CONFIG["max_tokens"])
TOKENIZER.enable_padding(pad_id=CONFIG["pad_token_id"])
MODEL = onnxruntime.InferenceSession(FOLDER / "model.onnx")
FIELDS = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}


def predict(sentences: list[list[str]]) -> list[list[str]]:
    """Return the most probable tag of each word of each sentence."""
    return [[CONFIG["labels"][tag] for tag in logits.argmax(1)] for logits in map(word_logits, sentences)]


def word_logits(words: list[str]) -> np.ndarray:
    row = TOKENIZER.encode(" ".join(words))
    names = [each.name for each in MODEL.get_inputs()]
    inputs = {name: np.array([getattr(row, FIELDS[name])]) for name in names}
    [[logits]] = MODEL.run(None, inputs)
    # The character at which each word begins; there is one space between words.
    begins = np.cumsum([0, *(len(word) + 1 for word in words)])
    indices = np.zeros(len(words), np.int64)  # the first token of each word or, in a causal model, the last
    tokens = [(index, end) for index, (begin, end) in enumerate(row.offsets) if end > begin]
    # The last assignment counts: in reversed order, this is the first token of a word.
    for index, end in tokens if CONFIG["causal"] else reversed(tokens):
        word = np.searchsorted(begins, end) - 1
        if end != begins[word + 1]:  # otherwise, the token is only the space after a word
            indices[word] = index
    return logits[indices]


if __name__ == "__main__":
    sentences = [sentence.split() for sentence in sys.argv[1:]]
    for words, tags in zip(sentences, predict(sentences), strict=True):
        print(" ".join(f"{word}/{tag}" for word, tag in zip(words, tags, strict=True)))
