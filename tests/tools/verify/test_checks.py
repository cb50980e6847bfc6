"""Every check passes on every architecture, and fails where a bug of its kind is planted."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import every_architecture
import toy_patches
import toy_retrieval
from children import stirred
from every_architecture import ENCODER_DECODERS, ENCODERS, LANGUAGE_MODELS, MEDIA_CLASSIFIERS, opinionated
from heedful.architectures import weights
from heedful.architectures.input_layers import media_and_text, media_to_text
from heedful.checkpoint.load import LoadedModel
from heedful.checkpoint.safetensors_format import read_tensors
from heedful.config.modalities import ImageConfig
from heedful.config.schema import Recipe
from heedful.convert import ctranslate2_export
from heedful.errors import RunError
from heedful.nn import attention, masks
from heedful.nn.frames import ConvolutionalFrames
from heedful.nn.kv_cache import KVCache
from heedful.nn.patches import LinearStem, MaskedPatchEmbedding, TubeletEmbedding
from heedful.optim import load_optimizer_tensors
from heedful.search.hypothesis import LENGTH_PENALTIES
from heedful.tasks import find_task
from heedful.text.tokenizer import BOS, PAD
from heedful.text.tokenizer_pair import NoTokenizers, TokenizerPair
from heedful.tools.verify import CHECKS, Check, checks, subject_of, training_checks
from heedful.tools.verify import subjects as subject_module
from heedful.tools.verify.training_checks import WEIGHT_FILES
from heedful.training.training_step import TrainingStep
from subjects import TOKENIZER

[SEVERAL] = [check for check in CHECKS if check.measure is training_checks.several_processes]
FAST = [check for check in CHECKS if check is not SEVERAL]
TRAINED = ("translation", "lstm with general attention")
HIDING = ("masked_patches", "linear")
LABELS = ("a", "b", "c")
BOTH = TokenizerPair(TOKENIZER, TOKENIZER)
TEXT_MODELS = {
    "translation": (ENCODER_DECODERS, lambda name: every_architecture.encoder_decoder(name, len(TOKENIZER))),
    "language_model": (LANGUAGE_MODELS, lambda name: every_architecture.language_model(name, len(TOKENIZER))),
    "classification": (ENCODERS, lambda name: every_architecture.text_classifier(name, 3, len(TOKENIZER))),
    "tagging": (ENCODERS, lambda name: every_architecture.token_classifier(name, 3, len(TOKENIZER))),
}
WRITERS = {"captioning": "image_classification", "speech_recognition": "audio_classification"}
PATCHES: dict[str, dict[str, object]] = {
    "linear": {},
    "learned positions": {"class_token": False, "positions": "learned"},
    "convolutional": {"stem": "convolutional", "size": [28, 20], "patch": 4, "channels": 3},
}
PAIRS: dict[str, dict[str, object]] = {
    "causal texts": {},
    "whole texts": {"text_causal": False, "text_pooling": "mean", "norm": "post"},
}


def of_text(task: str, name: str) -> LoadedModel:
    configs, make = TEXT_MODELS[task]
    recipe = Recipe(task=task, model=replace(configs[name], dropout=0.1))
    recipe = replace(recipe, data=replace(recipe.data, labels=LABELS, max_length=61))
    return LoadedModel(recipe, make(name), BOTH, Path("model"))


def of_media(task: str, name: str) -> LoadedModel:
    recipe = MEDIA_CLASSIFIERS[task][name]
    recipe = replace(recipe, data=replace(recipe.data, labels=LABELS), model=replace(recipe.model, dropout=0.1))
    return LoadedModel(recipe, every_architecture.of_media(task, name, 3), NoTokenizers(), Path("model"))


def of_media_and_written_text(task: str, name: str) -> LoadedModel:
    medium = MEDIA_CLASSIFIERS[WRITERS[task]][with_stem(WRITERS[task])]
    recipe = replace(medium, task=task, model=ENCODER_DECODERS[name])
    torch.manual_seed(3)
    return LoadedModel(recipe, opinionated(media_to_text(recipe, len(TOKENIZER))), BOTH, Path("model"))


def of_pictures_and_texts(task: str, name: str) -> LoadedModel:
    recipe = replace(toy_retrieval.recipe(Path("nowhere")), image=ImageConfig(size=(14, 21), patch=7))
    recipe = replace(recipe, task=task, model=replace(recipe.model, text_max_positions=61, **PAIRS[name]))
    torch.manual_seed(3)
    return LoadedModel(recipe, stirred(media_and_text(recipe, len(TOKENIZER))), BOTH, Path("model"))


def of_hidden_patches(task: str, name: str) -> LoadedModel:
    tables = {"image": {"size": [35, 25], **PATCHES[name]}, "model": {"pooling": "mean"}}
    recipe = toy_patches.recipe(task, Path("nowhere"), **tables)
    torch.manual_seed(3)
    model = opinionated(find_task(task).build(recipe, NoTokenizers()))
    return LoadedModel(recipe, model, NoTokenizers(), Path("model"))


MAKERS: dict[tuple[str, str], Callable[[str, str], LoadedModel]] = {  # by task and name
    **{(task, name): of_text for task, (configs, _) in TEXT_MODELS.items() for name in configs},
    **{(task, name): of_media for task, recipes in MEDIA_CLASSIFIERS.items() for name in recipes},
    **{
        (task, name): of_media_and_written_text
        for task in WRITERS
        for name in ("transformer", "lstm with general attention", "convolutional")
    },
    **{("image_text_retrieval", name): of_pictures_and_texts for name in PAIRS},
    **{("masked_patches", name): of_hidden_patches for name in PATCHES},
}


def loaded(task: str, name: str) -> LoadedModel:
    return MAKERS[task, name](task, name)


def failing(differences: dict[Check, float | None]) -> list[str]:
    return [check.name for check, value in differences.items() if value is not None and not check.passes(value)]


def measured(task: str, name: str) -> dict[Check, float | None]:
    found = loaded(task, name)
    subject = subject_of(found)
    before = {key: value.clone() for key, value in weights(found.model).items()}
    differences = {check: check.measure(subject, found) for check in FAST}
    assert all(torch.equal(value, before[key]) for key, value in weights(found.model).items())
    return differences


@pytest.mark.sampled(16)
@pytest.mark.parametrize(("task", "name"), MAKERS)
def test_every_check_passes_on_every_architecture(task, name):
    differences = measured(task, name)
    assert failing(differences) == []
    applied = sum(value is not None for value in differences.values())
    assert applied == 7 if task == "masked_patches" else applied >= 6


@torch.no_grad()
def test_tokens_that_no_search_writes_may_be_the_most_likely_ones():
    found = loaded("translation", "transformer")
    subject = subject_of(found)

    def likely():
        return subject.start(subject.examples[:1]).step(subject.start(subject.examples[:1]).begin)[0].topk(2).indices

    found.model.output.weight[[PAD, BOS]] = 2 * found.model.output.weight[likely()[0]]
    assert sorted(likely().tolist()) == [PAD, BOS]
    assert checks.exhaustive(subject) == 0


def test_hidden_patches_of_every_picture_are_among_those_that_are_verified():
    subject = subject_of(loaded(*HIDING))
    assert [(hidden.any().item(), hidden.all().item()) for _, hidden in subject.examples] == [(True, False)] * 4
    with torch.no_grad():
        loss = subject.loss(subject.model, subject.examples)
        alone = [subject.loss(subject.model, [example]) for example in subject.examples]
    assert loss.count == sum(int(hidden.sum()) for _, hidden in subject.examples)
    torch.testing.assert_close(loss.sum, torch.stack([one.sum for one in alone]).sum())


def padding_is_seen(patch):
    honest: Any = masks.AttentionMask.allowed.fget

    def careless(self):
        return honest(self) if self.causal else torch.ones_like(honest(self))

    patch.setattr(masks.AttentionMask, "allowed", property(careless))


def padding_is_counted(patch):
    honest = masks.AttentionMask.__init__

    def careless(self, padding_mask, queries, *, causal):
        honest(self, padding_mask, queries, causal=causal)
        self.key_positions = torch.arange(self.length).expand_as(self.key_positions)
        self.query_positions = self.key_positions[:, -queries:]

    patch.setattr(masks.AttentionMask, "__init__", careless)


def the_next_token_is_seen(patch):
    honest = masks.causal_mask
    patch.setattr(masks, "causal_mask", lambda *sizes: honest(*sizes) | honest(*sizes).roll(1, -1))


def a_cache_fades(patch):
    honest = KVCache.update

    patch.setattr(KVCache, "update", lambda self, *new: [x * 0.99 for x in honest(self, *new)])


def a_cache_stays_where_rows_move(patch):
    def stay(self, rows):
        self.buffers = [x[torch.arange(len(rows)) % len(x)] for x in self.buffers]

    patch.setattr(KVCache, "select", stay)


def long_outputs_are_preferred(patch):
    patch.setitem(LENGTH_PENALTIES, "average", lambda length, _: length**9.0)


def a_kernel_scales_twice(patch):
    honest = attention.scaled_dot_product
    patch.setattr(attention, "scaled_dot_product", lambda q, *others: honest(q / 2, *others))


def a_fused_kernel_scales_twice(patch):
    honest = attention.F.scaled_dot_product_attention
    patch.setattr(
        attention.F, "scaled_dot_product_attention", lambda q, *others, **named: honest(q / 2, *others, **named)
    )


def long_rows_overflow(patch):
    honest = subject_module.real_rows

    def overflow(x, padding_mask):
        return [
            row if index in (0, len(x) - 1) else row * torch.nan for index, row in enumerate(honest(x, padding_mask))
        ]

    patch.setattr(subject_module, "real_rows", overflow)


def the_first_row_is_favoured(patch):
    honest: Any = masks.AttentionMask.allowed.fget

    def careless(self):
        allowed = honest(self).clone()
        allowed[1:, ..., 0] = False
        return allowed

    patch.setattr(masks.AttentionMask, "allowed", property(careless))


def greedy_search_avoids_the_best(patch):
    honest = checks.greedy_search

    def second(state, limits, config):
        step = state.step

        def without_best(tokens):
            logits = step(tokens)
            return logits.scatter(-1, logits.argmax(-1, keepdim=True), -torch.inf)

        state.step = without_best
        return honest(state, limits, config)

    patch.setattr(checks, "greedy_search", second)


def a_recorder_writes(patch):
    honest = checks.recording

    def writes(model, keep):
        model.output.register_forward_hook(lambda *passed: passed[-1].mul_(1.001))
        return honest(model, keep)

    patch.setattr(checks, "recording", writes)


def a_model_is_rounded(patch):
    honest = training_checks.write_model

    def rounded(folder, recipe, tokenizers, tensors):
        honest(folder, recipe, tokenizers, {name: x.bfloat16().float() for name, x in tensors.items()})

    patch.setattr(training_checks, "write_model", rounded)


def a_conversion_is_rounded(patch):
    honest = ctranslate2_export.their_weights

    def rounded(config, tensors):
        return {name: value.astype("float16").astype("float32") for name, value in honest(config, tensors).items()}

    patch.setattr(ctranslate2_export, "their_weights", rounded)


def means_of_means(patch):
    honest = TrainingStep.backward
    patch.setattr(TrainingStep, "backward", lambda self, batch, key, _: honest(self, batch, key, batch.counts))


def moments_are_lost(patch):
    patch.setattr(training_checks, "load_optimizer_tensors", lambda *_: None)


def steps_are_lost(patch):
    def without_steps(optimizer, model, values):
        kept = {key: torch.zeros_like(x) if key.startswith("step.") else x for key, x in values.items()}
        load_optimizer_tensors(optimizer, model, kept)

    patch.setattr(training_checks, "load_optimizer_tensors", without_steps)


def a_stem_sees_the_padding(patch):
    patch.setattr(ConvolutionalFrames, "embed", careless_of_padding(ConvolutionalFrames.embed))


def careless_of_padding(honest, *, seen=False):
    def careless(self, inputs, padding_mask):
        vectors, all_real = honest(self, inputs, torch.ones_like(padding_mask))
        return vectors, all_real if seen else honest(self, inputs, padding_mask)[1]

    return careless


def a_stem_looks_at_the_whole_batch(patch):
    honest = LinearStem.forward
    patch.setattr(LinearStem, "forward", lambda self, pixels, mask: honest(self, pixels, mask) - pixels.mean())


def frames_of_padding_are_tubelets(patch):
    patch.setattr(TubeletEmbedding, "embed", careless_of_padding(TubeletEmbedding.embed, seen=True))


def hidden_patches_are_shared(patch):
    honest = MaskedPatchEmbedding.embed_masked

    def careless(self, inputs, padding_mask, hidden):
        return honest(self, inputs, padding_mask, hidden.any(0, keepdim=True) & padding_mask[:, :: self.patch, None])

    patch.setattr(MaskedPatchEmbedding, "embed_masked", careless)


def with_stem(task: str) -> str:
    """The name of a Transformer whose stem is convolutional."""
    table = task.partition("_")[0]
    recipes = MEDIA_CLASSIFIERS[task]
    return next(name for name in recipes if getattr(recipes[name], table).stem == "convolutional")


LANGUAGE_MODEL = "transformer: sinusoidal, post, layer, None"


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("bug", "task", "name", "noticed"),
    [
        (padding_is_seen, "translation", "transformer", "in a batch"),
        (padding_is_counted, "language_model", LANGUAGE_MODEL, "in a batch"),
        (the_next_token_is_seen, "translation", "transformer", "with later tokens changed"),
        (a_cache_fades, "language_model", LANGUAGE_MODEL, "with a cache"),
        (a_cache_stays_where_rows_move, "language_model", LANGUAGE_MODEL, "repeats and drops"),
        (long_outputs_are_preferred, "translation", "gru with Bahdanau's attention", "a wide beam"),
        (long_rows_overflow, "translation", "transformer", "in a batch"),
        (the_first_row_is_favoured, "translation", "transformer", "in another order"),
        (greedy_search_avoids_the_best, "translation", "lstm with general attention", "beam search of size 1"),
        (a_kernel_scales_twice, "classification", "transformer decoder", "attention kernels"),
        (a_fused_kernel_scales_twice, "classification", "transformer decoder", "attention kernels"),
        (a_recorder_writes, "tagging", "lstm", "all tensors recorded"),
        (a_model_is_rounded, "translation", "convolutional", "saved and loaded"),
        (a_conversion_is_rounded, "language_model", LANGUAGE_MODEL, "with CTranslate2"),
        (means_of_means, "translation", "gru with Bahdanau's attention", "gradient of several"),
        (moments_are_lost, "language_model", "lstm", "a checkpoint in between"),
        (steps_are_lost, "classification", "text cnn", "a checkpoint in between"),
        (a_stem_sees_the_padding, "audio_classification", with_stem("audio_classification"), "in a batch"),
        (a_stem_looks_at_the_whole_batch, "image_classification", LANGUAGE_MODEL, "in a batch"),
        (padding_is_seen, "image_classification", LANGUAGE_MODEL, "in a batch"),
        (padding_is_seen, "audio_classification", LANGUAGE_MODEL, "in a batch"),
        (a_kernel_scales_twice, "image_classification", LANGUAGE_MODEL, "attention kernels"),
        (a_model_is_rounded, "audio_classification", LANGUAGE_MODEL, "saved and loaded"),
        (means_of_means, "image_classification", "gru", "gradient of several"),
        (padding_is_seen, "video_classification", LANGUAGE_MODEL, "in a batch"),
        (frames_of_padding_are_tubelets, "video_classification", "gru", "in a batch"),
        (moments_are_lost, "audio_classification", "gru", "a checkpoint in between"),
        (padding_is_seen, "image_text_retrieval", "whole texts", "in a batch"),
        (padding_is_seen, *HIDING, "in a batch"),
        (hidden_patches_are_shared, *HIDING, "in a batch"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_planted_bug_is_noticed(bug, task, name, noticed, monkeypatch):
    bug(monkeypatch)
    assert any(noticed in check for check in failing(measured(task, name)))


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """What two processes write that train `TRAINED` together; they are started once, and pass the check."""
    folder, honest = tmp_path_factory.mktemp("shared"), training_checks.launch

    def launch(command, processes):
        code = honest(command, processes)
        for file in WEIGHT_FILES.values():
            shutil.copy(Path(command[3]) / file, folder)
        return code

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training_checks, "launch", launch)
        assert SEVERAL.passes(difference_of_two())
    return folder


@pytest.fixture
def replayed(shared, monkeypatch):
    """Two processes that write what those of `shared` wrote."""

    def launch(command, _):
        shutil.copytree(shared, command[3], dirs_exist_ok=True)
        return 0

    monkeypatch.setattr(training_checks, "launch", launch)


def difference_of_two() -> float | None:
    found = loaded(*TRAINED)
    return SEVERAL.measure(subject_of(found), found)


@pytest.mark.slow
@pytest.mark.usefixtures("replayed")
def test_an_update_of_one_process_that_differs_from_that_of_two_is_noticed(monkeypatch):
    assert SEVERAL.passes(difference_of_two())
    honest = TrainingStep.step
    monkeypatch.setattr(TrainingStep, "step", lambda self, lr, count: honest(self, lr * 1.001, count))
    assert not SEVERAL.passes(difference_of_two())


@pytest.mark.slow
@pytest.mark.usefixtures("replayed")
@pytest.mark.parametrize("way", WEIGHT_FILES.values())
def test_two_processes_whose_weights_differ_in_one_way_of_sharing_them_are_noticed(way, monkeypatch):
    def read(path):
        tensors = read_tensors(path)
        return {name: value + (path.name == way) for name, value in tensors.items()}

    monkeypatch.setattr(training_checks, "read_tensors", read)
    assert not SEVERAL.passes(difference_of_two())


@pytest.mark.slow
def test_two_processes_that_fail_are_an_error_and_no_difference(monkeypatch):
    monkeypatch.setattr(training_checks, "custom_modules", lambda _: ["no_such_module"])
    with pytest.raises(RunError, match="exited with code 2"):
        difference_of_two()
