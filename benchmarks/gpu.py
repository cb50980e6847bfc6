"""Everything that heedful measures on one GPU, in at most nine minutes: sh benchmarks/gpu.sh [--help]

Training of Transformer base and big and of GPT-2 124M in bfloat16, compiled and not, and of base in float16; decoding
next to CTranslate2 in float16; the tests of the suite that need a GPU. Each part is a process with a time limit, so
that one that fails or hangs leaves the others their time; the most important come first. Results are lines of
gpu.jsonl, from which --tables prints the tables of docs/performance.md. Nothing of it has run on a GPU yet.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gpt_step
import race
import record
import torch
import train_step

from heedful.architectures import EncoderDecoder, weights
from heedful.config.load import load_preset
from heedful.config.schema import DecodeConfig, ModelConfig
from heedful.machine import choose_device
from heedful.machine.speed import copy_speed, matmul_speed
from heedful.search.source_to_target import search_rows

ROOT = Path(__file__).parent.parent
SECONDS = 9 * 60
LENGTH, LIMIT, BEAM = 14, 24, 5  # tokens of a sentence to translate, and of its translation at most
TINY = ModelConfig(d_model=16, d_ff=32, heads=2, encoder_layers=1, decoder_layers=1)

Result = dict[str, Any]


def limits(device: torch.device, tiny: bool) -> Result:
    """Measure the speed of a large matrix product and of copying memory."""
    size = 256 if tiny else 8192
    speed = partial(matmul_speed, size, size, size, device=device)
    types = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
    speeds = {name: speed(dtype=dtype) for name, dtype in types.items()}
    return speeds | {"copy": copy_speed(device, 2**22 if tiny else 2**30)}


def training(model: str, precision: str, compiled: bool, device: torch.device, tiny: bool) -> Result:
    """Time training steps of a model; its share of the data sheet's FLOP/s is model FLOPs utilisation."""
    compiled = compiled and device.type == "cuda"
    if model == "gpt2":
        size = replace(gpt_step.SIZES["gpt2"], warm_up=2, steps=3)
        if tiny:
            size = race.Size(gpt_step.preset(2, 64, 16), partial(gpt_step.windows, context=16), 64, 1, 2)
        make, flops = gpt_step.heedful, gpt_step.flops
    else:
        config = TINY if tiny else load_preset(f"vaswani-{model}").model
        cells, warm_up, steps = (300, 1, 2) if tiny else (25_000, 4, 4)
        size = race.Size(config, train_step.batches, cells, warm_up, steps)
        make, flops = train_step.heedful, train_step.flops
    system = race.System(partial(make, precision=precision, compiled=compiled), precision)
    measured = race.measure(race.Race("", {}, {}, flops), system, size, size.cells, 1, device)
    published = record.published_limit(device)
    return asdict(measured) | {
        "model": model,
        "precision": precision,
        "compiled": compiled,
        "mfu": published and measured.useful / published,
    }


def decoding(beam: int, device: torch.device, tiny: bool) -> Result:
    """Time translations by a base model with random weights, next to CTranslate2 in float16 if it can be used."""
    sentences = 8 if tiny else 1000
    config = TINY if tiny else ModelConfig()
    torch.manual_seed(0)
    model = EncoderDecoder(config, train_step.VOCAB, train_step.VOCAB).eval()
    rows = torch.randint(4, train_step.VOCAB, (sentences, LENGTH)).tolist()
    result: Result = {"beam": beam, "sentences": sentences, "tokens": LIMIT}
    try:
        their_search = ctranslate2_search(model, config, beam, device)
        result["CTranslate2"] = sentences_per_second(their_search, rows)
    except (ImportError, RuntimeError, ValueError) as error:  # no package, or no CUDA libraries of its version
        result["CTranslate2 is missing"] = str(error).splitlines()[0]
    model.to(device)
    settings = DecodeConfig(beam=beam, penalty="average", alpha=1.0)
    result["heedful"] = sentences_per_second(lambda rows: search_rows(model, rows, [LIMIT] * len(rows), settings), rows)
    return result


def ctranslate2_search(model: EncoderDecoder, config: ModelConfig, beam: int, device: torch.device) -> Callable:
    """Make a search of CTranslate2 with the weights of a model, in float16 on a GPU."""
    import ctranslate2

    from heedful.convert.ctranslate2_export import save, specification

    names = [str(token) for token in range(train_step.VOCAB)]
    precision = "float16" if device.type == "cuda" else "float32"
    with TemporaryDirectory() as folder:
        spec = specification(config, weights(model), config.max_positions)
        save(spec, Path(folder), config, (names, names), precision)
        translator = ctranslate2.Translator(folder, device=device.type, compute_type=precision)
    options: Result = {"beam_size": beam, "max_decoding_length": LIMIT, "max_batch_size": 256}
    return lambda rows: translator.translate_batch([[names[token] for token in row] for row in rows], **options)


def sentences_per_second(search: Callable[[list[list[int]]], Sequence[object]], rows: list[list[int]]) -> float:
    """Time a search for all rows: the best of three, after a few rows that are not timed."""
    search(rows[:32])
    seconds = []
    for _ in range(3):
        begin = time.perf_counter()
        found = search(rows)
        seconds.append(time.perf_counter() - begin)
        assert len(found) == len(rows)
    return len(rows) / min(seconds)


