"""Predict a number for each text; the texts of a pair are separated by a tab: python run.py "A good film."."""

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


def predict(texts: list[str] | list[tuple[str, str]]) -> np.ndarray:
    """Return the predicted number for each text or pair of texts, in the unit of the labels."""
    rows = TOKENIZER.encode_batch(texts)
    names = [each.name for each in MODEL.get_inputs()]
    inputs = {name: np.array([getattr(row, FIELDS[name]) for row in rows]) for name in names}
    [scores] = MODEL.run(None, inputs)
    return scores[:, 0]


if __name__ == "__main__":
    texts = [tuple(text.split("\t")) if "\t" in text else text for text in sys.argv[1:]]
    for text, score in zip(sys.argv[1:], predict(texts), strict=True):
        print(text, f"{score:.4f}")
