"""Predict the words for each gap of a text: python run.py "The capital of France is [MASK]."."""

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


def predict(texts: list[str], count: int = 5) -> list[np.ndarray]:
    """Return the ids of the most probable tokens for each gap of each text, best first."""
    rows = TOKENIZER.encode_batch(texts)
    names = [each.name for each in MODEL.get_inputs()]
    inputs = {name: np.array([getattr(row, FIELDS[name]) for row in rows]) for name in names}
    [logits] = MODEL.run(None, inputs)
    logits[:, :, CONFIG["suppressed_token_ids"]] = -np.inf
    gaps = inputs["input_ids"] == CONFIG["mask_token_id"]
    return [np.argsort(-row[gap], axis=1)[:, :count] for row, gap in zip(logits, gaps, strict=True)]


if __name__ == "__main__":
    for text, gaps in zip(sys.argv[1:], predict(sys.argv[1:]), strict=True):
        for tokens in gaps:
            print(text, [TOKENIZER.decode([token]).strip() for token in tokens.tolist()])
