"""Translation speed of implementations with the same weights: python benchmarks/decode.py MODEL TEXT [--help]

MODEL is a translator of heedful, TEXT has a sentence per line. All systems read and write token ids, and each system
ends its search by its own rule. Every measurement is a process of its own and the systems take turns; the median of the
passes over the text within a process counts. CTranslate2 runs in the environment that peers/environments.sh makes. HF
MarianMT takes part if it can compute the model; on a GPU (--device cuda) CTranslate2 does not.
"""

import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import record
import torch
from rich.console import Console
from rich.table import Table

from heedful import load
from heedful.architectures import weights
from heedful.checkpoint import LoadedModel, load_model
from heedful.convert.ctranslate2_export import specification
from heedful.machine.process import keep_freed_memory
from heedful.predictors.translator import Translator
from heedful.text.sequences import pad
from heedful.text.tokenizer import BOS, EOS, PAD, UNK
from heedful.text.tokenizer_pair import TokenizerPair

PASSES = 3
ALONE = 50  # sentences that are timed one by one
HERE = Path(__file__).parent

Rows = list[list[int]]
Search = Callable[[Rows], Rows]


def heedful(model: Path, beam: int, device: str, engine: Any = "auto") -> Search:
    keep_freed_memory()
    translator = load(model, device, as_=Translator, engine=engine)
    same = {"penalty": "average", "alpha": 1.0, "patience": 1.0, "max_extra": 50, "n_best": 1, "shortlist": 0}
    translator = translator.with_options(beam=beam, **same)
    return lambda rows: [hypotheses[0].tokens for hypotheses in translator.search_rows(rows)]


def marian(model: Path, beam: int, device: str) -> Search:
    from transformers import MarianMTModel

    theirs: Any = MarianMTModel.from_pretrained(model.parent / "marian")
    return marian_search(theirs.eval().to(device), beam)


def marian_search(theirs: Any, beam: int) -> Search:
    """Make a search by `generate` of Hugging Face's MarianMT, 64 sentences of similar length at once."""

    @torch.inference_mode()
    def search(rows: Rows) -> Rows:
        found: Rows = [[] for _ in rows]
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        for start in range(0, len(rows), 64):
            chosen = order[start : start + 64]
            padded, padding_mask = pad([[*rows[i], EOS] for i in chosen])
            outputs = theirs.generate(
                torch.from_numpy(padded).to(theirs.device),
                attention_mask=torch.from_numpy(padding_mask).long().to(theirs.device),
                num_beams=beam,
                early_stopping=beam > 1,
                max_new_tokens=64,
                do_sample=False,
            )
            for i, tokens in zip(chosen, outputs[:, 1:].tolist(), strict=True):
                found[i] = tokens[: tokens.index(EOS)] if EOS in tokens else [t for t in tokens if t != PAD]
        return found

    return search


IN_THIS_PROCESS: dict[str, Callable[[Path, int, str], Search]] = {
    "heedful": heedful,
    "heedful, torch": partial(heedful, engine="torch"),
    "HF MarianMT": marian,
}
CTRANSLATE2 = {
    f"CTranslate2 {kind}, {workers} x {threads}": {"type": kind, "workers": workers}
    for kind in ("float32", "int8")
    for workers, threads in ((1, 2), (2, 1))
}


