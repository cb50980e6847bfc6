"""Compare an image with each text by cosine similarity: python run.py cat.jpg "a cat" "a dog"."""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import tokenizers
from PIL import Image, ImageOps

FOLDER = Path(__file__).parent
CONFIG = json.loads((FOLDER / "config.json").read_text(encoding="utf-8"))
TOKENIZER = tokenizers.Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
TOKENIZER.enable_truncation(CONFIG["max_tokens"])
TOKENIZER.enable_padding(pad_id=CONFIG["pad_token_id"])
IMAGES, TEXTS = (onnxruntime.InferenceSession(FOLDER / name) for name in ("images.onnx", "texts.onnx"))


def read(file: str) -> np.ndarray:
    """Return the pixels of an image file, rotated upright, composited onto white if transparent, and resized."""
    settings = CONFIG["image"]
    height, width = settings["size"]
    resample = Image.Resampling[settings["resample"].upper()]
    image = ImageOps.exif_transpose(Image.open(file))
    if image.has_transparency_data:
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image.convert("RGBA"))
    image = image.convert("L" if settings["channels"] == 1 else "RGB")
    if settings["resize"] == "pad" and image.size != (width, height):
        image = ImageOps.pad(image, (width, height), resample, "black")
    elif settings["resize"] == "crop" and image.size != (width, height):
        # Scale until the shorter side fits, then crop the middle.
        if image.width * height > width * image.height:
            scaled = (max(width, int(height * image.width / image.height)), height)
        else:
            scaled = (width, max(height, int(width * image.height / image.width)))
        left, top = (scaled[0] - width) // 2, (scaled[1] - height) // 2
        image = image.resize(scaled, resample).crop((left, top, left + width, top + height))
    return np.asarray(image.resize((width, height), resample)).reshape(height, width, -1)


def predict(files: list[str], texts: list[str]) -> np.ndarray:
    """Return the cosine similarity of each image with each text."""
    rows = TOKENIZER.encode_batch(texts)
    inputs = {"input_ids": [row.ids for row in rows], "attention_mask": [row.attention_mask for row in rows]}
    [images] = IMAGES.run(None, {"pixels": np.stack([read(file) for file in files])})
    [vectors] = TEXTS.run(None, {name: np.array(values) for name, values in inputs.items()})
    return images @ vectors.T


if __name__ == "__main__":
    file, *texts = sys.argv[1:]
    for text, similarity in zip(texts, predict([file], texts)[0], strict=True):
        print(text, f"{similarity:.4f}")
