"""What cannot work is refused with a remedy; what can work is let through."""

import functools
import operator
from types import UnionType
from typing import get_args, get_origin

import pytest

from heedful.architectures.dual_encoder.settings import DualEncoderConfig
from heedful.architectures.word2vec.settings import Word2VecConfig
from heedful.config.keys import hints_of_keys, table_of
from heedful.config.load import recipe_schema
from heedful.config.rules import REMARKS, RULES, impossible, remarks
from heedful.config.schema import Recipe
from heedful.config.setting import bare, bounds
from heedful.config.validate import OPTIONS, recipe_from_dict
from heedful.errors import InputError

RECURRENT, CONVOLUTIONAL, TEXT_CNN = ({"architecture": name} for name in ("recurrent", "convolutional", "text_cnn"))


def image(batch_tokens: int = 4096, **values: object) -> dict:
    """A classifier of images with some of its settings changed."""
    return of_media("image", batch_tokens, values)


def audio(batch_tokens: int = 4096, **values: object) -> dict:
    """A classifier of audio files with some of its settings changed."""
    return of_media("audio", batch_tokens, values)


def video(image: dict | None = None, batch_tokens: int = 4096, **values: object) -> dict:
    """A classifier of videos with some of its settings, and of those of its frames, changed."""
    return of_media("video", batch_tokens, values) | {"image": image or {}}


def masked_patches(**values: object) -> dict:
    """Pre-training on masked patches with some settings of the images changed."""
    return {"task": "masked_patches", "data": {"modality": "image"}, "image": values, "model": {"family": "encoder"}}


def of_media(modality: str, batch_tokens: int, values: dict) -> dict:
    model = {"family": "encoder"}
    for key, name in (("d_model", "d_model"), ("model_positions", "positions"), ("max_positions", "max_positions")):
        if key in values:
            model[name] = values.pop(key)
    return {
        "task": f"{modality}_classification",
        "data": {"modality": modality},
        modality: values,
        "model": {"heads": 2, **model},
        "train": {"batch_tokens": batch_tokens},
    }


