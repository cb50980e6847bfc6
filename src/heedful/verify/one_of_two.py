"""One of the processes that `of_training.several_processes` starts, with the folder of a model and a seed."""

import sys
from pathlib import Path

import torch

from heedful.checkpoint.load import load_model
from heedful.checkpoint.tensors import tensor_file
from heedful.models import weights
from heedful.parallel import end_process, join_process_group
from heedful.verify.of_training import trained
from heedful.verify.subject import subject_of


def main(folder: Path, seed: int) -> None:
    """Train the model of a folder together with the others, and write the weights beside it."""
    torch.set_num_threads(1)
    loaded = load_model(folder / "model")
    with join_process_group(minutes=5) as reducer:
        step = trained(subject_of(loaded, seed), loaded.recipe, reducer)
        if reducer.is_first:
            (folder / "shared.safetensors").write_bytes(b"".join(tensor_file(weights(step.model))))
    end_process(0)


main(Path(sys.argv[1]), int(sys.argv[2]))
