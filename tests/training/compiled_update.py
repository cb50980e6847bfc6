"""Write the losses and gradient norms of two updates, plain and compiled, as JSON.

A script of its own, because torch.compile cannot trace the run-time checks of shapes that tests have.
"""

import json
import sys

from toy_step import CPU, learner, rows

from heedful.nn.named_stacks import stacks
from heedful.tasks.parts.sequence_to_sequence import collate
from heedful.training.training_step import TrainingStep


def updates(step: TrainingStep) -> list[dict[str, object]]:
    batch = collate(rows(7, 5), rows(5, 3), CPU)
    done = [step.update([batch], number) for number in (1, 2)]
    return [{"losses": one.losses, "norm": one.norm} for one in done]


if __name__ == "__main__":
    plain, compiled = learner(encoder_layers=1), learner(encoder_layers=1)
    for stack in stacks(compiled.precision.replica):
        stack.compile(dynamic=True)
    sys.stdout.write(json.dumps([updates(plain), updates(compiled)]))
