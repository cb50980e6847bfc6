"""Time translation by CTranslate2: MODEL ROWS OPTIONS, with rows of token ids and options in JSON; prints JSON."""

import json
import resource
import statistics
import sys
import time
from pathlib import Path

import ctranslate2


def main(model: str, rows: Path, options: dict) -> None:
    words = [[str(i) for i in row] for row in json.loads(rows.read_text(encoding="utf-8"))]
    workers, threads = options["workers"], options["threads"] // options["workers"]
    translator = ctranslate2.Translator(
        model, compute_type=options["type"], inter_threads=workers, intra_threads=threads
    )
    settings = {"beam_size": options["beam"], "max_batch_size": options["batch"], "max_decoding_length": 64}

    def seconds(texts):
        start = time.perf_counter()
        outputs = translator.translate_batch(texts, **settings)
        return time.perf_counter() - start, outputs

    seconds(words[: 2 * options["batch"]])
    passes = [seconds(words) for _ in range(options["passes"])]
    alone = [seconds([row])[0] for row in words[:: len(words) // 50]]
    print(
        json.dumps(
            {
                "rate": len(words) / statistics.median(spent for spent, _ in passes),
                "alone": sorted(alone)[len(alone) // 2],
                "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
                "outputs": [[int(word) for word in output.hypotheses[0]] for output in passes[0][1]],
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3]))
