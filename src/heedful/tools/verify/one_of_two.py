"""Train a model in one of several processes: the program that `heedful verify` starts in each of its two processes.

Arguments: the folder of the model, a seed, and the modules of the user's own that it needs.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from heedful.architectures import weights
from heedful.checkpoint.load import load_model
from heedful.checkpoint.tensors import tensor_file
from heedful.config.schema import ParallelConfig
from heedful.config.user_code import import_user_module
from heedful.distributed import end_process, end_with_error, join_process_group, kind_of_group, whole
from heedful.errors import HeedfulError
from heedful.tools.verify.of_training import MINUTES, trained, weight_files
from heedful.tools.verify.subjects import subject_of


def main(folder: Path, seed: int, modules: Sequence[str]) -> None:
    """Train the model of a folder with the other process, and write the weights next to it.

    The weights are whole in both processes and then, if they can be, sharded.
    """
    torch.set_num_threads(1)
    for module in modules:
        import_user_module(module)
    loaded = load_model(folder / "model")
    for shard, file in weight_files(loaded.model).items():
        with join_process_group(MINUTES, "cpu", kind_of_group(ParallelConfig(shard=shard), "cpu")) as reducer:
            step = trained(subject_of(loaded, seed), loaded.recipe, reducer)
            tensors = {name: whole(value) for name, value in weights(step.model).items()}
            if reducer.is_rank_zero:
                (folder / file).write_bytes(b"".join(tensor_file(tensors)))
    end_process(0)


try:
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
except HeedfulError as error:
    end_with_error(error)
