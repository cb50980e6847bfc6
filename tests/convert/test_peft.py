"""Adapters in PEFT's format: the package peft computes with one what heedful does, in both directions."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

import foreign_models
from heedful.architectures import load_weights, weights
from heedful.checkpoint import load_model
from heedful.cli.convert import to_heedful
from heedful.config.schema import LoraConfig
from heedful.convert import FORMATS, Model
from heedful.convert.peft import with_adapter
from heedful.convert.weights import present_tokens
from heedful.convert.whisper import whisper_order
from heedful.errors import InputError
from heedful.nn.lora import LoraLinear, add_updates, split_adapter
from heedful.registry import EXPORTERS
from heedful.tasks import find_task
from heedful.text.speech_tokens import SpeechTokens

transformers = pytest.importorskip("transformers")
peft = pytest.importorskip("peft")
pytestmark = pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")

AUTO = {"gpt2": "AutoModelForCausalLM", "llama": "AutoModelForCausalLM", "whisper": "AutoModelForSpeechSeq2Seq"}
AUTO |= {"bert": "AutoModelForMaskedLM", "clip": "AutoModel"}
TARGETS = {  # of PEFT
    "gpt2": ["c_attn", "mlp.c_proj"],
    "llama": ["q_proj", "v_proj", "gate_proj"],
    "whisper": ["q_proj", "v_proj", "fc1"],
    "bert": ["query", "value", "intermediate.dense"],
    "clip": ["q_proj", "out_proj"],
}


@pytest.fixture(scope="module")
def bases(tmp_path_factory) -> dict[str, Path]:
    """A folder of each layout, with heedful's order of tokens."""
    folder, options = tmp_path_factory.mktemp("bases"), {"bert": {"architecture": "BertForMaskedLM"}}
    (folder / "theirs").mkdir()
    for kind in TARGETS:
        getattr(foreign_models, kind)(folder / "theirs" / kind, **options.get(kind, {}))
        EXPORTERS[kind].write(FORMATS[kind].read(folder / "theirs" / kind), folder / kind)
    return {kind: folder / kind for kind in TARGETS}


def opened(kind: str, folder: Path) -> nn.Module:
    return getattr(transformers, AUTO[kind]).from_pretrained(folder).eval()


def tuned(kind: str, base: Path, **lora: object) -> tuple[Model, nn.Module]:
    """A model as after training with LoRA: with the updates added to its weights, and with the updates apart."""
    model = FORMATS[kind].read(base)
    config = LoraConfig(rank=3, alpha=5.0, **lora)
    torch.manual_seed(3)
    network = find_task(model.recipe.task).build(model.recipe, model.tokenizers).eval()
    load_weights(network, model.weights)
    add_updates(network, config)
    for layer in network.modules():
        if isinstance(layer, LoraLinear):
            nn.init.normal_(layer.lora_b)
    values, adapter = split_adapter(weights(network), config)
    return replace(model, weights=adapter.merged(values), adapter=adapter), network


def assert_close(found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, atol=1e-5, rtol=1e-5, msg=name)


@pytest.mark.parametrize("kind", TARGETS)
def test_peft_adds_an_exported_adapter_to_the_same_weights(kind, bases, tmp_path):
    model, _ = tuned(kind, bases[kind], targets=() if kind in ("gpt2", "whisper") else ("q", "feed_forward"))
    EXPORTERS["peft"].write(model, tmp_path / "adapter")
    EXPORTERS[kind].write(model, tmp_path / "merged")
    merged = peft.PeftModel.from_pretrained(opened(kind, bases[kind]), tmp_path / "adapter").merge_and_unload()
    assert_close(dict(merged.named_parameters()), dict(opened(kind, tmp_path / "merged").named_parameters()))


