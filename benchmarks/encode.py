"""Tokenization speed beside other libraries: python benchmarks/encode.py TEXT [--help]

TEXT is plain text, a sentence per line. Each system has a BPE vocabulary of the same size, trained on that text, and
encodes all lines at once; the systems take turns. Megabytes are of the text in UTF-8: about four for a million tokens.
"""

import gzip
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import record
from rich.console import Console
from rich.table import Table

from heedful.config.schema import TokenizerConfig
from heedful.text.training import train_tokenizer

THREADS = "RAYON_NUM_THREADS"  # what heedful's library heeds

Encode = Callable[[list[str]], object]


def heedful(lines: list[str], vocab: int) -> Encode:
    return train_tokenizer(lines, TokenizerConfig(vocab_size=vocab)).encode_batch


def tokenizers(lines: list[str], vocab: int) -> Encode:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=vocab, show_progress=False))
    return lambda lines: [encoding.ids for encoding in tokenizer.encode_batch_fast(lines)]


def sentencepiece(lines: list[str], vocab: int) -> Encode:
    import sentencepiece

    with TemporaryDirectory() as folder:
        prefix = f"{folder}/model"
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_prefix=prefix, vocab_size=vocab, model_type="bpe", minloglevel=2
        )
        processor = sentencepiece.SentencePieceProcessor(model_file=f"{prefix}.model")
    threads = int(os.environ[THREADS])
    return lambda lines: processor.encode(lines, num_threads=threads)


def subword_nmt(lines: list[str], vocab: int) -> Encode:
    from subword_nmt.apply_bpe import BPE
    from subword_nmt.learn_bpe import learn_bpe

    with TemporaryDirectory() as folder:
        codes = Path(folder) / "codes"
        with codes.open("w", encoding="utf-8") as file:
            learn_bpe(lines, file, vocab)
        with codes.open(encoding="utf-8") as file:
            encoder = BPE(file)
    return lambda lines: [encoder.process_line(line) for line in lines]


SYSTEMS = {"heedful": heedful, "tokenizers": tokenizers, "sentencepiece": sentencepiece, "subword-nmt": subword_nmt}


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("text", type=Path)
    parser.add_argument("--vocab", type=int, default=8000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    os.environ[THREADS] = str(options.threads)
    opener = gzip.open if options.text.suffix == ".gz" else open
    with opener(options.text, "rt", encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file]
    size = sum(len(line.encode()) for line in lines) / 1e6
    encoders = {name: make(lines, options.vocab) for name, make in SYSTEMS.items()}
    speeds: dict[str, list[float]] = {name: [] for name in SYSTEMS}
    for _ in range(options.rounds):
        for name, encode in encoders.items():
            start = time.perf_counter()
            encode(lines)
            speeds[name].append(size / (time.perf_counter() - start))
    shown = Table("system", "MB/s", "lowest", "highest", "heedful is")
    ours = statistics.median(speeds["heedful"])
    for name, found in speeds.items():
        middle = statistics.median(found)
        shown.add_row(name, f"{middle:.1f}", f"{min(found):.1f}", f"{max(found):.1f}", f"{ours / middle:.2f} times")
    facts = record.machine(options.threads) | {"text": options.text.name, "megabytes": size, "vocab": options.vocab}
    Console(width=110).print(facts, shown)
    record.append(__file__, facts | {"megabytes_per_second": speeds})


if __name__ == "__main__":
    main()
