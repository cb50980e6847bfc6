"""A trace holds what the model computes, under names, with labels, and comes back from a file as it was."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from torch.testing import assert_close

import heedful
import subjects
from heedful.errors import InputError
from heedful.inspector.capture.forward_inputs import of_continuation, reading
from heedful.inspector.capture.recorder import recording
from heedful.inspector.capture.trace import Trace, trace, traced
from subjects import GERMAN, TEXT, TOKENIZER, classifier, filler, generator, searcher


@pytest.fixture
def translator():
    return subjects.translator()


def test_a_translation_is_traced_as_the_search_found_it(translator):
    [translation] = translator.translate_lines([TEXT])
    seen = trace(translator, TEXT)
    written = translation.alternatives[0].hypothesis.tokens
    assert seen.lines["src"].read.ids == [*TOKENIZER.encode(TEXT), 3]
    assert seen.lines["tgt"].read.ids == [2, *written]
    assert seen.lines["tgt"].said.ids == [*written, 3]
    log_probs = torch.tensor(np.array(seen["logits"])).log_softmax(-1)
    scores = translation.alternatives[0].hypothesis.token_scores
    assert_close(log_probs[torch.arange(len(scores)), [*written, 3][: len(scores)]].tolist(), scores, atol=1e-5, rtol=0)


@torch.no_grad()
def test_the_tensors_are_those_of_the_model(translator):
    seen = trace(translator, TEXT, GERMAN)
    model = translator.model.eval()
    lines = seen.lines["src"].read.ids, seen.lines["tgt"].read.ids
    source, target = (torch.tensor([ids]) for ids in lines)
    with recording(model, ["*"]) as found:
        model(source, torch.ones_like(source).bool(), target, torch.ones_like(target).bool())
    assert set(seen) == {*found, "src.pos", "tgt.pos"}
    for name, tensor in found.items():
        assert np.array_equal(seen[name].values, tensor[0].numpy())
    for line in ("src", "tgt"):
        assert np.array_equal(seen[f"{line}.tok"].values + seen[f"{line}.pos"].values, seen[f"{line}.sum"].values)
    assert np.abs(seen["src.pos"].values).max() == 1


def test_both_checks_are_small_and_made_where_they_can_be(translator):
    assert set(trace(translator, TEXT).checks) == {"fused", "steps"}
    assert set(trace(filler(), TEXT).checks) == {"fused"}
    for subject in (translator, generator(), filler(), classifier()):
        assert max(trace(subject, TEXT).checks.values()) < 1e-5


@pytest.mark.parametrize("context", [None, 41])
def test_a_language_model_is_traced_on_the_text_alone_with_its_pieces_as_labels(context):
    subject, ids = generator(context), TOKENIZER.encode(TEXT)
    seen = trace(subject, TEXT)
    pieces = TOKENIZER.pieces(ids)
    assert seen.lines["tgt"].read.ids == ids
    assert seen["dec.2.self.attn"].labels == (["0", "1"], pieces, pieces)
    assert seen["logits"].labels[0] == pieces
    with torch.no_grad():
        logits = subject.model.eval()(torch.tensor([ids]))[0]
    assert_close(torch.tensor(seen["logits"].values), logits, atol=1e-5, rtol=0)
    assert len(trace(subject, TEXT, " the dog").lines["tgt"].read.ids) > len(ids)
    assert len(trace(subject, "the").lines["tgt"].read.ids) == len(TOKENIZER.encode("the"))


def test_a_text_longer_than_the_context_is_not_traced_in_part():
    with pytest.raises(InputError, match="tokens"):
        trace(generator(5), TEXT)


@pytest.mark.parametrize(
    ("subject", "names"),
    [
        (generator(), {"tgt.tok", "dec.2.self.attn", "dec.norm", "logits"}),
        (filler(), {"src.tok", "enc.1.self.attn", "enc.norm", "logits"}),
        (classifier(), {"enc.0.ffn.h", "logits"}),
        (classifier("decoder"), {"dec.0.ffn.h", "logits"}),
        (searcher(), {"enc.0.self.z", "enc.norm"}),
    ],
    ids=["gpt", "bert", "classifier", "causal classifier", "sentence encoder"],
)
def test_every_family_is_traced_with_the_stacks_that_it_has(subject, names):
    seen = trace(subject, TEXT)
    assert names <= set(seen)
    assert not any(".cross." in name for name in seen)
    (line,) = seen.lines.values()
    for name in seen:
        if name.endswith(".self.attn"):
            assert seen[name].values.shape == (2, len(line.read.ids), len(line.read.ids))
            assert seen[name].labels == (["0", "1"], line.read.labels, line.read.labels)


def test_a_look_at_a_generator_writes_on_from_a_prompt_unless_it_is_told_what():
    seen = traced(reading(generator(), TEXT))
    prompt = TOKENIZER.encode(TEXT)
    line = seen.lines["tgt"]
    assert line.read.ids[: len(prompt)] == prompt
    assert line.said.ids[:-1] == line.read.ids[1:]
    for place in range(len(prompt) - 1, len(line.said.ids)):
        assert seen["logits"].values[place, 4:].argmax() + 4 == line.said.ids[place] or line.said.ids[place] < 4
    told = trace(generator(), "two", " women read").lines["tgt"]
    assert TOKENIZER.decode([told.read.ids[0], *told.said.ids]) == "two women read"


def test_a_text_for_bert_may_have_gaps_or_a_second_part():
    gap = trace(filler(), "the [MASK] dog").lines["src"].read
    assert "<mask>" in gap.labels
    pair = trace(classifier(), "the old dog", "sees").lines["src"].read
    assert pair.labels.count("<eos>") == 2


def test_labels_of_cross_attention_are_what_is_written_and_what_is_read(translator):
    seen = trace(translator, TEXT, GERMAN, keep=["dec.2.cross.*"])
    assert seen["dec.2.cross.attn"].labels[1:] == (seen.lines["tgt"].said.labels, seen.lines["src"].read.labels)
    assert seen["dec.2.cross.k"].labels[1] == seen.lines["src"].read.labels
    assert seen["dec.2.cross.q"].labels[1] == seen.lines["tgt"].said.labels
    assert seen["dec.2.cross.resid"].labels[0] == seen.lines["tgt"].read.labels
    assert seen["dec.2.cross.attn"].axes == ("head", "query", "key")
    assert len(seen["dec.2.cross.resid"].labels[1]) == 14


def test_heads_of_the_bundled_translator_lead_from_articles_to_nouns_and_from_the_verb_to_its_subject():
    seen = trace(heedful.load("en-de", "cpu"), "The cat sits on the mat.", keep="enc.2.self.attn")["enc.2.self.attn"]
    words = ["▁The", "▁cat", "▁sit", "s", "▁on", "▁the", "▁mat", ".", "<eos>"]
    assert seen.labels[1:] == (words, words)
    assert min(seen[2, 0, 1], seen[2, 5, 6], seen[1, 2, 1]) > 0.8


def test_only_what_is_asked_for_is_kept(translator):
    assert list(trace(translator, TEXT, keep=["dec.*.cross.attn", "enc.norm"])) == [
        "enc.norm",
        "dec.0.cross.attn",
        "dec.1.cross.attn",
        "dec.2.cross.attn",
    ]
    with pytest.raises(InputError, match=r"the tensor enc.2"):
        trace(translator, TEXT, keep=["enc.2.self.attn"])
    with pytest.raises(KeyError, match=r"logits is not in this trace; list\(trace\) lists all 1"):
        trace(translator, TEXT, keep=["enc.norm"])["logits"]


def test_one_head_is_taken_of_what_was_kept(translator):
    seen = trace(translator, TEXT, keep=["dec.0.self.q"])
    assert len(seen.only(["dec.0.self.q"], head=1)["dec.0.self.q"]) == 1
    with pytest.raises(InputError, match="counted from 0"):
        seen.only(["dec.0.self.q"], head=len(seen["dec.0.self.q"]))


def test_every_label_belongs_to_a_row(translator):
    for name, tensor in trace(translator, TEXT).items():
        assert [len(labels) for labels in tensor.labels] == list(tensor.shape), name


def test_names_that_are_near_are_told(translator):
    with pytest.raises(KeyError, match=r'is not in this trace; did you mean "dec\.\d\.cross\.attn", ') as caught:
        trace(translator, TEXT)["dec.9.cross.attn"]
    assert len(str(caught.value)) < 200


def test_one_pattern_needs_no_list(translator):
    seen = trace(translator, TEXT, keep="dec.*.cross.attn")
    assert list(seen) == ["dec.0.cross.attn", "dec.1.cross.attn", "dec.2.cross.attn"]
    assert list(seen.only("dec.1.*")) == ["dec.1.cross.attn"]
    assert repr(seen).startswith("Trace(3 tensors, such as dec.0.cross.attn, dec.1.cross.attn, dec.2.cross.attn; src ")
    assert repr(seen.only([])).startswith("Trace(0 tensors")


def test_a_tensor_of_a_trace_is_used_like_an_array(translator):
    found = trace(translator, TEXT, GERMAN, keep="dec.1.cross.attn")["dec.1.cross.attn"]
    values = found.values
    assert found.shape == values.shape == (2, len(found.labels[1]), len(found.labels[2]))
    assert (found.ndim, found.dtype, len(found)) == (3, np.float32, 2)
    assert found.numpy() is values
    assert torch.equal(found.tensor(), torch.from_numpy(values))
    assert found[1, 2].tolist() == values[1, 2].tolist()
    assert np.array_equal([head.sum() for head in found], [head.sum() for head in values])
    assert found.mean() == values.mean()
    assert found.argmax(-1).tolist() == values.argmax(-1).tolist()
    for computed in (1 - found, found + found, found > 0.2, np.exp(found), found @ np.ones(values.shape[-1])):
        assert type(computed) is np.ndarray
    assert np.array_equal(2 * found, 2 * values)
    assert np.allclose(found.sum(-1), 1)
    assert np.array_equal(copy.deepcopy(found), values)
    with pytest.raises(AttributeError, match="nothing"):
        found.nothing()


def test_edits_are_in_the_trace(translator):
    edits = {"dec.0.cross.z": torch.zeros_like}
    seen, plain = trace(translator, TEXT, GERMAN, edits=edits), trace(translator, TEXT, GERMAN)
    assert not seen["dec.0.cross.z"].values.any()
    assert not np.allclose(seen["logits"].values, plain["logits"].values)
    assert max(seen.checks.values()) < 1e-5


@pytest.mark.parametrize("kind", [str, Path])
def test_a_trace_comes_back_from_its_file(translator, tmp_path, kind):
    seen = trace(translator, TEXT)
    seen.save(kind(tmp_path / "a.safetensors"))
    again = Trace.load(kind(tmp_path / "a.safetensors"))
    assert list(again) == list(seen)
    assert (again.lines, again.axes, again.checks) == (seen.lines, seen.axes, seen.checks)
    assert all(np.array_equal(again[name].values, seen[name].values) for name in seen)


def test_what_is_only_looked_at_is_stored_in_fewer_bytes(translator, tmp_path):
    seen = trace(translator, TEXT)
    seen.save(tmp_path / "exact")
    ways = {name: "sqrt_u8" if name.endswith("attn") else "f16" for name in seen} | {
        "logits": "f32",
    }
    seen.save(tmp_path / "small", ways)
    assert (tmp_path / "small").stat().st_size < 0.8 * (tmp_path / "exact").stat().st_size
    again = Trace.load(tmp_path / "small")
    assert np.array_equal(again["logits"].values, seen["logits"].values)
    for name in seen:
        atol, rtol = (0.004, 0) if name.endswith("attn") else (1e-7, 5e-4)
        if not name.endswith("bias"):
            np.testing.assert_allclose(again[name].values, seen[name].values, atol=atol, rtol=rtol)
        assert again[name].values.dtype == np.float32


@pytest.mark.parametrize("stored", [{"not there": "f16"}, {"logits": "f8"}])
def test_what_cannot_be_stored_so_is_refused(translator, stored):
    with pytest.raises(InputError, match="the encodings are f32, f16, sqrt_u8"):
        trace(translator, TEXT).encoded(stored)


def test_any_reader_of_safetensors_gets_at_the_numbers(translator, tmp_path):
    seen = trace(translator, TEXT)
    seen.save(tmp_path / "a.safetensors")
    with safe_open(tmp_path / "a.safetensors", "np") as file:
        manifest = json.loads(file.metadata()["manifest"])
        assert np.array_equal(file.get_tensor("dec.1.cross.attn"), seen["dec.1.cross.attn"].values)
    assert manifest["schema"] == "trace/1"
    assert manifest["lines"]["src"]["read"]["labels"] == seen.lines["src"].read.labels


@pytest.mark.parametrize("damage", [b"", b"nothing", None])
def test_what_is_no_trace_is_refused_by_name(tmp_path, damage):
    path = tmp_path / "a.safetensors"
    path.write_bytes(b"\x02\0\0\0\0\0\0\0{}" if damage is None else damage)
    with pytest.raises(InputError, match=r"a.safetensors"):
        Trace.load(path)


def test_a_manifest_that_is_not_whole_is_refused_by_name(translator, tmp_path):
    path = tmp_path / "a.safetensors"
    trace(translator, TEXT, keep=["enc.norm"]).save(path)
    whole = path.read_bytes()
    for old, new in ((b"trace/1", b"trace/9"), (b"stored", b"st0red"), (b'\\"checks\\"', b'\\"checks\\\\')):
        assert whole.count(old) == 1
        path.write_bytes(whole.replace(old, new))
        with pytest.raises(InputError, match=r"a.safetensors: not a trace/1 \("):
            Trace.load(path)


def test_a_trace_that_cannot_be_stored_leaves_the_older_one(translator, tmp_path):
    path = tmp_path / "a.safetensors"
    seen = trace(translator, TEXT, keep=["enc.norm"])
    seen.save(path)
    with pytest.raises(InputError, match="the encodings are"):
        seen.save(path, {"enc.norm": "f8"})
    assert list(Trace.load(path)) == ["enc.norm"]
    assert [file.name for file in tmp_path.iterdir()] == ["a.safetensors"]


@pytest.mark.parametrize("text", ["", "  ", "\t"])
def test_no_text_is_refused(translator, text):
    for subject in (translator, generator(), filler(), classifier()):
        with pytest.raises(InputError, match="the text is empty"):
            trace(subject, text)


def test_too_long_a_text_is_refused(translator):
    with pytest.raises(InputError, match="but the model takes at most 999"):
        trace(translator, "x " * 1009)
    with pytest.raises(InputError, match="the text has a single token"):
        of_continuation(generator(), [5])
    with pytest.raises(InputError, match="but the model takes at most 24"):
        trace(generator(23), "x " * 29, "x")


def test_what_holds_no_model_is_refused():
    with pytest.raises(InputError, match="the inspector does not support a dict"):
        trace({}, TEXT)
