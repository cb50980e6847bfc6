from dataclasses import replace

import pytest
import torch

from heedful.architectures import weights
from heedful.config.load import make_recipe
from heedful.config.schema import Recipe
from heedful.machine.speed import count_flops
from heedful.nn.paper import CPU, GPU
from heedful.optim import optimizer_tensors
from heedful.tools.plan.data import PlannedBatches, batches_of
from heedful.tools.plan.update import UpdateOnPaper
from heedful.training.training_step import TrainingStep

LENGTH = 11
OF_ALL = {
    "tokenizer.vocab_size": 97,
    "train.batch_tokens": 187,
    "train.precision": "float32",
    "data.max_length": 23,
    "data.filters.max_tokens": 17,
    "model.dropout": 0.1,
}
TRANSFORMER = {"model.d_model": 20, "model.d_ff": 29, "model.heads": 2}
ARCHITECTURES = {
    "encoder-decoder": {**TRANSFORMER, "model.encoder_layers": 3, "model.decoder_layers": 2},
    "BERT": {
        **TRANSFORMER,
        "task": "masked_lm",
        "tokenizer.mask": True,
        "model.family": "encoder",
        "model.encoder_layers": 3,
        "model.segments": 2,
    },
    "GPT": {**TRANSFORMER, "task": "language_model", "model.family": "decoder", "model.decoder_layers": 3},
    "GPT of latents and experts": {
        **TRANSFORMER,
        "task": "language_model",
        "model.family": "decoder",
        "model.decoder_layers": 2,
        "model.positions": "rotary",
        "model.attention": "latent",
        "model.feed_forward": "experts",
        "model.experts": 3,
        "model.shared_experts": 1,
    },
    "GPT with a window": {
        **TRANSFORMER,
        "task": "language_model",
        "model.family": "decoder",
        "model.decoder_layers": 2,
        "model.positions": "alibi",
        "model.window": 5,
    },
    "GPT of linear attention": {
        **TRANSFORMER,
        "task": "language_model",
        "model.family": "decoder",
        "model.decoder_layers": 2,
        "model.attention": "linear",
    },
    "LSTM": {"model.architecture": "recurrent", "model.d_model": 14},
    "GRU language model": {
        "task": "language_model",
        "model.architecture": "recurrent",
        "model.cell": "gru",
        "model.family": "decoder",
        "model.d_model": 14,
    },
    "convolutional": {"model.architecture": "convolutional", "model.d_model": 14},
    "bytenet": {
        "model.architecture": "bytenet",
        "model.d_model": 14,
        "model.encoder_layers": 3,
        "model.decoder_layers": 3,
    },
}


def recipe_of(changes: dict) -> Recipe:
    return make_recipe({}, {**OF_ALL, **changes})


def real_step(recipe: Recipe, batches: PlannedBatches) -> TrainingStep:
    model = batches.task.build(recipe, batches.task.tokenizers)
    return TrainingStep(model, batches.task.loss, recipe)


@pytest.fixture(params=ARCHITECTURES)
def recipe(request: pytest.FixtureRequest) -> Recipe:
    return recipe_of(ARCHITECTURES[request.param])


@pytest.mark.sampled(2)
def test_planned_flops_are_those_that_torch_counts_in_a_real_update(recipe: Recipe) -> None:
    batches = batches_of(recipe, LENGTH, None)
    step = real_step(recipe, batches)
    counted = count_flops(lambda: step.update([batches.typical], 1))
    assert sum(UpdateOnPaper(batches.task, recipe, CPU).flops(batches.typical)) == counted > 0


def test_planned_state_is_what_a_real_update_leaves(recipe: Recipe) -> None:
    batches = batches_of(recipe, LENGTH, None)
    step = real_step(recipe, batches)
    step.update([batches.typical], 1)
    update = UpdateOnPaper(batches.task, recipe, CPU)
    kept = sum(tensor.nbytes for tensor in weights(step.model).values())
    buffers = sum(buffer.nbytes for buffer in step.model.buffers())
    assert update.weights == kept + buffers
    assert update.optimizer == sum(t.nbytes for t in optimizer_tensors(step.optimizer, step.model).values())


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "muon"])
def test_the_state_of_each_optimizer_is_planned(optimizer: str) -> None:
    recipe = recipe_of({**ARCHITECTURES["GPT"], "optimizer.name": optimizer})
    batches = batches_of(recipe, LENGTH, None)
    step = real_step(recipe, batches)
    step.update([batches.typical], 1)
    real = sum(tensor.nbytes for tensor in optimizer_tensors(step.optimizer, step.model).values())
    assert UpdateOnPaper(batches.task, recipe, CPU).optimizer == UpdateOnPaper(batches.task, recipe, GPU).optimizer
    assert UpdateOnPaper(batches.task, recipe, CPU).optimizer == real