# key of the rule -> values that break it, and what the message must hold
WEIGHTS = {"model": {"family": "encoder"}, "train": {"class_weights": {"O": 1, "B-place": 0.0}}}
BROKEN = [
    ("data.labels", {"task": "classification", "data": {"labels": ["a", "b", "a"]}}, "each class once"),
    ("train.class_weights", {"train": {"class_weights": "balanced"}}, 'task = "translation" has none; leave it out'),
    ("train.class_weights", {"task": "tagging", **WEIGHTS}, "must be more than 0"),
    ("data.label_scale", {"task": "regression", "data": {"label_mean": 3.0}}, "give both, or leave both out"),
    ("data.words", {"task": "classification", "data": {"words": ["U.S."]}}, "leave it out"),
    ("data.train", {"data": {"valid": {"source": "a", "part": [0.9, 0.9]}}}, "from a smaller to a larger share"),
    ("masking.random", {"masking": {"mask": 0.8, "random": 0.3}}, "0.8 + 0.3 is more than 1"),
    (
        "model.target_vectors",
        {"model": {"family": "encoder", "source_vectors": "a.vec", "target_vectors": "a.vec"}},
        "leave model.target_vectors out",
    ),
    ("model.freeze_vectors", {"model": {"freeze_vectors": True}}, "nothing to freeze"),
    ("model.max_positions", {"model": {"positions": "learned", "max_positions": 299}}, "250 + 50"),
    (
        "model.max_target_positions",
        {"model": {"positions": "learned", "max_positions": 300, "max_target_positions": 299}},
        "raise it to at least that sum",
    ),
    (
        "model.max_positions",
        {"model": {**CONVOLUTIONAL, "family": "decoder", "max_positions": 511}},
        "lower data.max_length",
    ),
    (
        "decode.shortlist",
        {"task": "captioning", "data": {"modality": "image"}, "decode": {"shortlist": 5}},
        'for the task "captioning" does not translate; set decode.shortlist = 0',
    ),
    ("tokenizer.dropout", {"tokenizer": {"kind": "unigram", "dropout": 0.1}}, 'tokenizer.kind is "unigram"'),
    (
        "tokenizer.dropout",
        {"model": {"family": "decoder"}, "tokenizer": {"dropout": 0.1}},
        "is encoded only once; set tokenizer.dropout = 0.0",
    ),
    ("optimizer.lr", {"optimizer": {"lr": 3e-4}}, "nothing would be learned"),
    ("optimizer.lr", {"optimizer": {"schedule": "cosine"}}, "would diverge; set it to 0.0005, for example"),
    ("optimizer.warmup", {"optimizer": {"warmup": 0}}, "4000 in the paper"),
    ("optimizer.min_lr", {"optimizer": {"min_lr": 1e-5}}, 'optimizer.schedule is "noam"'),
    ("optimizer.min_lr", {"optimizer": {"schedule": "cosine", "lr": 1e-3, "min_lr": 0.01}}, "above the peak"),
    ("train.batch_tokens", {"train": {"batch_tokens": 249}}, "raise batch_tokens, or lower max_tokens"),
    (
        "train.batch_tokens",
        {"model": {"family": "decoder"}, "train": {"batch_tokens": 511}},
        "raise batch_tokens, or lower max_length",
    ),
    ("train.average_last", {"train": {"average_last": 7}}, "raise keep_last, or lower average_last"),
    ("train.best", {"train": {"validate_decoding": False, "best": "bleu"}}, 'set train.best = "loss"'),
    ("train.patience", {"train": {"patience": 3}}, "add [data.valid]"),
    ("train.device", {"train": {"device": "gpu"}}, '"cuda:0"'),
    (
        "optimizer.weight_decay",
        {"optimizer": {"name": "row_sgd", "weight_decay": 0.1}},
        "set optimizer.weight_decay = 0.0",
    ),
    ("train.start", {"train": {"start_decoder_layers": [1]}}, "set it, or leave them out"),
    ("train.lora", {"train": {"lora": {"rank": 4}}}, "set train.start, or leave train.lora out"),
    ("train.freeze", {"train": {"lora": {}, "start": "bert", "freeze": ["output"]}}, "leave train.freeze out"),
    (
        "train.vocabulary",
        {"train": {"lora": {}, "start": "bert", "vocabulary": "extend"}},
        "add the embeddings to train.lora.also",
    ),
    (
        "parallel.shard",
        {"parallel": {"shard": "full"}, "optimizer": {"name": "row_sgd"}},
        'set parallel.shard = "none"',
    ),
    ("parallel.shard_processes", {"parallel": {"shard_processes": 2}}, 'set parallel.shard = "hybrid"'),
    (
        "train.activation_checkpointing",
        {"train": {"activation_checkpointing": True}, "model": RECURRENT},
        "leave train.activation_checkpointing out",
    ),
    ("decode.n_best", {"decode": {"n_best": 5}}, "raise the beam size, or lower decode.n_best"),
    ("generate.min_tokens", {"generate": {"min_tokens": 9, "max_tokens": 8}}, "min_tokens = 9 is more than"),
    ("generate.stop", {"generate": {"stop": ["\n", ""]}}, "before it begins; remove it"),
    ("image", {"image": {"patch": 8}}, 'for the task "translation" does not use [image]'),
    ("audio", image() | {"audio": {"rate": 8000}}, "does not use [audio]; remove that table"),
    ("video", image() | {"video": {"frames": 8}}, "does not use [video]"),
    ("image.patch", image(size=[14, 21], patch=5), "14 x 21 cannot be cut into patches of image.patch = 5"),
    ("image.patch", image(size=[14, 21], patch=7, stem="convolutional"), "7 is not a power of two"),
    ("image.positions", image(d_model=14, positions="sinusoidal"), 'set image.positions = "learned"'),
    ("image.mean", image(mean=[0.1, 0.2]), "one number, or one per channel; image.channels = 3"),
    ("model.pooling", image(class_token=False), "or image.class_token = true"),
    ("image.size", masked_patches(size=[16, 16], patch=16), "one must be masked and one stay visible"),
    (
        "task",
        {**masked_patches(), "model": {**RECURRENT, "family": "encoder"}},
        "masked patches need a Transformer",
    ),
    ("video.frames", video(frames=15), "15 cannot be cut into tubelets of video.tubelet = 2 frames; choose a multiple"),
    (
        "video.positions",
        video(positions="sinusoidal")
        | {"model": {"family": "encoder", "heads": 3, "d_model": 15, "positions": "none"}},
        'or set video.positions = "learned"',
    ),
    ("audio.hop", audio(hop=401), "samples between two frames would never be read"),
    ("audio.mels", audio(mels=201), "use at most half of audio.window"),
    (
        "transcribe.language",
        {"transcribe": {"languages": ["en", "de"], "language": "zh"}},
        "not in transcribe.languages",
    ),
    ("audio.pad_seconds", audio(pad_seconds=31.0), "longer than audio.max_seconds = 30.0; lower it"),
    (
        "model.max_positions",
        image(positions="none", model_positions="learned", max_positions=196),
        "an input may have 197 positions",
    ),
    (
        "train.batch_tokens",
        audio(batch_tokens=1499),
        "an input of 1500 positions does not fit into a batch of",
    ),
    (
        "model.architecture",
        {"task": "image_text_retrieval", "data": {"modality": "image"}, "model": {"family": "encoder"}},
        'set model.architecture = "dual_encoder"',
    ),
    ("model.tie", {"tokenizer": {"joint": False}}, 'model.tie = "output"'),
    ("model.source_vectors", {"model": {"source_vectors": "a.vec"}}, "must be the same file"),
    ("task", {"task": "masked_lm", "model": {**RECURRENT, "family": "encoder"}}, 'task = "language_model"'),
    ("model.max_target_positions", {"model": {"max_target_positions": 448}}, "the decoder's own table"),
    ("model.heads", {"model": {"heads": 7}}, "or set the head size, model.d_k"),
    ("model.kv_heads", {"model": {"kv_heads": 3}}, "choose a number of kv_heads that divides heads"),
    ("model.positions", {"model": {"d_model": 35, "heads": 5}}, 'set model.positions = "learned"'),
    ("model.positions", {"model": {"positions": "rotary", "d_k": 7}}, "set model.d_k to an even number"),
    ("model.attention", {"model": {"q_rank": 7}}, 'set it to "latent", or leave them out'),
    ("model.kv_heads", {"model": {"attention": "latent", "kv_heads": 2}}, "leave model.kv_heads = 2 out"),
    (
        "model.d_rope",
        {"model": {"attention": "latent", "positions": "rotary", "d_rope": 5}},
        "but model.d_rope = 5; set it to an even number",
    ),
    (
        "model.positions",
        {"model": {"attention": "linear", "positions": "alibi"}},
        'to "sinusoidal", "learned" or "none"',
    ),
    ("model.attention", {"model": {"attention": "linear", "window": 7}}, 'or set model.attention = "multi_head"'),
    ("model.feed_forward", {"model": {"shared_experts": 1}}, 'set it to "experts", or leave them out'),
    (
        "model.experts_per_token",
        {"model": {"feed_forward": "experts", "experts": 4, "experts_per_token": 5}},
        "lower it, or raise model.experts",
    ),
    (
        "train.compile",
        {"model": {"feed_forward": "experts"}, "train": {"compile": True}},
        "set train.compile = false",
    ),
    ("train.compile", {"model": {"attention": "linear"}, "train": {"compile": True}}, "each length of a batch"),
    ("model.d_model", {"model": {**RECURRENT, "d_model": 35}}, "set model.bidirectional = false"),
    (
        "model.input_feeding",
        {"model": {**RECURRENT, "attention": "none", "input_feeding": True}},
        "has no input feeding",
    ),
    ("model.kernel_sizes", {"task": "classification", "model": {**TEXT_CNN, "kernel_sizes": []}}, "[3, 4, 5]"),
    (
        "model.multichannel",
        {
            "task": "classification",
            "model": {**TEXT_CNN, "source_vectors": "a.vec", "multichannel": True, "freeze_vectors": True},
        },
        "set one of them to false",
    ),
    (
        "model.multichannel",
        image() | {"model": {**TEXT_CNN, "family": "encoder", "multichannel": True, "pooling": "max"}},
        "reads no words; set it to false",
    ),
]


