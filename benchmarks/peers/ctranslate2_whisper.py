"""Time CTranslate2's Whisper: FOLDER MEL PROMPT THREADS; a beam size on each line of standard input is a pass.

PROMPT holds token names in JSON. A beam of 0 is the encoder alone, whose output goes to MEL with .out.npy at its end.
Prints a line of JSON for each pass.
"""

import json
import sys
import time

import ctranslate2
import numpy as np


def main(folder: str, mel: str, prompt: list[str], threads: int) -> None:
    model = ctranslate2.models.Whisper(folder, compute_type="float32", inter_threads=1, intra_threads=threads)
    features = ctranslate2.StorageView.from_array(np.load(mel))
    for line in sys.stdin:
        beam, text, states = int(line), "", np.empty(0)
        start = time.perf_counter()
        if beam:
            [found] = model.generate(features, [prompt], beam_size=beam)
            text = "".join(found.sequences[0]).replace("\u0120", " ").strip()
        else:
            states = np.array(model.encode(features))
        seconds = time.perf_counter() - start
        if not beam:
            np.save(f"{mel}.out.npy", states)
        print(json.dumps({"seconds": seconds, "text": text}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), int(sys.argv[4]))
