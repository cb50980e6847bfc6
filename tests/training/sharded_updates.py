"""One of the processes of `test_sharding.py`: trains sharded models, and compares them with whole ones."""

import json
import sys
from functools import partial
from pathlib import Path

import pytest
import torch
from toy_step import CPU, learner, rows

from heedful.architectures import load_weights, weights
from heedful.checkpoint import Checkpoint, Checkpoints, store_of
from heedful.checkpoint.run_layout import Best
from heedful.config.schema import LoraConfig
from heedful.distributed.reducer import SINGLE_PROCESS, ProcessGroup, ShardedGroup, end_process, join_process_group
from heedful.distributed.shards import whole
from heedful.errors import InputError, RunError
from heedful.nn.named_stacks import stacks
from heedful.optim import load_optimizer_tensors, optimizer_tensors
from heedful.storage.disk import Storage
from heedful.tasks.parts.sequence_to_sequence import collate
from heedful.text.tokenizer_pair import NoTokenizers
from heedful.training.loss_scale import MAX_FACTOR, LossScale

CASES = {
    "post-norm with dropout and clipping": {"dropout": 0.1, "clip_norm": 0.3, "weight_decay": 0.01},
    "muon": {"name": "muon", "weight_decay": 0.01},
    "bfloat16": {"precision": "bfloat16", "norm": "pre", "dropout": 0.1},
    "autocast": {"precision": "autocast"},
    "frozen": {"frozen": ("encoder", "decoder.blocks.0.feed_forward.down"), "dropout": 0.1, "clip_norm": 0.3},
    "lora": {"lora": LoraConfig(rank=3, dropout=0.1), "dropout": 0.1, "clip_norm": 0.3},
    "computed again": {"activation_checkpointing": True, "dropout": 0.1},
    "compiled and computed again": {"compile": True, "activation_checkpointing": True},
    "float16": {"precision": "float16", "dropout": 0.1},
}


class FullDisk(Storage):
    """A disk of one process that takes no weights while it is full."""

    full = False

    def create(self, path):
        if self.full and path.name.startswith("model-"):
            raise OSError(28, "No space left on device")
        return super().create(path)


def batches(number, count):
    return [collate(rows(3 + number, 5, 2), rows(4, 2, 5 + place), CPU) for place in range(count)]


def trained(reducer, counts, **options):
    """A training step after updates of so many batches."""
    step, losses = learner(reducer=reducer, **options), []
    if step.loss_scale is not None:
        step.loss_scale = LossScale(MAX_FACTOR)  # too large, at least for the gradients of one process
    for number, count in enumerate(counts, start=1):
        own = list(reducer.shard(reducer.pad_to_world_size(batches(number, count))))
        losses.append(vars(step.update(own, number, count)))
    return step, losses


def difference(reducer, counts, options) -> float:
    """The largest difference of a weight of a model that all processes train from the one that is trained alone."""
    together, losses = trained(reducer, counts, **options)
    alone, expected = trained(SINGLE_PROCESS, counts, **{**options, "compile": False})
    if reducer.world_size == 2:
        tolerance = 1e-6 if "lora" in options else 0  # a gathered matrix of 3 rows is not aligned to registers
        for ours, others in zip(losses, expected, strict=True):
            for key, value in ours.items():
                assert value == pytest.approx(others[key], rel=tolerance, abs=0), key
    pairs = zip(weights(together.model).values(), weights(alone.model).values(), strict=True)
    return max(float((whole(own) - other).abs().max()) for own, other in pairs)


def checkpoint(step, number):
    own, optimizer = weights(step.model), optimizer_tensors(step.optimizer, step.model)
    facts = {"recipe": step.recipe, "tokenizers": NoTokenizers(), "state": {"a": 0.1}}
    return Checkpoint(step=number, weights=own, optimizer=optimizer, **facts)


def saving(reducer, folder):
    """Save, meet a full disk in one process, save again, mark, load."""
    disk = FullDisk()
    checkpoints = Checkpoints(folder / "run", 1, disk)
    store = store_of(checkpoints, reducer)
    step, _ = trained(reducer, [2])
    store.save(checkpoint(step, 1))
    disk.full = reducer.rank == 1
    try:
        store.save(checkpoint(step, 2))
        said = "nothing"
    except RunError as error:
        said = str(error)
    left = reducer.broadcast_object(lambda: sorted(path.name for path in (folder / "run" / "checkpoints").iterdir()))
    disk.full = False
    store.save(checkpoint(step, 2))
    store.mark_best(1, "bleu", 0.5)
    loaded = checkpoints.load_latest(strict=True).checkpoint
    fresh = learner(reducer=reducer)
    load_weights(fresh.model, loaded.weights)
    load_optimizer_tensors(fresh.optimizer, fresh.model, loaded.optimizer)
    for one in (step, fresh):
        one.update(list(reducer.shard(batches(2, 2))), 2)
    again = zip(weights(step.model).values(), weights(fresh.model).values(), strict=True)
    same = [torch.equal(whole(a), whole(b)) for a, b in again]
    return {
        "said": said,
        "left": left,
        "steps": store.steps(),
        "best": store.best == Best(1, "bleu", 0.5),
        "state": loaded.state,
        "goes on": all(same),
    }


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    torch.compile = partial(torch.compile, backend="aot_eager")  # traced, but without the minutes of generating code
    found = {}

    def group(store, seconds):
        found["store"] = store
        return ProcessGroup(store, seconds)

    with join_process_group(minutes=8, device="cpu", group=group) as plain:
        store = found.pop("store")
        reducer = ShardedGroup(store, 480, 2, "cpu")
        if plain.world_size == 2:
            for name, options in CASES.items():
                counts = (2,) if "compile" in options else (2, 1)  # the first batches suffice to trace the blocks
                found[name] = difference(reducer, counts, options)
            found["saving"] = saving(reducer, folder)
            try:
                ShardedGroup(store, 120, 3, "cpu")
            except InputError as error:
                found["refused"] = str(error)
        else:
            found["hybrid"] = difference(reducer, (4, 3), {"dropout": 0.1, "clip_norm": 0.3, "eps": 1e-3})
            found["muon"] = difference(reducer, (4,), {"name": "muon", "eps": 1e-3})
            step, _ = trained(reducer, (4,))
            found["held"] = [
                tuple(p.to_local().shape) for p in stacks(step.model)[0].blocks[0].feed_forward.parameters()
            ]
            store_of(Checkpoints(folder / "run", 1), reducer).save(checkpoint(step, 1))
        if reducer.is_rank_zero:
            (folder / "found.json").write_text(json.dumps(found))
        reducer.all_gather(0)
    end_process(0)


main(Path(sys.argv[1]))