@pytest.mark.parametrize(("key", "values", "words"), BROKEN, ids=lambda value: value if isinstance(value, str) else "")
def test_a_combination_that_cannot_work_is_refused(key: str, values: dict, words: str) -> None:
    with pytest.raises(InputError) as caught:
        recipe_from_dict(values, "here", {key: "there"})
    assert str(caught.value).startswith("there: ")
    assert words in str(caught.value)


def test_the_learning_rate_that_a_message_suggests_suits_the_optimizer() -> None:
    with pytest.raises(InputError, match=r"set it to 0\.005, for example"):
        recipe_from_dict({"optimizer": {"name": "muon", "schedule": "linear"}}, "here")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (video({"size": [14, 21], "patch": 5}), "14 x 21 cannot be cut into patches of image.patch = 5"),
        (video({"class_token": False}), "or image.class_token = true"),
        (
            video(batch_tokens=1568),
            "an input of 1569 positions does not fit into a batch of train.batch_tokens = 1568",
        ),
    ],
)
def test_frames_of_videos_are_held_to_the_rules_of_pictures(values: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        recipe_from_dict(values, "here")


def test_every_rule_is_tried_above() -> None:
    elsewhere = (Word2VecConfig, DualEncoderConfig)  # tried in test_word2vec.py and test_dual_encoder.py
    kinds = dict.fromkeys(kind for options in OPTIONS.values() for kind in reversed(options.__mro__))
    here = [rule.key for kind in kinds if kind not in elsewhere for rule in RULES.get(kind, ())]
    assert here == [key for key, _, _ in BROKEN]


def test_the_defaults_are_possible() -> None:
    assert impossible(Recipe()) == []
    assert remarks(Recipe()) == []


@pytest.mark.parametrize("schedule", ["noam", "linear", "cosine", "constant"])
def test_a_run_that_ends_in_its_warmup_is_remarked_upon_and_not_refused(schedule: str) -> None:
    values = {"optimizer": {"schedule": schedule, "lr": 0.05, "warmup": 41}, "train": {"max_updates": 41}}
    (remark,) = remarks(recipe_from_dict(values, "here"))
    assert "ends at update 41, during the warm-up (optimizer.warmup = 41)" in remark
    assert remarks(recipe_from_dict({**values, "train": {"max_updates": 42}}, "here")) == []


@pytest.mark.parametrize(
    "values",
    [
        {"model": {"heads": 7, "d_k": 3}},
        {"model": {"kv_heads": 2}},
        {"model": {"attention": "latent", "kv_heads": 8, "kv_rank": 7, "q_rank": 5, "d_rope": 5}},
        {"model": {"attention": "latent", "positions": "rotary", "d_k": 7}},
        {"model": {"attention": "linear", "positions": "none", "kv_heads": 2, "d_v": 7}},
        {"model": {"attention": "latent", "window": 1}},
        {"model": {"feed_forward": "experts", "experts": 4, "experts_per_token": 4, "shared_experts": 1}},
        {"model": {"d_model": 35, "heads": 5, "positions": "none"}},
        {"tokenizer": {"joint": False}, "model": {"tie": "output"}},
        {"model": {"source_vectors": "a.vec", "target_vectors": "a.vec", "freeze_vectors": True}},
        {"task": "language_model", "model": {"family": "decoder", "source_vectors": "a.vec", "freeze_vectors": True}},
        {"tokenizer": {"dropout": 0.1}},
        {"optimizer": {"schedule": "cosine", "lr": 1e-3, "min_lr": 1e-3}},
        {"optimizer": {"schedule": "inverse_sqrt", "lr": 1e-3, "warmup": 0}},
        {"train": {"validate_decoding": False, "best": "loss"}},
        {"task": "classification", "model": {"family": "encoder"}, "train": {"validate_decoding": False, "best": "f1"}},
        {"train": {"patience": 3}, "data": {"valid": {"source": "a", "target": "b"}}},
        {"train": {"device": "cuda:1"}},
        {"train": {"batch_tokens": 250, "average_last": 3, "keep_last": 3}},
        {"model": {"positions": "learned", "max_positions": 300}},
        {"decode": {"n_best": 4}},
        image(size=[14, 21], patch=7),
        image(size=[14, 28], patch=2, stem="convolutional"),
        image(d_model=14, positions="learned"),
        image(d_model=16, positions="sinusoidal"),
        image(mean=[0.1], std=[0.2, 0.3, 0.4]),
        image(mean=[0.1], std=[0.2], channels=1),
        image(model_positions="learned", max_positions=197, batch_tokens=197),
        video({"size": [14, 21], "patch": 7}, frames=15, tubelet=5, batch_tokens=19),
        video(d_model=14, positions="sinusoidal"),
        audio(hop=400, mels=200, pad_seconds=30.0, batch_tokens=1500),
        audio(features="samples", hop=401, mels=201),
    ],
)
def test_the_remedies_work(values: dict) -> None:
    assert isinstance(recipe_from_dict(values, "here"), Recipe)


NUMBERS = (int, float, int | None, float | None)
KEYS = {key: hint for options in OPTIONS.values() for key, hint in hints_of_keys(options).items()}
LIMITS = {key: bounds(hint) for key, hint in KEYS.items() if table_of(hint) is None and bounds(hint)}
WITHOUT_LIMITS = {  # a rule holds them, or any finite number makes sense
    "data.label_mean",
    "data.label_scale",
    "generate.frequency_penalty",
    "generate.presence_penalty",
}


def is_list(key: str) -> bool:
    return get_origin(bare(KEYS[key])) is tuple


def nested(key: str, value: object) -> dict:
    """`value` at a dotted key."""
    parts = get_args(bare(KEYS[key]))
    value = [value] * (1 if Ellipsis in parts else len(parts)) if is_list(key) else value
    if key.startswith("data.train."):
        return {"data": {"train": [{"source": "b", key.rpartition(".")[2]: value}]}}
    if key.startswith(("data.valid.", "data.test.")):
        return {"data": {key.split(".")[1]: {"source": "b", key.rpartition(".")[2]: value}}}
    if key.startswith("model."):
        architecture = next(name for name, options in OPTIONS.items() if key in hints_of_keys(options))
        return {"model": {"architecture": architecture, key.removeprefix("model."): value}}
    for name in reversed(key.split(".")):
        value = {name: value}
    assert isinstance(value, dict)
    return value


def place(key: str) -> str:
    """The key of a number, or of the first one of several."""
    return f"{key}.0" if is_list(key) else key


def refusal(key: str, value: object) -> str:
    with pytest.raises(InputError) as caught:
        recipe_from_dict(nested(key, value), "here")
    return str(caught.value)


@pytest.mark.parametrize("key", LIMITS)
def test_a_number_beyond_its_bounds_is_refused(key: str) -> None:
    limits = LIMITS[key]
    least, most = limits.get("ge", limits.get("gt")), limits.get("le", limits.get("lt"))
    outside = [limits[name] for name in ("gt", "lt") if name in limits]
    outside += [least - 1] if least is not None else []
    outside += [most + 1] if most is not None else []
    for value in outside:
        text = refusal(key, value)
        assert f"{place(key)} must be " in text
        assert f", but is {value:,}" in text


@pytest.mark.parametrize("key", [key for key, limits in LIMITS.items() if "int" not in str(bare(KEYS[key]))])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_number_is_finite(key: str, value: float) -> None:
    assert f"{place(key)} must be a finite number, but is {value}" in refusal(key, value)


@pytest.mark.parametrize("key", ["train.max_updates", "train.seed", "transcribe.suppress"])
def test_a_number_fits_into_a_tensor(key: str) -> None:
    assert f"{place(key)} must be less than 2^63, but is {2**63}" in refusal(key, 2**63)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("decode.beam", 0, "decode.beam must be at least 1, but is 0"),
        ("decode.beam", 1001, "decode.beam must be at most 1,000, but is 1,001"),
        ("model.kv_heads", 0, "model.kv_heads must be at least 1, but is 0"),
        ("optimizer.lr", 0.0, "optimizer.lr must be more than 0, but is 0.0"),
        ("model.dropout", 1.0, "model.dropout must be at least 0 and less than 1, but is 1.0"),
        ("model.dropout", -0.1, "model.dropout must be at least 0 and less than 1, but is -0.1"),
        ("image.erase", 1.1, "image.erase must be from 0 to 1, but is 1.1"),
        ("data.train.0.part", -0.1, "data.train.0.part.0 must be from 0 to 1, but is -0.1"),
        ("optimizer.betas", 1.0, "optimizer.betas.1 must be at least 0 and less than 1, but is 1.0"),
        ("generate.top_p", 0.0, "generate.top_p must be more than 0, but is 0.0"),
        ("generate.top_p", 1.5, "generate.top_p must be at most 1, but is 1.5"),
        ("image.std", 0.0, "image.std.0 must be more than 0, but is 0.0"),
    ],
)
def test_the_message_names_the_bound(key: str, value: float, words: str) -> None:
    assert words in refusal(key, value)


