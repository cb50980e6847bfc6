"""Options of a call are keys of the recipe, checked as there."""

import pickle
from dataclasses import fields
from typing import get_type_hints

import numpy as np
import pytest

from heedful.config.options import DecodeOptions, GenerateOptions, with_options
from heedful.config.schema import DecodeConfig, GenerateConfig
from heedful.errors import InputError, OptionError


@pytest.mark.parametrize(("options", "table"), [(DecodeOptions, DecodeConfig), (GenerateOptions, GenerateConfig)])
def test_every_key_of_the_table_is_an_option(options, table):
    assert list(get_type_hints(options)) == [field.name for field in fields(table)]


def test_what_is_given_changes_and_the_rest_stays():
    config = GenerateConfig(max_tokens=7, seed=3)
    found = with_options(config, {"temperature": 0, "stop": ["a", "b"], "top_k": np.int64(5), "top_p": np.float32(0.5)})
    assert found == GenerateConfig(max_tokens=7, seed=3, temperature=0.0, stop=("a", "b"), top_k=5, top_p=0.5)
    assert isinstance(found.top_k, int)
    assert with_options(config, {}) is config
    assert with_options(found, {"top_k": None}).top_k is None


@pytest.mark.parametrize(
    ("config", "options", "words"),
    [
        (DecodeConfig(), {"bean": 3}, 'unknown option bean; did you mean "beam"?'),
        (GenerateConfig(), {"stop": ["\ud800"]}, "option stop: '\\ud800' contains a lone surrogate"),
        (DecodeConfig(), {"beam_size": 3}, 'unknown option beam_size; did you mean "beam"?'),
        (GenerateConfig(), {"max_new_tokens": 3}, 'unknown option max_new_tokens; did you mean "max_tokens"?'),
        (DecodeConfig(), {"temperature": 1.0}, "unknown option temperature; choose one of beam, penalty, alpha"),
        (DecodeConfig(), {"beam": 0}, "invalid option: beam must be at least 1, but is 0"),
        (DecodeConfig(), {"beam": "2"}, 'option: beam must be a whole number, but is "2"'),
        (DecodeConfig(n_best=3), {"beam": 2}, "decode.n_best = 3 is more than beam = 2"),
        (DecodeConfig(), {"penalty": "gnnt"}, 'did you mean "gnmt"?'),
        (GenerateConfig(), {"temperature": -1}, "option: temperature must be at least 0, but is -1"),
        (GenerateConfig(), {"stop": {"a"}}, "option stop: a recipe cannot contain a set; give a number, a"),
        (GenerateConfig(), {"stop": "a"}, "option: stop must be a list"),
    ],
)
def test_what_a_recipe_refuses_is_refused(config, options, words):
    with pytest.raises(InputError) as caught:
        with_options(config, options)
    assert words in str(caught.value)


def test_the_command_line_names_the_key_and_a_call_its_option():
    with pytest.raises(OptionError) as caught:
        with_options(DecodeConfig(), {"beam": 0})
    assert caught.value.line() == "heedful: invalid option: decode.beam must be at least 1, but is 0\n"
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.line()) == ("invalid option: beam must be at least 1, but is 0", caught.value.line())
