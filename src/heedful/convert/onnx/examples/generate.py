"""Continue each prompt by greedy search: python run.py "Once upon a time"."""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import tokenizers

FOLDER = Path(__file__).parent
CONFIG = json.loads((FOLDER / "config.json").read_text(encoding="utf-8"))
TOKENIZER = tokenizers.Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
MODEL = onnxruntime.InferenceSession(FOLDER / "model.onnx")


def predict(prompts: list[str], max_tokens: int = 50) -> list[list[int]]:
    """Return the token ids of the continuation of each prompt. An empty prompt begins a new document."""
    rows = [row.ids or [CONFIG["eos_token_id"]] for row in TOKENIZER.encode_batch(prompts)]
    # Rows are padded on the left, so that the last column has the last token of each prompt.
    padding = [max(map(len, rows)) - len(row) for row in rows]
    ids = np.array([[CONFIG["pad_token_id"]] * count + row for count, row in zip(padding, rows, strict=True)])
    mask = np.array([[0] * count + [1] * len(row) for count, row in zip(padding, rows, strict=True)])
    # (layers, batch, heads, 0, size): the cache is empty before the first step.
    cache = (CONFIG["layers"], len(prompts), CONFIG["kv_heads"], 0)
    keys, values = (np.zeros((*cache, CONFIG[size]), np.float32) for size in ("key_size", "value_size"))
    outputs = np.zeros((len(prompts), 0), np.int64)
    ended = outputs == CONFIG["eos_token_id"]
    for _ in range(min(max_tokens, CONFIG["max_tokens"] - ids.shape[1])):
        inputs = {"input_ids": ids, "attention_mask": mask, "past_keys": keys, "past_values": values}
        logits, keys, values = MODEL.run(None, inputs)
        logits[:, :, CONFIG["suppressed_token_ids"]] = -np.inf
        # A step reads only the new tokens: the keys and values of the earlier ones are in the cache.
        ids = logits[:, -1].argmax(-1)[:, None]
        outputs, mask = np.append(outputs, ids, axis=1), np.append(mask, np.ones_like(ids), axis=1)
        ended = outputs == CONFIG["eos_token_id"]
        if ended.any(1).all():
            break
    # A row that ended earlier than others has further tokens after its <eos>.
    lengths = np.where(ended.any(1), ended.argmax(1), outputs.shape[1])
    return [row[:length].tolist() for row, length in zip(outputs, lengths, strict=True)]


if __name__ == "__main__":
    for prompt, output in zip(sys.argv[1:], predict(sys.argv[1:]), strict=True):
        print(TOKENIZER.decode(TOKENIZER.encode(prompt).ids + output))
