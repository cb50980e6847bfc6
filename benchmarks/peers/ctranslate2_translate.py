"""Translate a file line by line with CTranslate2 and tokenizers alone: MODEL INPUT OUTPUT BEAM COMPUTE_TYPE ONE_BY_ONE.

MODEL is a folder that `heedful export --to ctranslate2` writes. Prints the seconds per line of `ONE_BY_ONE` lines.
"""

import os
import statistics
import sys
import time
from pathlib import Path

import ctranslate2
import tokenizers


def main(model: str, source: str, output: str, beam: int, compute_type: str, one_by_one: int) -> None:
    lines = Path(source).read_text(encoding="utf-8").splitlines()
    tokenizer = tokenizers.Tokenizer.from_file(f"{model}/tokenizer.json")
    vocabulary = tokenizer.get_vocab()
    cores = len(os.sched_getaffinity(0))
    workers, threads = (1, cores) if one_by_one else (cores, 1)
    translator = ctranslate2.Translator(model, compute_type=compute_type, inter_threads=workers, intra_threads=threads)

    def translate(texts: list[str]) -> list[str]:
        rows = [encoding.tokens for encoding in tokenizer.encode_batch(texts, add_special_tokens=False)]
        results = translator.translate_batch(
            rows, beam_size=beam, max_batch_size=8192 // beam, batch_type="tokens", max_decoding_length=256
        )
        return tokenizer.decode_batch([[vocabulary[token] for token in result.hypotheses[0]] for result in results])

    if one_by_one:
        seconds = []
        for line in lines[:one_by_one]:
            start = time.perf_counter()
            translate([line])
            seconds.append(time.perf_counter() - start)
        print(statistics.median(seconds))
        return
    with open(output, "w", encoding="utf-8") as file:
        for start in range(0, len(lines), 1024):
            file.writelines(f"{text}\n" for text in translate(lines[start : start + 1024]))


if __name__ == "__main__":
    model, source, output, beam, compute_type, one_by_one = sys.argv[1:]
    main(model, source, output, int(beam), compute_type, int(one_by_one))
