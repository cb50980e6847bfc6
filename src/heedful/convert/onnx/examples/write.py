"""Write the output for each text, such as its translation, by greedy search: python run.py "Where is the station?"."""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import tokenizers

FOLDER = Path(__file__).parent
CONFIG = json.loads((FOLDER / "config.json").read_text(encoding="utf-8"))
SOURCE = tokenizers.Tokenizer.from_file(str(FOLDER / CONFIG["source_tokenizer"]))
TARGET = tokenizers.Tokenizer.from_file(str(FOLDER / CONFIG["target_tokenizer"]))
SOURCE.enable_truncation(CONFIG["max_source_tokens"])
SOURCE.enable_padding(pad_id=CONFIG["pad_token_id"])
ENCODER, DECODER = (onnxruntime.InferenceSession(FOLDER / name) for name in ("encoder.onnx", "decoder.onnx"))


def predict(texts: list[str]) -> list[list[int]]:
    """Return the token ids of the output for each text."""
    rows = SOURCE.encode_batch(texts)
    ids, mask = np.array([row.ids for row in rows]), np.array([row.attention_mask for row in rows])
    # The limit grows with the length of the source, without its <eos>, up to a maximum.
    limits = np.minimum(mask.sum(1) - 1 + CONFIG["max_extra_tokens"], CONFIG["max_target_tokens"])
    keys, values, mask = ENCODER.run(None, {"input_ids": ids, "attention_mask": mask})
    source = {"cross_keys": keys, "cross_values": values, "cross_mask": mask}
    keys, values = keys[:, :, :, :0], values[:, :, :, :0]  # the cache of the target is empty
    outputs = np.full((len(texts), 1), CONFIG["bos_token_id"])
    ended = np.zeros_like(outputs, dtype=bool)
    for _ in range(limits.max()):
        # A step reads only the last tokens: the keys and values of the earlier ones are in the cache.
        target = {"input_ids": outputs[:, -1:], "past_keys": keys, "past_values": values}
        logits, keys, values = DECODER.run(None, {**source, **target})
        logits[:, :, CONFIG["suppressed_token_ids"]] = -np.inf
        outputs = np.append(outputs, logits[:, -1].argmax(-1)[:, None], axis=1)
        ended = outputs == CONFIG["eos_token_id"]
        if ended.any(1).all():
            break
    ends = np.minimum(np.where(ended.any(1), ended.argmax(1), outputs.shape[1]), limits + 1)
    return [row[1:end].tolist() for row, end in zip(outputs, ends, strict=True)]


if __name__ == "__main__":
    for output in predict(sys.argv[1:]):
        print(TARGET.decode(output))
