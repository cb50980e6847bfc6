"""Train a model in one of several processes: the program that `heedful verify` runs in each of its two processes.

Arguments: a folder that contains the model in `model`, a seed, and the user's modules that the model needs.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from heedful.architectures import weights
from heedful.checkpoint.load import load_model
from heedful.checkpoint.safetensors_format import tensor_file
from heedful.config.schema import ParallelConfig
from heedful.config.user_code import import_user_module
from heedful.distributed.reducer import end_process, end_with_error, join_process_group, reducer_factory
from heedful.distributed.shards import whole
from heedful.errors import HeedfulError
from heedful.tools.verify.subjects import subject_of
from heedful.tools.verify.training_checks import MAX_WAIT, train_copy, weight_files


def main(folder: Path, seed: int, modules: Sequence[str]) -> None:
    """Train the model in `folder / "model"` together with the other process, and write the weights to `folder`.

    First both processes have all weights; then, if possible, the weights are sharded.
    """
    torch.set_num_threads(1)
    for module in modules:
        import_user_module(module)
    loaded = load_model(folder / "model")
    for shard, file in weight_files(loaded.model).items():
        with join_process_group(MAX_WAIT, "cpu", reducer_factory(ParallelConfig(shard=shard), "cpu")) as reducer:
            step = train_copy(subject_of(loaded, seed), loaded.recipe, reducer)
            tensors = {name: whole(value) for name, value in weights(step.model).items()}
            if reducer.is_rank_zero:
                (folder / file).write_bytes(b"".join(tensor_file(tensors)))
    end_process(0)


try:
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
except HeedfulError as error:
    end_with_error(error)
