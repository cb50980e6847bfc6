"""`heedful verify` measures a model, prints a table and counts, and tells by its exit code whether all is well."""

import pytest
from invocation import invoke

from every_architecture import ENCODER_DECODERS, encoder_decoder
from heedful.architectures import weights
from heedful.checkpoint import write_model
from heedful.config.schema import Recipe
from heedful.errors import InputError
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.tools import verify
from heedful.tools.verify import CHECKS, training_checks
from interrupted import train
from subjects import TOKENIZER
from toy_vectors import toy_recipe


@pytest.mark.slow
def test_the_model_in_the_box_passes_every_check():
    result = invoke("verify", "en-de")
    assert result.exit_code == 0, result.stdout
    assert result.stdout.splitlines()[-1] == f"{len(CHECKS)} passed, 0 failed, 0 do not apply"


@pytest.mark.slow
def test_a_check_that_fails_is_counted_and_ends_with_exit_code_1(tmp_path, monkeypatch):
    without_processes = [check for check in CHECKS if check.measure is not training_checks.several_processes]
    monkeypatch.setattr(verify, "CHECKS", without_processes)
    name = "lstm with general attention"
    model, pair = encoder_decoder(name, len(TOKENIZER)), TokenizerPair(TOKENIZER, TOKENIZER)
    write_model(tmp_path / "model", Recipe(model=ENCODER_DECODERS[name]), pair, weights(model))
    monkeypatch.setattr(training_checks, "load_optimizer_tensors", lambda *_: None)
    result = invoke("verify", tmp_path / "model")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1] == f"{len(without_processes) - 3} passed, 1 failed, 2 do not apply"


def test_a_model_that_reads_no_text_is_refused(tmp_path):
    train(toy_recipe(tmp_path), tmp_path / "run")
    with pytest.raises(InputError, match="nothing to verify; give a model that reads texts, images or audio"):
        invoke("verify", tmp_path / "run")
