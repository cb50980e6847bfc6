"""Can a model recognise emotion in a voice? python laboratory/emotion.py [--help]

Voices are synthesised: pulses of a glottis, filtered by the formants of vowels (Fant 1960). The manner of speaking
depends on the emotion as in studies of actors (Juslin & Laukka 2003), and on the speaker.
"""

import csv
import math
import random
import wave
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from models import BLUE, BROWN
from report import ROOT, arguments, check, publish
from sklearn.linear_model import LogisticRegression

import heedful
from heedful.predictors import MediaClassifier

RATE = 8000  # samples per second
CLIPS = 12  # of each speaker and emotion
SPEAKERS = {"train": 24, "valid": 4, "test": 10}
UPDATES = 1000
VOWELS = ((730, 1090, 2440), (270, 2290, 3010), (300, 870, 2240), (530, 1840, 2480), (570, 840, 2410))  # formants, Hz
BANDWIDTHS = (80, 100, 150)
SPREAD = 0.35  # standard deviation of a feature over clips, relative to its range over emotions


@dataclass(frozen=True)
class Manner:
    """How something is said, relative to the speaker's usual manner."""

    pitch: float  # logarithm of the factor of the mean fundamental frequency
    range: float  # logarithm of the factor between the highest and the lowest syllable
    rate: float  # logarithm of the factor of syllables per second
    energy: float  # decibels
    brightness: float  # decibels per octave: less energy of high harmonics if it is lower
    slope: float  # logarithm of the factor of the pitch from the beginning to the end


EMOTIONS = {
    "neutral": Manner(pitch=0.0, range=0.15, rate=0.0, energy=0.0, brightness=-9.0, slope=-0.05),
    "anger": Manner(pitch=0.20, range=0.30, rate=0.20, energy=6.0, brightness=-6.0, slope=-0.10),
    "happiness": Manner(pitch=0.25, range=0.40, rate=0.10, energy=3.0, brightness=-7.5, slope=0.10),
    "sadness": Manner(pitch=-0.10, range=0.08, rate=-0.25, energy=-5.0, brightness=-12.0, slope=-0.15),
    "fear": Manner(pitch=0.30, range=0.12, rate=0.30, energy=-2.0, brightness=-9.0, slope=0.05),
}
CUES = {"pitch": ("pitch", "range", "slope"), "tempo": ("rate",), "loudness": ("energy", "brightness")}


@dataclass(frozen=True)
class Speaker:
    pitch: float  # Hz
    formants: float  # factor: a shorter vocal tract has higher formants
    rate: float  # syllables per second
    level: float  # decibels


def speaker_of(rng: random.Random) -> Speaker:
    return Speaker(
        pitch=math.exp(rng.uniform(math.log(90), math.log(240))),
        formants=rng.uniform(0.88, 1.15),
        rate=rng.uniform(4.0, 5.5),
        level=rng.uniform(-3, 3),
    )


def manner_of(emotion: str, rng: random.Random) -> Manner:
    """Sample the manner of a clip: that of its emotion, and some variation."""
    values = {}
    for name in Manner.__annotations__:
        everywhere = [getattr(manner, name) for manner in EMOTIONS.values()]
        spread = SPREAD * (max(everywhere) - min(everywhere))
        values[name] = getattr(EMOTIONS[emotion], name) + rng.gauss(0, spread)
    return Manner(**values)


def without(manner: Manner, cue: str) -> Manner:
    """Return the manner with one cue as in neutral speech."""
    return replace(manner, **{name: getattr(EMOTIONS["neutral"], name) for name in CUES.get(cue, ())})


def speech(manner: Manner, speaker: Speaker, rng: random.Random) -> np.ndarray:
    """Synthesise some syllables, float64, (samples,)."""
    syllables = rng.randint(5, 7)
    count = round(RATE / (speaker.rate * math.exp(manner.rate)))  # samples of a syllable
    heights = [rng.uniform(-0.5, 0.5) * manner.range + manner.slope * (i / syllables - 0.5) for i in range(syllables)]
    pitches = speaker.pitch * np.exp(manner.pitch + np.array(heights))
    time = np.arange(syllables * count)
    pitch = np.interp(time / count - 0.5, np.arange(syllables), pitches)
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    formants = speaker.formants * np.array([rng.choice(VOWELS) for _ in range(syllables)])  # (syllables, 3)
    places = np.stack([np.interp(time / count - 0.5, np.arange(syllables), row) for row in formants.T])  # (3, samples)
    sound = np.zeros(len(time))
    for harmonic in range(1, int(RATE / 2 / pitch.max())):
        frequency = harmonic * pitch
        gain = sum(
            1 / (1 + ((frequency - place) / width) ** 2) for place, width in zip(places, BANDWIDTHS, strict=True)
        )
        octaves = np.log2(frequency / 200)
        sound += (gain + 0.02) * 10 ** (manner.brightness * octaves / 20) * np.sin(harmonic * phase)
    sound *= np.sin(np.pi * (time % count) / count) ** 0.5  # each syllable swells and fades
    sound *= 0.05 / sound.std() * 10 ** ((manner.energy + speaker.level) / 20)
    noise = np.random.default_rng(rng.getrandbits(32)).standard_normal(len(sound))
    return sound + 0.002 * noise