def measure(search: Search, rows: Rows, device: torch.device) -> dict[str, Any]:
    """Time a search in this process: sentences per second, seconds of a sentence alone, peak memory; and outputs."""
    search(rows[:100])
    passes = [timed(search, rows) for _ in range(PASSES)]
    alone = [timed(search, [row])[0] for row in rows[:: max(1, len(rows) // ALONE)]]
    return {
        "rate": len(rows) / statistics.median(seconds for seconds, _ in passes),
        "alone": statistics.median(alone),
        "peak": record.peak(device),
        "outputs": passes[0][1],
    }


def timed(search: Search, rows: Rows) -> tuple[float, Rows]:
    start = time.perf_counter()
    outputs = search(rows)
    return time.perf_counter() - start, outputs


def measure_apart(name: str, folder: Path, beam: int, options: argparse.Namespace) -> dict[str, Any]:
    """Time a system in a process of its own."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(options.threads)}
    if name in IN_THIS_PROCESS:
        arguments = ["--one", name, "--beams", str(beam), "--threads", str(options.threads), "--device", options.device]
        command = [sys.executable, __file__, str(folder / "model"), str(folder / "rows.json"), *arguments]
    else:
        settings = CTRANSLATE2[name] | {"threads": options.threads, "beam": beam, "batch": 64, "passes": PASSES}
        program = [str(options.peers / "ctranslate2" / "bin" / "python"), str(HERE / "peers" / "ctranslate2_decode.py")]
        command = [*program, str(folder / "ctranslate2"), str(folder / "rows.json"), json.dumps(settings)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
    return json.loads(output.stdout)


def make_models(folder: Path, options: argparse.Namespace) -> list[str]:
    """Write the model in every format, and the text as token ids; return the names of the measurable systems."""
    loaded = load_model(options.model)
    (folder / "model").symlink_to(loaded.path.resolve())
    rows = read_rows(loaded.tokenizers, options.text, options.lines)
    (folder / "rows.json").write_text(json.dumps(rows), encoding="utf-8")
    systems = list(IN_THIS_PROCESS)
    if options.device != "cpu":  # where torch is the default engine
        systems.remove("heedful, torch")
    command = [Path(sys.executable).with_name("heedful"), "convert", loaded.path, "--out", folder / "marian"]
    if subprocess.run([*command, "--to", "marian"], check=False, stdout=subprocess.DEVNULL).returncode:
        systems.remove("HF MarianMT")  # which has no such layers, as standard error says
    if options.device == "cpu" and (options.peers / "ctranslate2" / "bin" / "python").exists():
        write_for_ctranslate2(loaded, folder / "ctranslate2")
        systems += CTRANSLATE2
    return systems


def write_for_ctranslate2(loaded: LoadedModel, folder: Path) -> None:
    """Write the model for CTranslate2, with token ids as its vocabulary."""
    config = loaded.recipe.model
    spec = specification(config, weights(loaded.model), config.max_positions)
    spec.register_source_vocabulary([str(i) for i in range(len(loaded.tokenizers.source))])
    spec.register_target_vocabulary([str(i) for i in range(len(loaded.tokenizers.target))])
    spec.config.add_source_eos = config.source_eos
    spec.config.decoder_start_token = spec.config.bos_token = str(BOS)
    spec.config.eos_token, spec.config.unk_token = str(EOS), str(UNK)
    spec.config.add_attribute("layer_norm_epsilon", config.norm_eps)
    spec.validate()
    spec.optimize(quantization=None)
    folder.mkdir()
    spec.save(str(folder))


def table(beam: int, results: dict[str, list[dict[str, Any]]]) -> Table:
    shown = Table(title=f"beam {beam}", title_justify="left")
    ours = {name: statistics.median(run["rate"] for run in results[name]) for name in results if "heedful" in name}
    comparisons = (f"{name} is" for name in ours)
    columns = ("system", "sentences/s", "lowest", "highest", *comparisons, "one alone, ms", "as heedful's", "peak GB")
    for column in columns:
        shown.add_column(column, justify="left" if column == "system" else "right")
    reference = results["heedful"][0]["outputs"]
    for name, runs in results.items():
        rates = [run["rate"] for run in runs]
        same = sum(a == b for a, b in zip(runs[0]["outputs"], reference, strict=True))
        shown.add_row(
            name,
            *(f"{value:,.0f}" for value in (statistics.median(rates), min(rates), max(rates))),
            *(f"{rate / statistics.median(rates):.2f} times" for rate in ours.values()),
            f"{statistics.median(run['alone'] for run in runs) * 1e3:.1f}",
            f"{same} of {len(reference)}",
            f"{max(run['peak'] for run in runs):.2f}",
        )
    return shown


def search_parser(description: str | None) -> argparse.ArgumentParser:
    """Make the argument parser of a benchmark that searches for translations."""
    parser = record.parser(description)
    parser.add_argument("model", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("--beams", nargs="+", type=int, default=[1, 5])
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    return parser


def read_rows(tokenizers: TokenizerPair, text: Path, lines: int) -> Rows:
    """Read the first lines of a text as token ids."""
    opener = gzip.open if text.suffix == ".gz" else open
    with opener(text, "rt", encoding="utf-8") as file:
        return tokenizers.source.encode_batch([line.rstrip("\n") for line in islice(file, lines)])


def main() -> None:
    parser = search_parser(__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--peers", type=Path, default=Path("build/peers"))
    parser.add_argument("--one", choices=IN_THIS_PROCESS, help="measure one system here; TEXT holds ids in JSON")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.one:
        if hasattr(os, "sched_setaffinity"):  # CTranslate2 uses all cores of the process
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
        rows = json.loads(options.text.read_text(encoding="utf-8"))
        search = IN_THIS_PROCESS[options.one](options.model, options.beams[0], options.device)
        print(json.dumps(measure(search, rows, torch.device(options.device))))
        return
    console = Console(width=120)
    facts = record.machine(options.threads, torch.device(options.device))
    facts |= {"model": options.model.name, "lines": options.lines}
    console.print(facts)
    with TemporaryDirectory() as temporary:
        systems = make_models(Path(temporary), options)
        for beam in options.beams:
            results: dict[str, list[dict[str, Any]]] = {name: [] for name in systems}
            for _ in range(options.rounds):
                for name, runs in results.items():
                    runs.append(measure_apart(name, Path(temporary), beam, options))
            console.print(table(beam, results))
            figures = {name: [{**run, "outputs": None} for run in runs] for name, runs in results.items()}
            record.append(__file__, facts | {"beam": beam, "results": figures})


if __name__ == "__main__":
    main()
