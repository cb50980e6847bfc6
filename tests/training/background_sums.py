"""One of the processes of `test_gradient_sums.py`: trains with sums that begin in the backward pass, and without."""

import json
import sys
from pathlib import Path
from unittest.mock import patch

import torch
import torch.distributed as dist
from toy_step import CPU, learner, rows

from heedful.distributed import gradient_sums
from heedful.distributed.reducer import ProcessGroup, end_process, join_process_group
from heedful.losses import Loss
from heedful.tasks.parts.sequence_to_sequence import collate
from heedful.training.training_step import TrainingStep

SIZE = 1000  # elements of a bucket: the toy model has several
COUNTS = (6, 4, 1, 3)  # batches of each update: two each, two in one process only, one in all, one each
CASES = {
    "float32": {"dropout": 0.1, "clip_norm": 0.3},
    "bfloat16": {"precision": "bfloat16", "norm": "pre"},
    "frozen": {"frozen": ("encoder",), "activation_checkpointing": True},
}


class Afterwards(ProcessGroup):
    """Sums gradients when the backward pass has ended, one bucket after another."""

    def gradient_sums(self, model):
        return None

    @torch.no_grad()
    def sum_gradients(self, model, sums=None):
        assert sums is None
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        known = torch.tensor([parameter.grad is not None for parameter in parameters], dtype=torch.uint8)
        dist.all_reduce(known, dist.ReduceOp.MAX)
        if not known[0]:  # `never`, which has a bucket of its own
            parameters = parameters[1:]
        for bucket in gradient_sums.buckets(parameters):
            grads = [torch.zeros_like(one) if one.grad is None else one.grad for one in bucket]
            flat = torch.cat([grad.flatten() for grad in grads])
            dist.all_reduce(flat)
            for parameter, part in zip(bucket, flat.split([len(grad.flatten()) for grad in grads]), strict=True):
                parameter.grad = part.view_as(parameter)


def batch(place):
    return collate(rows(3, 5, 2), rows(4, 2, 5 + place), CPU)


def trained(reducer, options):
    """The weights and losses after some updates, and the number of sums that had begun when each pass had ended."""
    plain, largest, begun = learner(**options), batch(5), []
    never, sometimes = (torch.nn.Parameter(torch.full((SIZE,), 0.1)) for _ in range(2))
    model = torch.nn.Module()
    model.never, model.translator = never, plain.model
    model.last = torch.nn.ParameterList([sometimes])

    def objective(model, batch):
        (term,) = plain.objective(model.translator, batch)
        extra = model.last[0].sum() if batch.target_tokens < largest.target_tokens else 0.0
        return [Loss(term.sum + extra, term.nll, term.count)]

    step = TrainingStep(model, objective, plain.recipe, reducer)
    summed = reducer.sum_gradients

    def noted(model, sums=None):
        begun.append(len(sums.works) if sums else 0)
        summed(model, sums)

    losses = []
    with patch.object(reducer, "sum_gradients", noted):
        for number, count in enumerate(COUNTS, start=1):
            batches = [batch(place) for place in range(count)]
            losses.append(str(step.update(list(reducer.shard(batches)), number, count)))
    assert never.grad is None
    weights = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    return weights, losses, begun


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    gradient_sums.BUCKET = SIZE
    found = {}
    with join_process_group(minutes=2, device="cpu") as reducer:
        after = Afterwards(reducer.store, reducer.seconds)
        for name, options in CASES.items():
            (weights, losses, begun), (expected, others, _) = (trained(one, options) for one in (reducer, after))
            equal = torch.equal(weights, expected) and losses == others
            found[name] = {"equal": equal, "same": len({*reducer.all_gather(float(weights.sum()))}), "begun": begun}
        (folder / f"{reducer.rank}.json").write_text(json.dumps(found))
        reducer.all_gather(0)
    end_process(0)


main(Path(sys.argv[1]))