def test_a_bfloat16_copy_takes_half_of_the_weights() -> None:
    recipe = recipe_of(ARCHITECTURES["GPT"])
    batches = batches_of(recipe, LENGTH, None)
    half = replace(recipe, train=replace(recipe.train, precision="bfloat16"))
    update = UpdateOnPaper(batches.task, half, GPU)
    assert update.replica == update.weights // 2 > 0
    assert UpdateOnPaper(batches.task, recipe, GPU).replica == 0


def test_planned_activations_are_what_the_forward_pass_of_a_real_step_saves() -> None:
    recipe = recipe_of(ARCHITECTURES["GPT"])
    batches = batches_of(recipe, LENGTH, None)
    step, saved = real_step(recipe, batches), {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    own = {parameter.untyped_storage().data_ptr() for parameter in step.model.parameters()}
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = batches.task.loss(step.model, batches.largest)  # keeps the graph, so that no address is used twice
    real = sum(size for place, size in saved.items() if place not in own)
    planned = UpdateOnPaper(batches.task, recipe, CPU).memory(batches.largest, accumulates=True).activations
    assert loss
    assert planned == pytest.approx(real, rel=0.05)


def test_attention_weights_are_kept_on_a_cpu_and_not_on_a_gpu() -> None:
    kept = {}
    for length in (16, 64):
        recipe = recipe_of({**ARCHITECTURES["GPT"], "data.max_length": length, "train.batch_tokens": 256})
        batches = batches_of(recipe, LENGTH, None)
        for device in (CPU, GPU):
            update = UpdateOnPaper(batches.task, recipe, device)
            kept[device, length] = update.memory(batches.largest, accumulates=False).activations
    weights_of_attention = 4 * 2 * 3 * 256 * (64 - 16)  # bytes, heads, layers, queries, keys
    assert kept[CPU, 64] - kept[CPU, 16] >= weights_of_attention
    assert kept[GPU, 64] - kept[GPU, 16] < weights_of_attention / 2


def test_more_batches_an_update_keep_the_gradients_of_the_first() -> None:
    recipe = recipe_of(ARCHITECTURES["GPT"])
    batches = batches_of(recipe, LENGTH, None)
    update = UpdateOnPaper(batches.task, recipe, GPU)
    one, two = (update.memory(batches.largest, accumulates=several) for several in (False, True))
    assert two.peak == update.weights + update.optimizer + two.gradients + two.work
    assert one.work == two.work
    assert one.peak <= two.peak


def test_everything_is_released_after_an_update() -> None:
    recipe = recipe_of(ARCHITECTURES["encoder-decoder"])
    batches = batches_of(recipe, LENGTH, None)
    update = UpdateOnPaper(batches.task, recipe, GPU)
    before = update.paper.live
    update.memory(batches.largest, accumulates=True)
    own = sum(value.nbytes for value in vars(batches.largest).values() if isinstance(value, torch.Tensor))
    assert before <= update.paper.live <= before + own  # the ids and masks of the batch are there as long as it is


def test_flops_follow_the_formula_of_the_papers() -> None:
    """6 FLOPs for each weight of a matrix and token, and 12 d for each query and key of a layer, hidden or not."""
    recipe = recipe_of({**ARCHITECTURES["GPT"], "model.attention_bias": False})
    batches = batches_of(recipe, LENGTH, None)
    model, tokens = recipe.model, batches.typical.tokens
    products = model.decoder_layers * (4 * model.d_model**2 + 2 * model.d_model * model.d_ff)
    passes, _ = UpdateOnPaper(batches.task, recipe, CPU).flops(batches.typical)
    attention = 12 * model.decoder_layers * model.d_model * recipe.data.max_length
    output = 6 * model.d_model * 97
    # The loss pads its rows to a multiple of 64 tokens.
    assert passes == pytest.approx(tokens * (6 * products + attention + output), rel=0.05)
