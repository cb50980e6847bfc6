"""Write the losses and gradient norms of two updates, plain and with compiled blocks, as JSON.

A script of its own, because torch.compile cannot trace the run-time checks of shapes that tests have.
"""

import json
import sys
from functools import partial
from unittest.mock import patch

import torch
from torch._dynamo.utils import counters
from toy_step import CPU, learner, rows

from heedful.architectures.transformer.layers import Block
from heedful.tasks.parts.sequence_to_sequence import collate

COMPILE = torch.compile
traced = partial(torch.compile, backend="aot_eager")  # as traced by the compiler, which then generates no code


def compiled(forward, **options):
    """Code for encoder blocks alone, as to generate it takes longest."""
    compiler = COMPILE if type(forward.__self__) is Block else traced
    return compiler(forward, **options)


def updates(compiler=None, **options) -> list[dict[str, object]]:
    with patch.object(torch, "compile", compiler):
        step = learner(encoder_layers=3, compile=compiler is not None, **options)
    batches = [collate(rows(7, 5), rows(5, 3), CPU), collate(rows(4, 9, 2), rows(8, 2, 3), CPU)]
    done = [step.update([batch], number) for number, batch in enumerate(batches, start=1)]
    return [{"losses": one.losses, "norm": one.norm} for one in done]


if __name__ == "__main__":
    found = {"plain": updates(), "compiled": updates(compiled)}
    found["recomputed"] = updates(compiled, activation_checkpointing=True)
    found["graphs"] = counters["stats"]["unique_graphs"]
    sys.stdout.write(json.dumps(found))
