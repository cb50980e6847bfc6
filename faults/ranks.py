"""Several processes against one: replicated and sharded (FSDP2), and checkpoints that change the number of processes.

Trials: 2 processes and 2 batches an update, to the last bit; 3 and 4 processes and as many batches, within 1e-6 of the
loss over 200 updates; saved by A processes and loaded by B, for A and B in 1 to 4. Each of the first is done for a
translator, a GPT, a BERT and an LSTM. `--count` takes the first so many trials.
"""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import tally
import torch
from torch import Tensor, nn

from heedful.architectures import LanguageModel, MaskedLanguageModel, load_weights, model_class, weights
from heedful.architectures.recurrent.settings import RecurrentConfig
from heedful.checkpoint import Checkpoint, Checkpoints, store_of
from heedful.config.schema import ModelConfig, OptimizerConfig, Recipe, TextModelConfig, TrainConfig
from heedful.distributed.launch import launch
from heedful.distributed.reducer import (
    SINGLE_PROCESS,
    ProcessGroup,
    Reducer,
    ShardedGroup,
    end_process,
    join_process_group,
)
from heedful.distributed.shards import whole
from heedful.losses import Loss, cross_entropy
from heedful.nn.masks import AttentionMask
from heedful.optim import load_optimizer_tensors, optimizer_tensors
from heedful.text.tokenizer_pair import NoTokenizers
from heedful.training.training_step import TrainingStep

VOCABULARY = 29
UPDATES = 200
FEW = 3  # trials, up to which they are for a look only, of as many updates
CLOSE = 1e-6  # relative difference of a loss

TRANSFORMER = ModelConfig(d_model=16, d_ff=23, heads=2, encoder_layers=1, decoder_layers=1, dropout=0.1)
CONFIGS: dict[str, TextModelConfig] = {
    "translator": TRANSFORMER,
    "gpt": replace(TRANSFORMER, family="decoder", positions="learned", norm="pre"),
    "bert": replace(TRANSFORMER, family="encoder", positions="learned"),
    "lstm": RecurrentConfig(d_model=16, dropout=0.1),
}


@dataclass(frozen=True)
class Rows:
    """A batch of ids: what is read, and what is to be predicted."""

    read: Tensor
    predicted: Tensor

    @property
    def tokens(self) -> int:
        """The number of tokens that are predicted."""
        return self.predicted.numel()

    @property
    def counts(self) -> tuple[int, ...]:
        """The divisor of the loss."""
        return (self.tokens,)


def rows(key: int) -> Rows:
    """Draw a batch: sequences and the same in reverse."""
    random = torch.Generator().manual_seed(key)
    ids = torch.randint(4, VOCABULARY, (int(torch.randint(2, 6, (1,), generator=random)), 7), generator=random)
    return Rows(ids, ids.flip(1))


def build(name: str) -> nn.Module:
    """Build a small model, always the same one."""
    torch.manual_seed(3)
    config = CONFIGS[name]
    if isinstance(config, ModelConfig) and config.family == "decoder":
        return LanguageModel(config, VOCABULARY)
    if isinstance(config, ModelConfig) and config.family == "encoder":
        return MaskedLanguageModel(config, VOCABULARY, pairs=False)
    return model_class(config)(config, VOCABULARY, VOCABULARY)


def objective(model: Any, batch: Rows) -> list[Loss]:
    """Compute the loss of a batch for any of the models."""
    real = torch.ones_like(batch.read, dtype=torch.bool)
    if isinstance(model, LanguageModel):
        hidden = model.hidden(batch.read, AttentionMask(real, batch.read.size(1), causal=True))
    elif isinstance(model, MaskedLanguageModel):
        hidden = model.transform(model.backbone(batch.read, real))
    else:
        hidden = model.hidden(batch.read, real, batch.predicted.roll(1, 1), real)
    return [cross_entropy(hidden[real], model.output.weight, batch.predicted[real], 0.1, model.output.bias)]


def training_step(name: str, reducer: Reducer) -> TrainingStep:
    """Make the training step of a model."""
    optimizer = OptimizerConfig(name="adamw", lr=3e-3, schedule="constant", warmup=0, weight_decay=0.01, clip_norm=1.0)
    recipe = Recipe(optimizer=optimizer, train=TrainConfig(precision="float32"))
    return TrainingStep(build(name), objective, recipe, reducer)


def train(step: TrainingStep, numbers: Sequence[int], batches: int) -> list[float]:
    """Perform updates by their numbers, each with so many batches; return the loss of each."""
    losses = []
    for number in numbers:
        places = step.reducer.shard(step.reducer.pad_to_world_size(range(batches)))
        done = step.update([rows(1000 * number + place) for place in places], number, batches)
        losses.append(done.losses[0] / done.counts[0])
    return losses


def whole_weights(model: nn.Module) -> list[Tensor]:
    """Gather the weights of a model."""
    return [whole(value) for value in weights(model).values()]