@dataclass(frozen=True)
class Clip:
    """What is said in a clip, and by whom, apart from the sound."""

    emotion: str
    speaker: Speaker
    manner: Manner
    seed: int

    def write(self, path: Path, cue: str = "") -> None:
        """Write the clip as a WAV file, without one of the cues or, for "", with all."""
        sound = speech(without(self.manner, cue), self.speaker, random.Random(self.seed))
        with wave.open(str(path), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(RATE)
            file.writeframes((sound.clip(-1, 1) * 32767).astype("<i2").tobytes())

    def features(self) -> list[float]:
        """What a measurement of the sound could know: not the manner of the speaker, but the sum of both."""
        speaker, manner = self.speaker, self.manner
        pitch, rate = math.log(speaker.pitch) + manner.pitch, math.log(speaker.rate) + manner.rate
        return [pitch, manner.range, rate, speaker.level + manner.energy, manner.brightness, manner.slope]


def clips_of(part: str, speakers: int, clips: int, seed: int) -> Iterator[Clip]:
    """Yield clips of all emotions, whose speakers occur in no other part."""
    for number in range(speakers):
        rng = random.Random(f"{part} {seed} {number}")
        speaker = speaker_of(rng)
        for emotion in EMOTIONS:
            for _ in range(clips):
                yield Clip(emotion, speaker, manner_of(emotion, rng), rng.getrandbits(32))


def write_corpus(folder: Path, parts: dict[str, list[Clip]]) -> None:
    """Write the clips of each part and a table of them; those of the test set also without each cue."""
    for part, clips in parts.items():
        for cue in ("", *CUES) if part == "test" else ("",):
            subfolder = folder / (part + cue)
            subfolder.mkdir(parents=True, exist_ok=True)
            for number, clip in enumerate(clips):
                clip.write(subfolder / f"{number}.wav", cue)
        with (folder / f"{part}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(
                [("file", "emotion"), *((f"{part}/{number}.wav", clip.emotion) for number, clip in enumerate(clips))]
            )


def linear(parts: dict[str, list[Clip]]) -> float:
    """Return the accuracy of a linear classifier of the features that were used to synthesise the clips."""
    features = {part: np.array([clip.features() for clip in clips]) for part, clips in parts.items()}
    labels = {part: [clip.emotion for clip in clips] for part, clips in parts.items()}
    mean, spread = features["train"].mean(0), features["train"].std(0)
    classifier = LogisticRegression(max_iter=500).fit((features["train"] - mean) / spread, labels["train"])
    return float(classifier.score((features["test"] - mean) / spread, labels["test"]))


def trained(folder: Path, seed: int, options: Any) -> MediaClassifier:
    """Train a classifier, or load the one that is already trained."""
    updates = 2 if options.quick else UPDATES
    corpora = {part: {"source": f"{part}.csv", "source_field": "file", "target_field": "emotion"} for part in SPEAKERS}
    changes: dict[str, Any] = {
        "data.train": [corpora["train"]],
        "data.valid": corpora["valid"],
        "data.test": corpora["test"],
        "audio.speed": 0.0,  # the tempo is a cue
        "audio.max_seconds": 5.0,
        "model.d_model": 16 if options.quick else 64,
        "model.d_ff": 16 if options.quick else 128,
        "model.encoder_layers": 3,
        "optimizer.warmup": min(100, updates // 2),
        "train.seed": seed,
        "train.max_updates": updates,
        "train.threads": options.threads,
        "train.precision": "float32",
        "train.validate_every": max(updates // 4, 1),
        "train.save_every": max(updates // 4, 1),
    }
    run = heedful.train(ROOT / "recipes/fsdd", options.work / f"model-{seed}", folder, changes)
    return heedful.load(run.folder, "cpu", as_=MediaClassifier)


def accuracies(classifier: MediaClassifier, folder: Path, clips: Sequence[Clip]) -> dict[str, float]:
    """Return the accuracy on the test set with all cues, and without each of them."""
    results = {}
    for cue in ("", *CUES):
        files = [folder / f"test{cue}" / f"{number}.wav" for number in range(len(clips))]
        predicted = [each.label for each in classifier.predict_files(files)]
        results[cue] = fmean(label == clip.emotion for label, clip in zip(predicted, clips, strict=True))
    return results


def main() -> None:
    options = arguments(__doc__, seeds=3, models="emotion")
    clips = 1 if options.quick else CLIPS
    runs: list[dict[str, float]] = []
    baselines: list[float] = []
    for seed in range(1, options.seeds + 1):
        folder = options.work / f"voices-{seed}"
        parts = {
            part: list(clips_of(part, 2 if options.quick else count, clips, seed)) for part, count in SPEAKERS.items()
        }
        write_corpus(folder, parts)
        baselines.append(linear(parts))
        runs.append(accuracies(trained(folder, seed, options), folder, parts["test"]))
        print(runs[-1], baselines[-1], flush=True)

    figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
    bars = {
        "chance": 1 / len(EMOTIONS),
        "linear, of the true features": fmean(baselines),
        "model": fmean(run[""] for run in runs),
        **{f"model, neutral {cue}": fmean(run[cue] for run in runs) for cue in CUES},
    }
    axes.barh(list(bars), list(bars.values()), color=[BROWN, BROWN, *(BLUE for _ in range(1 + len(CUES)))])
    axes.set(xlabel="accuracy for new speakers", xlim=(0, 1))
    axes.invert_yaxis()

    predictions = [
        check("chance", [run[""] - 1 / len(EMOTIONS) for run in runs], least=0.3),
        check("linear", [run[""] - other for run, other in zip(runs, baselines, strict=True)], least=-0.05),
        *(check("cue", [run[""] - run[cue] for run in runs], least=0.05, name=cue) for cue in CUES),
    ]
    publish("emotion", predictions, figure, options, accuracies=runs, linear=baselines)


if __name__ == "__main__":
    main()
