"""Plans beside measurements on this CPU: python benchmarks/plan.py [--help]

For each recipe one process trains three updates with a batch that is made up, and another plans them. Compared are the
peak memory beyond that of an idle process (as Linux reports it), FLOPs (counted by torch in a real update), and the
size of a checkpoint. The share of this CPU's FLOPs that training uses is measured in processor time of one thread, so
that other work on the machine counts little.
"""

import json
import subprocess
import sys
import time
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import record
import torch
from safetensors.torch import save

from heedful.architectures import weights
from heedful.config.load import make_recipe
from heedful.config.schema import Recipe
from heedful.machine import prepare_process
from heedful.machine.speed import count_flops
from heedful.optim import optimizer_tensors
from heedful.tools.plan import Hardware, make_plan
from heedful.tools.plan.data import batches_of
from heedful.tools.plan.plan import SIZE
from heedful.training.training_step import TrainingStep

LENGTH = 27
SIZES: dict[str, tuple[str, dict[str, Any]]] = {  # preset and changes
    "tiny": ("tiny", {}),
    "tiny, bfloat16": ("tiny", {"train.precision": "bfloat16"}),
    "tiny, muon, 2 batches": ("tiny", {"optimizer.name": "muon", "train.accumulate": 2}),
    "base": ("vaswani-base", {"tokenizer.vocab_size": 8000, "train.accumulate": 1}),
    "GPT": ("shakespeare", {}),
    "BERT-mini": ("bert-mini", {"data.max_length": 128}),
    "LSTM": ("", {"model.architecture": "recurrent"}),
    "ConvS2S": ("", {"model.architecture": "convolutional"}),
    "ByteNet": ("", {"model.architecture": "bytenet"}),
}
OF_ALL = {"data.filters.max_tokens": 64, "train.batch_tokens": 2048, "train.precision": "float32"}


def recipe_of(name: str) -> Recipe:
    preset, changes = SIZES[name]
    return make_recipe({"preset": preset} if preset else {}, {**OF_ALL, **changes})


def measure(name: str) -> dict[str, float]:
    """Train three updates in this process, and measure what the plan foretells."""
    recipe = recipe_of(name)
    prepare_process(1)
    batches = batches_of(recipe, LENGTH, None)
    idle = warm(recipe)
    model = batches.task.build(recipe, batches.task.tokenizers)
    step = TrainingStep(model, batches.task.loss, recipe)
    largest = [batches.largest] * recipe.train.accumulate
    step.update(largest, 1)
    allocated = sum(
        tensor.nbytes for tensor in (*weights(model).values(), *optimizer_tensors(step.optimizer, model).values())
    )
    with torch.profiler.profile(profile_memory=True) as profile:
        step.update(largest, 2)
    peak = allocated + most_allocated(profile)
    resident = int(record.peak() * 1e9) - idle
    begin = time.process_time()
    step.update([batches.typical] * recipe.train.accumulate, 4)
    seconds = time.process_time() - begin
    flops = count_flops(lambda: step.update([batches.typical] * recipe.train.accumulate, 5))
    share = flops / seconds / product_flops(step.precision.dtype)
    return {
        "memory": peak,
        "resident": resident,
        "flops": flops,
        "checkpoint": saved_size(step),
        "utilisation": share,
    }


def most_allocated(profile: torch.profiler.profile) -> int:
    """Return the most bytes that torch's allocator had given out at a time, beside what there was before."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(path))
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    changes = sorted((event["ts"], event["args"]["Bytes"]) for event in events if event["name"] == "[memory]")
    return max(accumulate(size for _, size in changes))


def warm(recipe: Recipe) -> int:
    """Let torch load its kernels in a small step; return the memory of the process after that."""
    recipe = make_recipe(
        recipe, {"train.batch_tokens": 64, "model.d_model": 16, "tokenizer.vocab_size": 300} | thin(recipe)
    )
    batches = batches_of(recipe, 8, None)
    model = batches.task.build(recipe, batches.task.tokenizers)
    TrainingStep(model, batches.task.loss, recipe).update([batches.typical], 1)
    return int(record.peak() * 1e9)


def thin(recipe: Recipe) -> dict[str, Any]:
    """Changes that make a Transformer small."""
    return {"model.d_ff": 16, "model.heads": 2} if recipe.model.architecture == "transformer" else {}


def product_flops(dtype: torch.dtype) -> float:
    """Measure the FLOPs of a product of matrices in a second of processor time, at best."""
    matrix, seconds = torch.ones(SIZE, SIZE, dtype=dtype), []
    for _ in range(5):
        begin = time.process_time()
        torch.mm(matrix, matrix)
        seconds.append(time.process_time() - begin)
    return 2 * SIZE**3 / min(seconds)


def saved_size(step: TrainingStep) -> int:
    """Return the size of the two files of tensors in a checkpoint."""
    return len(save(weights(step.model))) + len(save(optimizer_tensors(step.optimizer, step.model)))


def planned(name: str) -> dict[str, float]:
    """Plan the updates that `measure` makes."""
    plan = make_plan(recipe_of(name), Hardware(gpu="cpu", length=LENGTH))
    return {
        "memory": plan.memory.peak,
        "flops": plan.work.flops,
        "checkpoint": plan.checkpoints.bytes,
        "utilisation": plan.speed.utilisation,
    }


def in_a_process(name: str, what: str) -> dict[str, float]:
    command = [sys.executable, __file__, "--one", name, "--what", what]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--one", choices=SIZES, help="measure or plan one recipe in this process")
    parser.add_argument("--what", choices=("measured", "planned"), default="planned")
    parser.add_argument("--sizes", nargs="*", default=list(SIZES))
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(measure(asked.one) if asked.what == "measured" else planned(asked.one)))
        return
    print(f"{'':22} {'memory, MB':>24} {'GFLOP':>24} {'checkpoint, MB':>20} utilisation")
    for name in asked.sizes:
        both = {what: in_a_process(name, what) for what in ("planned", "measured")}
        mine, real = both["planned"], both["measured"]
        cells = [
            f"{mine[key] / scale:9.1f} {real[key] / scale:9.1f} {mine[key] / real[key] - 1:+6.1%}"
            for key, scale in (("memory", 1e6), ("flops", 1e9), ("checkpoint", 1e6))
        ]
        print(f"{name:22}", *cells, f"{mine['utilisation']:.0%} {real['utilisation']:.0%}", flush=True)
        record.append(__file__, {**record.machine(1), "recipe": name, **both})


if __name__ == "__main__":
    main()
