"""Traces of recurrent models: states, gates and alignments, and the same numbers whether recorded or not."""

import numpy as np
import pytest

import heedful
from every_architecture import ENCODER_DECODERS, LANGUAGE_MODELS, generator, translator
from heedful.architectures.recurrent.layers import GATES
from heedful.architectures.recurrent.settings import RecurrentConfig
from heedful.config.schema import Recipe
from heedful.inspector.capture.recorder import recording
from heedful.inspector.capture.trace import Trace
from subjects import TEXT

TRANSLATORS = {name: config for name, config in ENCODER_DECODERS.items() if isinstance(config, RecurrentConfig)}
GENERATORS = {name: config for name, config in LANGUAGE_MODELS.items() if isinstance(config, RecurrentConfig)}


@pytest.mark.parametrize("name", TRANSLATORS)
def test_states_gates_and_alignments_of_a_translator_are_recorded(name):
    found, config = heedful.trace(translator(name), TEXT), TRANSLATORS[name]
    assert max(found.checks.values()) < 1e-5
    source, target = len(found["src.tok"].labels[0]), len(found["tgt.tok"].labels[0])
    for side, length in (("enc", source), ("dec", target)):
        for layer in range(config.layers):
            assert found[f"{side}.{layer}.hidden"].shape == (length, config.d_model)
            for gate in GATES[config.cell]:
                values = found[f"{side}.{layer}.{gate}"].values
                assert values.shape == (length, config.d_model)
                assert values.min() > 0
                assert values.max() < 1
    alignments = [key for key in found if key.endswith(".attn")]
    assert alignments == ([] if config.attention == "none" else [f"dec.{config.layers - 1}.cross.attn"])
    for key in alignments:
        assert found[key].shape == (1, target, source)
        np.testing.assert_allclose(found[key].values.sum(-1), 1, atol=1e-5)


@pytest.mark.parametrize("name", GENERATORS)
def test_states_and_gates_of_a_language_model_are_recorded(name):
    found = heedful.trace(generator(name), TEXT)
    assert max(found.checks.values()) < 3e-5  # of logits, in float32, on any processor
    gates = {key.rpartition(".")[2] for key in found if key.endswith("_gate")}
    assert gates == set(GATES[GENERATORS[name].cell])


def test_a_gate_is_not_told_without_the_state_that_it_begins_with():
    found = heedful.trace(translator("lstm with general attention"), TEXT, keep=["dec.0.in", "dec.0.hidden"])
    assert list(found) == ["dec.0.in", "dec.0.hidden"]


def test_an_edited_alignment_changes_the_output_at_every_step():
    subject = translator("lstm with input feeding")
    name = "dec.1.cross.attn"
    edits = {name: lambda weights: weights.flip(-1)}
    with recording(subject.model, edits=edits):
        flipped = subject.translate(TEXT)
    assert flipped != subject.translate(TEXT)


def test_a_page_without_a_server_holds_states_and_alignments(tmp_path):
    subject = translator("gru with Bahdanau's attention")
    subject.recipe = Recipe(model=ENCODER_DECODERS["gru with Bahdanau's attention"])
    heedful.look(subject, TEXT).save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    for part in ("overview", "states", "attention", "dec.1.cross 0"):
        assert f'data-part="{part}"' in page


def test_a_trace_with_states_comes_back_from_its_file(tmp_path):
    found = heedful.trace(translator("lstm without attention"), TEXT)
    found.save(tmp_path / "trace.safetensors")
    again = Trace.load(tmp_path / "trace.safetensors")
    assert list(again) == list(found)
    assert all(np.array_equal(again[name].values, found[name].values) for name in found)
