"""An option that overrides a setting of a model's recipe says what the setting says."""

import inspect
from typing import Any

import pytest

from heedful.cli.caption import caption
from heedful.cli.evaluate import evaluate
from heedful.cli.generate import generate
from heedful.cli.options import MODELS, mirrored
from heedful.cli.transcribe import transcribe
from heedful.cli.translate import translate
from heedful.config.keys import KEYS, description_of
from heedful.config.schema import GenerateConfig

BEAM = ("beam", "max_extra")
COMMANDS = {  # the commands that override settings, and which
    translate: (
        "decode",
        (*BEAM, "penalty", "alpha", "n_best", "patience", "batch_tokens", "min_tokens", "no_repeat_ngram"),
    ),
    caption: ("decode", (*BEAM, "n_best")),
    evaluate: ("decode", BEAM),
    transcribe: ("transcribe", ("language", "task", "initial_prompt", "word_timestamps", "vad")),
    generate: ("generate", tuple(GenerateConfig.__dataclass_fields__)),
}
OPTIONS = [(command, table, name) for command, (table, names) in COMMANDS.items() for name in names]


@pytest.mark.parametrize(("command", "table", "name"), OPTIONS, ids=lambda value: getattr(value, "__name__", value))
def test_the_help_of_an_option_begins_as_the_description_of_its_setting(command: Any, table: str, name: str) -> None:
    (option,) = inspect.signature(command).parameters[name].annotation.__metadata__
    text, _ = description_of(f"{table}.{name}")
    assert (
        option.help.split(".")[0]
        == text.replace("`max_tokens`", "--max-tokens").replace("`stop`", "--stop").replace("`", "").split(".")[0]
    )
    assert option.show_default == MODELS


def test_names_of_other_settings_become_options_and_what_a_recipe_leaves_out_is_not_mentioned() -> None:
    assert "ends at --max-tokens or at one of the texts in --stop" in mirrored(KEYS.generate.ignore_eos).help
    assert mirrored(KEYS.decode.max_extra).help.endswith("or in total if the input is not text.")
    assert mirrored(KEYS.decode.n_best, more="More than 1 needs --json.").help.endswith("More than 1 needs --json.")
