"""Predict the class of each audio file, a 16-bit WAV file: python run.py bell.wav."""

import json
import sys
import wave
from pathlib import Path

import numpy as np
import onnxruntime

FOLDER = Path(__file__).parent
CONFIG = json.loads((FOLDER / "config.json").read_text(encoding="utf-8"))
FEATURES, MODEL = (onnxruntime.InferenceSession(FOLDER / name) for name in ("features.onnx", "model.onnx"))


def read(file: str) -> np.ndarray:
    """Return the samples of a WAV file, averaged over its channels, cut or padded with silence to a valid length."""
    with wave.open(file) as clip:
        if clip.getsampwidth() != 2 or clip.getframerate() != CONFIG["rate"]:
            sys.exit(f"{file}: convert it to 16 bits at {CONFIG['rate']} Hz")
        values = np.frombuffer(clip.readframes(clip.getnframes()), "<i2").reshape(-1, clip.getnchannels())
    # (samples, channels) 16-bit integers -> (samples,) from -1 to 1
    samples = (values / 32768).mean(1).astype(np.float32)[: CONFIG["max_samples"]]
    return np.pad(samples, (0, max(0, CONFIG["min_samples"] - len(samples))))


def predict(files: list[str]) -> np.ndarray:
    """Return the probability of each class for each file."""
    clips = [FEATURES.run(None, {"samples": read(file)})[0] for file in files]
    length = max(map(len, clips))
    frames = np.stack([np.pad(clip, ((0, length - len(clip)), (0, 0))) for clip in clips])
    mask = np.array([[1] * len(clip) + [0] * (length - len(clip)) for clip in clips])
    [logits] = MODEL.run(None, {"frames": frames, "attention_mask": mask})
    powers = np.exp(logits - logits.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


if __name__ == "__main__":
    for file, probabilities in zip(sys.argv[1:], predict(sys.argv[1:]), strict=True):
        print(file, CONFIG["labels"][probabilities.argmax()], f"{probabilities.max():.4f}")