def test_all_numbers_out_of_range_are_listed_with_what_else_is_wrong() -> None:
    with pytest.raises(InputError, match=r"4 problems") as caught:
        recipe_from_dict({"decode": {"beam": 0}, "model": {"heads": 0}, "train": {"sede": 1, "seed": "x"}}, "here")
    assert "decode.beam must be at least 1" in str(caught.value)
    assert "model.heads must be at least 1" in str(caught.value)


def test_every_number_of_a_recipe_has_bounds() -> None:
    numbers = {key for key, hint in KEYS.items() if plain(hint) in NUMBERS}
    assert numbers - LIMITS.keys() == WITHOUT_LIMITS


def plain(hint: object) -> object:
    """A type without what it says about bounds."""
    hint = bare(hint)
    return functools.reduce(operator.or_, map(plain, get_args(hint))) if get_origin(hint) is UnionType else hint


def test_rules_blame_keys_that_exist() -> None:
    keys_of_transformers = set(hints_of_keys())  # rules of all recipes name them, too
    for kind in OPTIONS.values():
        known = {key.replace(".0.", ".") for key in hints_of_keys(kind)}
        rules = [rule for table in (RULES, REMARKS) for base in kind.__mro__ for rule in table.get(base, ())]
        assert {rule.key for rule in rules} <= known | keys_of_transformers


