"""Predict the class of each image: python run.py cat.jpg dog.png."""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image, ImageOps

FOLDER = Path(__file__).parent
CONFIG = json.loads((FOLDER / "config.json").read_text(encoding="utf-8"))
MODEL = onnxruntime.InferenceSession(FOLDER / "model.onnx")


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


def predict(files: list[str]) -> np.ndarray:
    """Return the probability of each class for each image."""
    [logits] = MODEL.run(None, {"pixels": np.stack([read(file) for file in files])})
    powers = np.exp(logits - logits.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


if __name__ == "__main__":
    for file, probabilities in zip(sys.argv[1:], predict(sys.argv[1:]), strict=True):
        print(file, CONFIG["labels"][probabilities.argmax()], f"{probabilities.max():.4f}")
