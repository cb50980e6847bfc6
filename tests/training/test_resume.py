from dataclasses import replace

import pytest

from heedful.checkpoint import Checkpoint
from heedful.config.load import recipe_from_dict
from heedful.data.preparation.prepared_data import data_digest
from heedful.errors import InputError
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer
from heedful.training.resume import check_same_run
from heedful.training.trainer_state import TrainerState
from reversal import SETTINGS


@pytest.fixture
def recipe(text):
    return recipe_from_dict({**SETTINGS, "data": {**SETTINGS["data"], "root": str(text)}}, "test")


def saved(recipe):
    tokenizer = train_tokenizer(["w1 w2"], recipe.tokenizer)
    state = {"data": data_digest(recipe), "progress": TrainerState(update=5).to_json(), "environment": {}}
    return Checkpoint(
        step=5, recipe=recipe, tokenizers=TokenizerPair(tokenizer, tokenizer), weights={}, optimizer={}, state=state
    )


@pytest.mark.parametrize(
    ("table", "changes"),
    [
        ("train", {"max_updates": 1000}),
        ("train", {"max_epochs": 7, "max_minutes": 3.0}),
        ("train", {"patience": 3, "keep_last": 9, "save_minutes": 1.0}),
        ("train", {"validate_every": 3, "log_every": 7, "tensorboard": True}),
        ("train", {"workers": 2, "activation_checkpointing": True}),
        ("parallel", {"timeout_minutes": 3.0}),
        ("train", {"threads": 2, "device": "auto"}),
        ("train", {"precision": "auto"}),
        ("decode", {"beam": 7, "alpha": 1.0, "penalty": "average", "patience": 0.0, "batch_tokens": 509}),
        ("generate", {"top_k": 7}),
        ("model", {"source_vectors": "moved.vec"}),
    ],
)
def test_settings_that_change_no_number_may_change(table, changes, recipe):
    changed = replace(recipe, **{table: replace(getattr(recipe, table), **changes)})
    check_same_run(changed, saved(recipe))


def test_a_tokenizer_that_has_moved_is_the_same_and_another_is_refused(recipe, tmp_path):
    def named(place, *texts):
        tokenizer = train_tokenizer(texts, recipe.tokenizer)
        TokenizerPair(tokenizer, tokenizer).save(tmp_path / place)
        return replace(recipe, tokenizer=replace(recipe.tokenizer, path=str(tmp_path / place)))

    begun = saved(named("here", "w1 w2"))
    check_same_run(named("there", "w1 w2"), begun)
    with pytest.raises(InputError, match="data has changed"):
        check_same_run(named("other", "w1 w3 w3"), begun)


@pytest.mark.parametrize(
    ("table", "changes"),
    [
        ("model", {"d_ff": 29}),
        ("optimizer", {"lr": 0.02}),
        ("optimizer", {"betas": (0.9, 0.99)}),
        ("train", {"seed": 2}),
        ("train", {"batch_tokens": 67}),
        ("train", {"accumulate": 2}),
        ("train", {"label_smoothing": 0.2}),
        ("train", {"precision": "bfloat16"}),
        ("tokenizer", {"lowercase": True}),
        ("data", {"bad_utf8": "skip"}),
        ("decode", {"max_extra": 11}),
    ],
)
def test_settings_that_change_a_number_are_refused_by_name(table, changes, recipe):
    changed = replace(recipe, **{table: replace(getattr(recipe, table), **changes)})
    (key,) = changes
    with pytest.raises(InputError, match=rf"{table}.{key} is .*, but the run was started with.*start a new run"):
        check_same_run(changed, saved(recipe))


def test_the_length_of_a_run_is_fixed_where_the_schedule_depends_on_it(recipe):
    timed = replace(recipe, optimizer=replace(recipe.optimizer, schedule="cosine"))
    longer = replace(timed, train=replace(timed.train, max_updates=1000))
    with pytest.raises(InputError, match=r"train\.max_updates is 1000"):
        check_same_run(longer, saved(timed))


def test_the_longest_output_may_change_where_validation_decodes_nothing(recipe):
    silent = replace(recipe, train=replace(recipe.train, validate_decoding=False))
    changed = replace(silent, decode=replace(silent.decode, max_extra=11))
    check_same_run(changed, saved(silent))


def test_the_distance_of_checkpoints_may_change_where_none_are_averaged(recipe):
    single = replace(recipe, train=replace(recipe.train, average_last=1))
    check_same_run(replace(single, train=replace(single.train, save_every=7)), saved(single))