@torch.no_grad()
def test_peft_computes_with_an_exported_adapter_what_heedful_computes(bases, tmp_path):
    # Of c_attn q and v are updated, k is not.
    model, network = tuned("gpt2", bases["gpt2"], targets=("q", "v", "down"))
    EXPORTERS["peft"].write(model, tmp_path / "gpt2")
    theirs = peft.PeftModel.from_pretrained(opened("gpt2", bases["gpt2"]), tmp_path / "gpt2")
    present = torch.tensor(present_tokens(network))
    ids = torch.randint(len(present), (3, 17))
    torch.testing.assert_close(network(present[ids])[..., present], theirs(ids).logits, atol=1e-4, rtol=1e-4)

    model, network = tuned("whisper", bases["whisper"], targets=("q", "v"))
    EXPORTERS["peft"].write(model, tmp_path / "whisper")
    theirs = peft.PeftModel.from_pretrained(opened("whisper", bases["whisper"]), tmp_path / "whisper")
    order = torch.tensor(whisper_order(len(model.tokenizers.target), SpeechTokens.of(model.tokenizers.target)))
    frames, ids = torch.randn(2, 100, 13), torch.randint(len(order), (2, 11))
    expected = theirs(input_features=frames.mT, decoder_input_ids=ids).logits
    torch.testing.assert_close(network(frames, None, order[ids])[..., order], expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", TARGETS)
def test_an_adapter_of_peft_is_added_to_the_same_weights(kind, bases, tmp_path):
    base = opened(kind, bases[kind])
    name = next(name for name, _ in base.named_modules() if name.endswith(TARGETS[kind][0]))
    tables = {"target_modules": TARGETS[kind], "rank_pattern": {name: 2}, "alpha_pattern": {name: 7}}
    config = peft.LoraConfig(r=4, lora_alpha=6, use_rslora=True, fan_in_fan_out=kind == "gpt2", **tables)
    theirs = peft.get_peft_model(base, config)
    for key, value in theirs.named_parameters():
        if "lora_B" in key:
            nn.init.normal_(value)
    theirs.save_pretrained(tmp_path / "adapter")
    shutil.copytree(bases[kind], tmp_path / "merged")
    theirs.merge_and_unload().save_pretrained(tmp_path / "merged")
    to_heedful(bases[kind], kind, None, tmp_path / "ours", None, tmp_path / "adapter")
    expected, found = FORMATS[kind].read(tmp_path / "merged").weights, weights(load_model(tmp_path / "ours").model)
    assert_close({name: found[name] for name in expected}, expected)
    before = FORMATS[kind].read(bases[kind]).weights
    assert not all(torch.equal(before[name], found[name]) for name in before)


@pytest.mark.parametrize("also", [("pooler", "output"), ("output",)])
def test_the_head_of_a_classifier_is_stored_next_to_its_updates(also, tmp_path):
    foreign_models.bert(tmp_path / "bert", "BertModel")
    base = FORMATS["bert"].read(tmp_path / "bert")
    config = LoraConfig(rank=3, also=also)
    recipe = replace(base.recipe, task="classification", data=replace(base.recipe.data, labels=("a", "b", "c")))
    recipe = replace(recipe, model=replace(recipe.model, pooling="first"))
    network = find_task("classification").build(recipe, base.tokenizers).eval()
    network.load_state_dict(base.weights, strict=False)
    add_updates(network, config)
    for layer in network.modules():
        if isinstance(layer, LoraLinear):
            nn.init.normal_(layer.lora_b)
    values, adapter = split_adapter(weights(network), config)
    model = replace(base, recipe=recipe, weights=adapter.merged(values), adapter=adapter)
    EXPORTERS["peft"].write(model, tmp_path / "adapter")

    EXPORTERS["bert"].write(base, tmp_path / "base")
    theirs = transformers.BertForSequenceClassification.from_pretrained(tmp_path / "base", num_labels=3)
    theirs.bert.pooler.dense.weight.data = values["pooler.dense.weight"]  # which a BERT has that was trained on pairs
    theirs.bert.pooler.dense.bias.data = values["pooler.dense.bias"]
    theirs = peft.PeftModel.from_pretrained(theirs, tmp_path / "adapter").eval()
    ids = torch.randint(5, 100, (3, 17))
    with torch.no_grad():
        torch.testing.assert_close(network(ids), theirs(ids).logits, atol=1e-4, rtol=1e-4)

    for pooling, pooler in (("mean", "dense"), ("first", "none")):
        other = replace(recipe, model=replace(recipe.model, pooling=pooling, pooler=pooler))
        with pytest.raises(InputError, match=rf'needs model\.pooling = "first" .*not "{pooling}" and "{pooler}"'):
            EXPORTERS["peft"].write(replace(model, recipe=other), tmp_path / "other")


def test_a_model_without_an_adapter_is_refused(bases, tmp_path):
    with pytest.raises(InputError, match=r"it has no adapter, because it was not trained with train\.lora"):
        EXPORTERS["peft"].write(FORMATS["gpt2"].read(bases["gpt2"]), tmp_path / "adapter")
    assert not (tmp_path / "adapter").exists()


def test_a_layout_with_other_modules_is_refused(tmp_path):
    foreign_models.marian(tmp_path / "marian")
    model, _ = tuned("marian", tmp_path / "marian")
    with pytest.raises(
        InputError, match=r"of the layout marian in transformers differ from heedful's; .*--to huggingface"
    ):
        EXPORTERS["peft"].write(model, tmp_path / "adapter")


def test_trained_embeddings_are_refused(bases, tmp_path):
    model, _ = tuned("gpt2", bases["gpt2"], also=("backbone.embedding",))
    with pytest.raises(InputError, match=r"backbone\.embedding\.weight was trained as well .*--to huggingface"):
        EXPORTERS["peft"].write(model, tmp_path / "adapter")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"peft_type": "IA3"}, r'adapter_config\.json: peft_type is "IA3", but heedful reads only LoRA'),
        ({"use_dora": True}, "use_dora is set"),
        ({"r": None}, "r is missing"),
        ({}, r"adapter_model\.safetensors: the model has no transformer\.h\.7\.attn\.c_attn of this size"),
    ],
)
def test_an_adapter_that_does_not_fit_is_refused(settings, message, bases, tmp_path):
    values = {"peft_type": "LORA", "r": 2, "lora_alpha": 3, **settings}
    (tmp_path / "adapter_config.json").write_text(json.dumps(values))
    name = "base_model.model.transformer.h.7.attn.c_attn.lora_{}.weight"
    tensors = {name.format("A"): torch.ones(2, 26), name.format("B"): torch.ones(78, 2)}
    save_file(tensors, tmp_path / "adapter_model.safetensors")
    with pytest.raises(InputError, match=message):
        with_adapter(FORMATS["gpt2"].read(bases["gpt2"]), FORMATS["gpt2"].names, tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tensors: tensors | {"base_model.model.score.weight": torch.ones(3)}, r"score\.weight is not an update"),
        (lambda tensors: dict(list(tensors.items())[:1]), r"A and B of transformer\.h\.1\.mlp\.c_fc do not match"),
        (None, "is missing, or is not a readable safetensors file"),
    ],
)
def test_a_damaged_file_is_refused(change, message, bases, tmp_path):
    (tmp_path / "adapter_config.json").write_text('{"peft_type": "LORA", "r": 2, "lora_alpha": 3}')
    name = "base_model.model.transformer.h.1.mlp.c_fc.lora_{}.weight"
    tensors = {name.format("A"): torch.ones(2, 26), name.format("B"): torch.ones(41, 2)}
    if change:
        save_file(change(tensors), tmp_path / "adapter_model.safetensors")
    with pytest.raises(InputError, match=message):
        with_adapter(FORMATS["gpt2"].read(bases["gpt2"]), FORMATS["gpt2"].names, tmp_path)