def tests(device: torch.device, tiny: bool) -> Result:
    """Run the tests that need a GPU, as far as the time goes; return what pytest says in its last line."""
    del device
    arguments = ["-q", "-p", "no:cacheprovider", "--no-header", "--tb=line", *(["--collect-only"] if tiny else [])]
    command = [sys.executable, "-m", "pytest", *arguments, "tests/test_on_a_gpu.py"]
    lines = []
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        assert run.stdout is not None
        for line in run.stdout:
            sys.stderr.write(line)
            lines += [line.strip()] if line.strip() else []
    failed = [line for line in lines if line.startswith("FAILED")]
    return {"exit_code": run.returncode, "pytest": lines[-1] if lines else "", "failed": failed}


def trained(model: str, precision: str, *, compiled: bool) -> Callable[[torch.device, bool], Result]:
    return partial(training, model, precision, compiled)


PARTS: dict[str, tuple[Callable[[torch.device, bool], Result], int]] = {  # each with its longest time in seconds
    "limits": (limits, 30),
    "base": (trained("base", "bfloat16", compiled=False), 40),
    "gpt2": (trained("gpt2", "bfloat16", compiled=False), 40),
    "float16": (trained("base", "float16", compiled=False), 40),
    "decoding, greedy": (partial(decoding, 1), 40),
    "gpt2, compiled": (trained("gpt2", "bfloat16", compiled=True), 100),
    "base, compiled": (trained("base", "bfloat16", compiled=True), 120),
    "tests": (tests, 150),
    "big": (trained("big", "bfloat16", compiled=False), 45),
    "big, compiled": (trained("big", "bfloat16", compiled=True), 120),
    "decoding, beam 5": (partial(decoding, BEAM), 60),
}


def measure_apart(name: str, options: Any, seconds: float) -> Result:
    """Measure a part in a process; what went wrong with it is a result as well."""
    command = [sys.executable, __file__, "--part", name, "--device", options.device, "--threads", str(options.threads)]
    if options.tiny:
        command.append("--tiny")
    begin = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as run:
        try:
            output, _ = run.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)  # with the processes that it has started
            return {"skipped": f"not finished after {seconds:.0f} seconds"}
    seconds = round(time.monotonic() - begin, 1)
    if run.returncode:
        return {"skipped": f"exit code {run.returncode}, see standard error", "seconds": seconds}
    return json.loads(output.splitlines()[-1]) | {"seconds": seconds}


def measure_all(options: Any, file: Path) -> None:
    """Measure the parts one after another in the time that there is, and append their results to a file."""
    end, device = time.monotonic() + SECONDS, choose_device(options.device)
    facts = record.machine(options.threads, device) | {"tiny": options.tiny}
    for number, name in enumerate(options.parts):
        measure, longest = PARTS[name]
        left = end - time.monotonic()
        if options.tiny and number > 0:  # the first one tries out the process
            result = measure(device, True)
        elif left > 10:
            result = measure_apart(name, options, min(left, longest))
        else:
            result = {"skipped": "no time was left"}
        print(name, result, flush=True)
        with file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps({**facts, "part": name, **result}) + "\n")


def tables(lines: list[Result]) -> str:
    """Format the newest result of each part as the tables of docs/performance.md."""
    newest = {line["part"]: line for line in lines if "skipped" not in line}
    training = ["| model | precision | compiled | tokens/s | MFU | peak |", "| --- | --- | --- | ---: | ---: | ---: |"]
    decoding = ["| search | heedful, sentences/s | CTranslate2 float16 |", "| --- | ---: | ---: |"]
    for name, one in newest.items():
        if "model" in one:
            compiled, mfu = "yes" if one["compiled"] else "no", "-" if one["mfu"] is None else f"{one['mfu']:.0%}"
            cells = f"{one['tokens']:,.0f} | {mfu} | {one['peak']:.2f} GB"
            training.append(f"| {one['model']} | {one['precision']} | {compiled} | {cells} |")
        elif "beam" in one:
            theirs = f"{one['CTranslate2']:,.0f}" if "CTranslate2" in one else "-"
            decoding.append(f"| {name.partition(', ')[2]} | {one['heedful']:,.0f} | {theirs} |")
    return "\n\n".join("\n".join(table) for table in (training, decoding) if len(table) > 2)


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--device", default="auto", help="cuda, cpu, or auto for a GPU if there is one")
    parser.add_argument("--tiny", action="store_true", help="tiny sizes, to try out the script")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART")
    parser.add_argument("--part", choices=PARTS, help="measure one part in this process, and print the result")
    parser.add_argument("--tables", action="store_true", help="print the results in the file as tables")
    parser.add_argument("--file", type=Path, help="of the results, instead of gpu.jsonl, or gpu-tiny.jsonl with --tiny")
    options = parser.parse_args()
    folder = Path(os.environ.get("OUT", Path(__file__).parent))
    options.file = options.file or folder / ("gpu-tiny.jsonl" if options.tiny else "gpu.jsonl")
    if options.tables:
        print(tables([json.loads(line) for line in options.file.read_text(encoding="utf-8").splitlines()]))
        return
    if not options.part:
        measure_all(options, options.file)
        return
    torch.set_num_threads(options.threads)
    print(json.dumps(PARTS[options.part][0](choose_device(options.device), options.tiny)))


if __name__ == "__main__":
    main()