def test_the_distance_of_checkpoints_is_fixed_where_the_final_model_is_their_mean(recipe):
    averaged = replace(recipe, train=replace(recipe.train, average_last=2, keep_last=2))
    other = replace(averaged, train=replace(averaged.train, save_every=7))
    with pytest.raises(InputError, match=r"train\.save_every is 7, .* Use the old value, or start a new run"):
        check_same_run(other, saved(averaged))


def with_lr(recipe, lr):
    return replace(recipe, optimizer=replace(recipe.optimizer, lr=lr))


def test_only_the_keys_that_are_listed_may_change(recipe):
    changed = replace(with_lr(recipe, 0.02), train=replace(recipe.train, label_smoothing=0.2))
    keys = ["optimizer.lr", "train.label_smoothing"]
    told = check_same_run(changed, saved(recipe), keys)
    assert [clause.split()[0] for clause in told] == keys
    with pytest.raises(
        InputError, match=r"different settings: train\.label_smoothing is 0\.2, but the run was started with"
    ):
        check_same_run(changed, saved(recipe), keys[:1])


def test_a_refusal_names_the_options_that_allow_all_changes_at_once(recipe):
    changed = replace(with_lr(recipe, 0.02), train=replace(recipe.train, label_smoothing=0.2, accumulate=3))
    keys = ["optimizer.lr", "train.accumulate", "train.label_smoothing"]
    options = " ".join(f"--allow-change {key}" for key in keys)
    message = f"Use the old values; or accept these changes: heedful train ... {options}. Or start a new run"
    with pytest.raises(InputError, match=message):
        check_same_run(changed, saved(recipe))
    with pytest.raises(
        InputError, match=f"accept these changes: .* {options.removeprefix('--allow-change optimizer.lr ')}. Or"
    ):
        check_same_run(changed, saved(recipe), keys[:1])
    check_same_run(changed, saved(recipe), keys)


def test_a_refusal_names_the_changes_that_cannot_be_allowed(recipe):
    changed = replace(recipe, train=replace(recipe.train, seed=7))
    with pytest.raises(InputError, match="Use the old value, or start a new run"):
        check_same_run(changed, saved(recipe))
    remedy = (
        r"Keep the old value of train\.seed, which cannot change; optimizer\.lr may change: heedful train \.\.\. "
        r"--allow-change optimizer\.lr\. Or start"
    )
    with pytest.raises(InputError, match=remedy):
        check_same_run(with_lr(changed, 0.02), saved(recipe))


def test_several_changes_that_cannot_be_allowed_are_listed_and_long_values_left_out(recipe):
    corpora = (*recipe.data.train, *recipe.data.train)
    changed = replace(recipe, train=replace(recipe.train, seed=7), data=replace(recipe.data, train=corpora))
    message = "data.train has changed since the run was started; .*Keep the old values of data.train and train.seed, "
    with pytest.raises(InputError, match=message):
        check_same_run(with_lr(changed, 0.02), saved(recipe))


def test_a_run_of_another_task_is_refused_without_a_list_of_changes(recipe):
    other = replace(recipe, task="summarisation", train=replace(recipe.train, seed=7))
    message = 'a run of another task: task is "summarisation", but the run was started with "translation". Start'
    with pytest.raises(InputError, match=message):
        check_same_run(other, saved(recipe))


def test_the_options_of_a_refusal_let_a_finished_run_of_a_falling_rate_be_longer(recipe):
    timed = replace(recipe, optimizer=replace(recipe.optimizer, schedule="linear"))
    longer = replace(timed, train=replace(timed.train, max_updates=1000))
    with pytest.raises(InputError, match=r"this change: heedful train \.\.\. --allow-change train\.max_updates\. Or"):
        check_same_run(longer, saved(timed))
    check_same_run(longer, saved(timed), ["train.max_updates"])


def test_the_rate_of_dropout_may_be_allowed_to_change(recipe):
    changed = replace(recipe, model=replace(recipe.model, dropout=0.3))
    (told,) = check_same_run(changed, saved(recipe), ["model.dropout"])
    assert told.startswith("model.dropout is 0.3")


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("model.d_ff", "the weights learned so far belong to the old model"),
        ("optimizer.name", "the saved state belongs to the old optimizer"),
        ("train.freeze", "the saved optimizer state belongs"),
        ("train.best", "the best score so far"),
        ("train.validate_decoding", "the best score so far"),
        ("train.save_every", "the checkpoints to average at the end"),
        ("tokenizer.vocab_size", "the token ids would change"),
        ("train.batch_tokens", "position in the data"),
        ("task", "belong to the old task"),
        ("optimizer.speed", "a recipe has no key"),
    ],
)
def test_what_makes_no_sense_cannot_be_allowed(key, reason, recipe):
    with pytest.raises(InputError, match=f"--allow-change {key}: .*{reason}"):
        check_same_run(recipe, saved(recipe), [key])