def apart(found: Sequence[float], wanted: Sequence[float]) -> float:
    """Return the largest relative difference of two sequences of losses."""
    return max(abs(a - b) / abs(b) for a, b in zip(found, wanted, strict=True))


def compare(reducer: Reducer, name: str, updates: int) -> tuple[float, bool]:
    """Train with all processes and alone; return how far the losses are apart, and if weights and losses are equal."""
    together, alone = training_step(name, reducer), training_step(name, SINGLE_PROCESS)
    numbers, batches = range(1, updates + 1), reducer.world_size
    losses, expected = train(together, numbers, batches), train(alone, numbers, batches)
    same = [torch.equal(a, b) for a, b in zip(whole_weights(together.model), whole_weights(alone.model), strict=True)]
    return apart(losses, expected), losses == expected and all(same)


def save(reducer: Reducer, folder: Path) -> None:
    """Train with all processes, and save a checkpoint."""
    step = training_step("translator", reducer)
    train(step, range(1, 6), 4)
    own, optimizer = weights(step.model), optimizer_tensors(step.optimizer, step.model)
    facts: dict[str, Any] = {"recipe": step.recipe, "tokenizers": NoTokenizers(), "state": {"losses": []}}
    checkpoint = Checkpoint(step=5, weights=own, optimizer=optimizer, **facts)
    if reducer.saves:
        store_of(Checkpoints(folder, keep_last=1), reducer).save(checkpoint)


def load(reducer: Reducer, folder: Path) -> float:
    """Load a checkpoint, and go on with all processes; return how far the losses are from those of one process."""
    saved = Checkpoints(folder, keep_last=1).load_latest(strict=True).checkpoint if reducer.is_rank_zero else None
    step = training_step("translator", reducer)
    load_weights(step.model, reducer.broadcast_tensors(saved.weights if saved else {}))
    optimizer = reducer.broadcast_tensors(saved.optimizer if saved else {})
    load_optimizer_tensors(step.optimizer, step.model, optimizer)
    alone = training_step("translator", SINGLE_PROCESS)
    expected = train(alone, range(1, 11), 4)[5:]
    return apart(train(step, range(6, 11), 4), expected)


def work(folder: Path, kind: str, shard: str, *further: str) -> None:
    """Do the work of one process, and let the first one write what came out of it."""
    torch.set_num_threads(1)

    def group(store: Any, seconds: float) -> Reducer:
        sizes = {"full": torch.distributed.get_world_size(), "hybrid": torch.distributed.get_world_size() // 2}
        return ShardedGroup(store, seconds, sizes[shard], "cpu") if shard in sizes else ProcessGroup(store, seconds)

    with join_process_group(5, "cpu", group) as reducer:
        if kind == "compare":
            name, updates = further
            found: Any = compare(reducer, name, int(updates))
        else:
            found = {"save": save, "load": load}[kind](reducer, folder / "run")
        if reducer.is_rank_zero:
            (folder / "found.json").write_text(json.dumps(found))
        reducer.all_gather(0)
    end_process(0)


def together(processes: int, folder: Path, kind: str, shard: str, *further: str) -> Any:
    """Let several processes do some work; return what came out of it."""
    code = launch([sys.executable, __file__, "--work", str(folder), kind, shard, *further], processes)
    assert code == 0, f"exit code {code}"
    return json.loads((folder / "found.json").read_text())


def trials(updates: int) -> list[tuple[str, Callable[[Path], None]]]:
    """List all trials, with their names."""
    listed: list[tuple[str, Callable[[Path], None]]] = []
    for processes in (2, 3, 4):
        for shard in ("full", "none", *(["hybrid"] if processes == 4 else [])):
            for name in CONFIGS:

                def trial(folder: Path, name: str = name, processes: int = processes, shard: str = shard) -> None:
                    distance, same = together(processes, folder, "compare", shard, name, str(updates))
                    sys.stdout.write(f"{processes} processes, {shard}, {name}: {'the same' if same else distance}\n")
                    assert same if processes == 2 else distance <= CLOSE

                listed.append((f"{name} in {processes} processes, shard = {shard}", trial))
    for before in (1, 2, 3, 4):
        for after in (1, 2, 3, 4):

            def change(folder: Path, before: int = before, after: int = after) -> None:
                together(before, folder, "save", "full")
                distance = together(after, folder, "load", "full")
                sys.stdout.write(f"saved by {before}, loaded by {after}: {distance}\n")
                assert distance <= CLOSE

            listed.append((f"saved by {before} processes and loaded by {after}", change))
    return listed


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the trials."""
    asked = tally.options(__doc__, len(trials(UPDATES)), arguments)
    listed = trials(UPDATES if asked.count > FEW else FEW)
    found = tally.Tally(__file__, asked)
    for name, trial in listed[: asked.count]:
        with found.trial(name), TemporaryDirectory() as folder:
            trial(Path(folder))
    return found.conclude()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(Path(sys.argv[2]), *sys.argv[3:])
    sys.exit(main())
