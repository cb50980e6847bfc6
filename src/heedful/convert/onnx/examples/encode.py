"""Compare the first text with each of the others by cosine similarity: python run.py "A cat." "A dog."."""

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


def predict(texts: list[str]) -> np.ndarray:
    """Return the vector of each text, scaled to length 1."""
    rows = TOKENIZER.encode_batch(texts)
    names = [each.name for each in MODEL.get_inputs()]
    inputs = {name: np.array([getattr(row, FIELDS[name]) for row in rows]) for name in names}
    [vectors] = MODEL.run(None, inputs)
    return vectors


if __name__ == "__main__":
    first, *others = predict(sys.argv[1:])
    for text, vector in zip(sys.argv[2:], others, strict=True):
        print(text, f"{first @ vector:.4f}")
