"""Speed of transcription beside CTranslate2: python benchmarks/whisper.py MODEL FOLDER SOUND --python PYTHON [--help]

FOLDER is a Whisper of English in the format of CTranslate2, MODEL is what `heedful convert` makes of it, SOUND a
recording of at most 30 seconds. PYTHON is an interpreter that has ctranslate2 and numpy. Both compute in float32 and
write without time stamps. CTranslate2 is given the log-mel spectrum that heedful computes; a transcription by heedful
begins with the samples. Each system is a process of its own, and they take turns pass by pass, so that a busy machine
hinders both: what counts is the median of the ratios.
"""

import argparse
import json
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import record
import torch
from rich.console import Console
from rich.table import Table

from heedful.checkpoint import load_model
from heedful.machine.process import keep_freed_memory
from heedful.media.audio_reader import audio_reader
from heedful.predictors.transcriber import Transcriber, padded_frames

WORK = {"encoder": 0, "greedy": 1, "beam 5": 5}  # beam sizes; 0: no search
PEER = Path(__file__).parent / "peers" / "ctranslate2_whisper.py"
PROMPT = ["<|startoftranscript|>", "<|notimestamps|>"]

Pass = Callable[[int], dict[str, Any]]  # beam size -> seconds and text


def frames_and_samples(transcriber: Transcriber, sound: Path) -> tuple[torch.Tensor, np.ndarray]:
    recording = audio_reader(sound, transcriber.settings.audio)
    samples = recording.read(0, recording.length)
    return padded_frames([samples], transcriber.settings.audio)[0], samples


def encoded(transcriber: Transcriber, frames: torch.Tensor) -> torch.Tensor:
    model: Any = transcriber.model
    with torch.inference_mode():
        return model.encode(frames, torch.ones(frames.shape[:2], dtype=torch.bool)).states


def heedful(transcriber: Transcriber, frames: torch.Tensor, samples: np.ndarray) -> Pass:
    """Make the passes of heedful, in this process."""
    keep_freed_memory()

    def measure(beam: int) -> dict[str, Any]:
        start = time.perf_counter()
        text = ""
        if beam:
            text = transcriber.transcribe(samples, beam=beam, timestamps="never").text
        else:
            encoded(transcriber, frames)
        return {"seconds": time.perf_counter() - start, "text": text}

    return measure


def ctranslate2(options: argparse.Namespace, frames: torch.Tensor, folder: Path) -> Pass:
    """Make the passes of CTranslate2, in a process that waits for them."""
    np.save(folder / "mel.npy", frames.transpose(1, 2).contiguous().numpy())
    arguments = [options.folder, folder / "mel.npy", json.dumps(PROMPT), options.threads]
    command = [options.python, str(PEER), *map(str, arguments)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    given, answers = process.stdin, process.stdout
    assert given is not None
    assert answers is not None

    def measure(beam: int) -> dict[str, Any]:
        given.write(f"{beam}\n")
        given.flush()
        return json.loads(answers.readline())

    return measure


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("sound", type=Path)
    parser.add_argument("--python", required=True)
    parser.add_argument("--passes", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    transcriber = load_model(options.model).use_as(Transcriber)
    frames, samples = frames_and_samples(transcriber, options.sound)
    shown = Table("work", "heedful s", "CTranslate2 s", "CTranslate2 / heedful", "lowest", "highest", "same text")
    facts = record.machine(options.threads) | {"sound": options.sound.name, "passes": options.passes}
    with TemporaryDirectory() as folder:
        systems = heedful(transcriber, frames, samples), ctranslate2(options, frames, Path(folder))
        results: dict[str, Any] = {}
        for name, beam in WORK.items():
            found = [[measure(beam) for measure in systems] for _ in range(options.passes + 1)][1:]  # one to warm up
            ours, theirs = ([each[i]["seconds"] for each in found] for i in (0, 1))
            ratios = [b / a for a, b in zip(ours, theirs, strict=True)]
            same = all(a["text"] == b["text"] for a, b in found)
            numbers = [statistics.median(ours), statistics.median(theirs), statistics.median(ratios)]
            numbers += [min(ratios), max(ratios)]
            shown.add_row(name, *(f"{number:.2f}" for number in numbers), "yes" if same else "no")
            results[name] = {"heedful": ours, "ctranslate2": theirs, "same": same}
        states = torch.from_numpy(np.load(Path(folder) / "mel.npy.out.npy"))
        difference = (encoded(transcriber, frames) - states).abs().max().item()
    facts |= {"largest_difference_of_encoders": difference}
    Console(width=110).print(facts, shown)
    record.append(__file__, facts | {"seconds": results})


if __name__ == "__main__":
    main()
