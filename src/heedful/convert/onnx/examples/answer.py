"""Find the answer to a question in a text: python run.py "Who lives in London?" "Ada lives in London."."""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import tokenizers

FOLDER = Path(__file__).parent
CONFIG = json.loads((FOLDER / "config.json").read_text(encoding="utf-8"))
TOKENIZER = tokenizers.Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
TOKENIZER.enable_truncation(CONFIG["max_tokens"], strategy="only_second")
TOKENIZER.enable_padding(pad_id=CONFIG["pad_token_id"])
MODEL = onnxruntime.InferenceSession(FOLDER / "model.onnx")
FIELDS = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}

MAX_ANSWER_TOKENS = 30


def predict(question: str, text: str) -> str:
    """Return the part of the text that answers the question, or an empty string if there is no answer."""
    row = TOKENIZER.encode(question, text)
    names = [each.name for each in MODEL.get_inputs()]
    inputs = {name: np.array([getattr(row, FIELDS[name])]) for name in names}
    # (1, N, 2) -> (N, 2): for each token, its scores as the beginning and as the end of the answer.
    [[logits]] = MODEL.run(None, inputs)
    no_answer = len(logits) - 1 if CONFIG["causal"] else 0  # the index that means that there is no answer
    text_tokens = [index for index, part in enumerate(row.sequence_ids) if part == 1]
    best, answer = logits[no_answer].sum(), (0, 0)
    # An answer ends at or after its first token, inside the text; its score is the sum of both logits.
    for first in text_tokens:
        for last in range(first, min(first + MAX_ANSWER_TOKENS, text_tokens[-1] + 1)):
            if logits[first, 0] + logits[last, 1] > best:
                best, answer = logits[first, 0] + logits[last, 1], (row.offsets[first][0], row.offsets[last][1])
    return text[slice(*answer)].strip()


if __name__ == "__main__":
    print(predict(*sys.argv[1:]))