def test_the_schema_has_the_bounds() -> None:
    tables = recipe_schema()["$defs"]
    assert tables["DecodeConfig"]["properties"]["beam"].items() >= {"minimum": 1, "maximum": 1000}.items()
    assert tables["OptimizerConfig"]["properties"]["lr"]["exclusiveMinimum"] == 0


def test_pictures_and_sounds_have_no_limits_of_text() -> None:
    for values in (image(batch_tokens=197), audio(batch_tokens=1500)):
        recipe = recipe_from_dict({**values, "data": {**values["data"], "max_length": 8000}}, "here")
        assert recipe.longest_input < recipe.data.max_length


@pytest.mark.parametrize("own", [{"attention": "additive"}, {"input_feeding": True}])
def test_attention_of_a_recurrent_model_without_a_source_is_remarked_upon(own: dict) -> None:
    model = {"architecture": "recurrent", **own}
    (remark,) = remarks(recipe_from_dict({"task": "language_model", "model": {**model, "family": "decoder"}}, "here"))
    assert "in a model of family decoder they have no effect" in remark
    assert remarks(recipe_from_dict({"model": model}, "here")) == []


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"task": "captioning", "data": {"modality": "image"}, "image": {"mixup": 0.2}}, "image.mixup mixes images"),
        ({"task": "captioning", "data": {"modality": "image"}, "tokenizer": {"dropout": 0.1}}, "tokenizer.dropout"),
        (
            {**image(), "data": {"modality": "image", "filters": {"max_characters": 7}}},
            "only max_tokens of [data.filters]",
        ),
        (audio(features="samples", frequency_masks=1), "has none; it masks columns of samples instead"),
    ],
)
def test_settings_that_change_nothing_for_files_are_remarked_upon(values: dict, words: str) -> None:
    (remark,) = remarks(recipe_from_dict(values, "here"))
    assert words in remark
