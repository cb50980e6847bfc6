"""One of the processes of `test_process_group.py`: writes what it gets from the others."""

import json
import sys
import time
from pathlib import Path

import torch

from heedful.distributed import gradient_sums
from heedful.distributed.reducer import end_process, join_process_group


def main(folder: Path) -> None:
    gradient_sums.BUCKET = 11
    with join_process_group(minutes=1) as reducer:
        rank = reducer.rank
        prepared = folder / "prepared"

        def prepare() -> list[int]:
            if rank == 0:
                time.sleep(0.5)  # so that the others would come first
            with prepared.open("a") as file:
                file.write(f"{rank}\n")
            return [int(line) for line in prepared.read_text().split()]

        model = torch.nn.ModuleList([torch.nn.Linear(3, 5), torch.nn.Linear(5, 7), torch.nn.Linear(7, 1, bias=False)])
        model[0].weight.grad = torch.full((5, 3), 2.0**rank)
        if rank == 1:
            model[1].bias.grad = torch.arange(7.0)
        reducer.sum_gradients(model)
        table = torch.nn.Embedding(11, 2, sparse=True)
        if rank != 1:
            table(torch.tensor([7, rank, 7])).sum().backward()
        reducer.sum_gradients(table)
        tensors = {"a": torch.full((2, 3), 0.1), "b": torch.arange(5)} if rank == 0 else {}
        shared = reducer.broadcast_tensors(tensors)
        found = {
            "gathered": reducer.all_gather({"rank": rank, "text": "é" * rank, "value": 0.1 * rank}),
            "first": reducer.broadcast_object(lambda: [rank, 0.1, None]),
            "in order": reducer.all_gather_in_order([10 * item for item in reducer.shard(range(7))]),
            "after first": reducer.rank_zero_first(prepare),
            "tensors": {name: tensor.tolist() for name, tensor in shared.items()},
            "gradients": [None if p.grad is None else p.grad.flatten().tolist() for p in model.parameters()],
            "rows": table.weight.grad.to_dense().tolist(),
        }
        (folder / f"{rank}.json").write_text(json.dumps(found))
    end_process(0)


main(Path(sys.argv[1]))
