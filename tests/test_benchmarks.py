"""The scripts in benchmarks/: that each system runs, and that their arithmetic is that of torch's own counter."""

import json
import os
import re
import subprocess
import sys
from argparse import Namespace
from dataclasses import replace
from functools import partial
from pathlib import Path

import caption_boxes
import decode_mechanisms
import gpt_step
import gpu
import head_distances
import pytest
import race
import recurrent_step
import torch
import train_mechanisms
import train_step
from PIL import Image
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from heedful.architectures.recurrent.model import RecurrentEncoderDecoder
from heedful.config.schema import ModelConfig
from heedful.inspector.measures.attention import box_masses
from heedful.tools.compare.measure import count_flops
from served import loaded_translator
from toy_readers import CAPTION, PICTURE, loaded

CPU = torch.device("cpu")
ROOT = Path(__file__).parent.parent
TOY = ModelConfig(d_model=8, d_ff=24, heads=2, encoder_layers=3, decoder_layers=2, dropout=0.1)
TOY_GPT = gpt_step.preset(2, 64, 13)


@pytest.mark.parametrize("name", train_step.SYSTEMS)
def test_each_system_of_the_training_benchmark_steps_on_a_cpu(name):
    steps_on_a_cpu(train_step.SYSTEMS[name], race.Size(TOY, train_step.batches, 211, 1, 2), train_step.flops)


@pytest.mark.parametrize("name", [name for name in recurrent_step.SYSTEMS if name.startswith("heedful")])
@pytest.mark.parametrize("size", recurrent_step.SIZES.values(), ids=recurrent_step.SIZES)
def test_each_recurrent_system_of_heedful_steps_on_a_cpu(name, size):
    toy = replace(size, config=replace(size.config, d_model=8), cells=211, warm_up=1, steps=2)
    steps_on_a_cpu(recurrent_step.SYSTEMS[name], toy, recurrent_step.flops)


@pytest.mark.parametrize("name", gpt_step.SYSTEMS)
def test_each_system_of_the_gpt_benchmark_steps_on_a_cpu(name):
    size = race.Size(TOY_GPT, partial(gpt_step.windows, context=13), 39, 1, 2)
    steps_on_a_cpu(gpt_step.SYSTEMS[name], size, gpt_step.flops)


@pytest.mark.parametrize("name", train_mechanisms.REPLACEMENTS)
def test_a_step_without_a_mechanism_makes_the_same_loss_but_for_rounding_and_dropout(name):
    config = replace(TOY, dropout=0.0)
    (batch,) = train_step.batches(1, 211, 1, CPU)
    torch.manual_seed(1)
    whole = train_step.heedful(config, CPU, "bfloat16")(batch)
    place, by = train_mechanisms.REPLACEMENTS[name]
    torch.manual_seed(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(place, by)
        without = train_step.heedful(config, CPU, "bfloat16")(batch)
    assert without.losses == pytest.approx(whole.losses, rel=1e-2)


def test_a_search_without_a_mechanism_finds_the_same():
    rows = [[5, 7, 11], [13], [5, 5, 5, 17, 7]]
    searches = decode_mechanisms.searches(loaded_translator(seed=1), beam=3)
    found = {name: [best[0].tokens for best in search(rows)] for name, search in searches.items()}
    assert all(tokens == found["heedful"] for tokens in found.values())


@pytest.mark.slow
def test_the_script_for_a_gpu_measures_its_parts_in_tiny_sizes_on_a_cpu_and_makes_tables_of_them(tmp_path):
    parts = ["limits", "base", "float16", "decoding, greedy"]
    command = ["sh", str(ROOT / "benchmarks/gpu.sh"), "--tiny", "--device", "cpu", "--threads", "1", "--parts", *parts]
    environment = os.environ | {"OUT": str(tmp_path), "PYTHON": sys.executable}
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    lines = [json.loads(line) for line in (tmp_path / "gpu-tiny.jsonl").read_text().splitlines()]
    assert [line["part"] for line in lines] == parts
    assert not [line for line in lines if "skipped" in line]
    assert all(line["tiny"] for line in lines)
    training, decoding = gpu.tables(lines).split("\n\n")
    assert [row.split(" | ")[:3] for row in training.splitlines()[2:]] == [
        ["| base", "bfloat16", "no"],
        ["| base", "float16", "no"],
    ]
    assert f"| greedy | {lines[-1]['heedful']:,.0f} | {lines[-1]['CTranslate2']:,.0f} |" in decoding


def test_a_part_that_fails_or_hangs_is_named_with_the_reason(monkeypatch):
    options = Namespace(device="cpu", threads=1, tiny=True)
    assert gpu.measure_apart("limits", options, 0.01) == {"skipped": "not finished after 0 seconds"}
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert gpu.measure_apart("limits", options, 9)["skipped"] == "exit code 1, see standard error"


@pytest.mark.parametrize("page", ["docs/performance.md", "docs/zh/performance.md"])
def test_what_was_measured_on_a_gpu_is_in_the_tables_of_the_page(page):
    file = ROOT / "benchmarks/gpu.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    rows = [row for row in gpu.tables(lines).splitlines() if row.startswith("| ") and "---" not in row]
    text = (ROOT / page).read_text(encoding="utf-8")
    figures = [re.findall(r"\d[\d,.]*", row) for row in rows]
    assert all(figure in text for row in figures for figure in row)


def steps_on_a_cpu(system, size, flops):
    found = race.measure(race.Race("", {"": system}, {"": size}, flops), system, size, size.cells, 1, CPU)
    assert found.tokens > 0
    assert found.useful > 0
    assert found.peak > 0


def test_the_work_of_an_encoder_decoder_is_what_torch_counts_less_the_hidden_half_of_causal_scores():
    lengths = torch.full((5, 2), 7).numpy()
    batch = train_step.batch(train_step.np.random.default_rng(1), lengths, CPU)
    config = replace(TOY, dropout=0.0)
    with pytest.MonkeyPatch.context() as patch:
        place, by = train_mechanisms.REPLACEMENTS["the loss of all logits at once"]
        patch.setattr(place, by)
        step = train_step.heedful(config, CPU, "float32")
        with FlopCounterMode(display=False) as counter:
            step(batch)
    length = batch.target_in.size(1)
    hidden = 6 * config.d_model * config.decoder_layers * 5 * length**2
    assert train_step.flops(config, batch) + hidden == counter.get_total_flops()


@pytest.mark.parametrize("size", recurrent_step.SIZES.values(), ids=recurrent_step.SIZES)
def test_the_work_of_a_recurrent_model_is_what_is_counted_but_for_the_first_state_of_its_decoder(size):
    config = replace(size.config, d_model=14, dropout=0.0)
    model = RecurrentEncoderDecoder(config, 23, 23)
    with pytest.MonkeyPatch.context() as patch:
        for script in (recurrent_step, train_step):
            patch.setattr(script, "VOCAB", 23)
        batch = train_step.batch(train_step.np.random.default_rng(1), torch.full((5, 2), 17).numpy(), CPU)
        padding_masks = batch.source_padding_mask, batch.target_padding_mask
        forward = count_flops(lambda: model(batch.source, padding_masks[0], batch.target_in, padding_masks[1]))
        assert recurrent_step.flops(config, batch) == pytest.approx(3 * forward, rel=0.01)


def test_the_work_of_a_gpt_is_what_torch_counts_less_the_hidden_half_of_causal_scores():
    (batch,) = gpt_step.windows(1, 39, 1, CPU, context=13)
    model = gpt_step.PlainGPT(TOY_GPT)
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        model(batch.inputs).sum().backward()
    hidden = 6 * TOY_GPT.model.d_model * TOY_GPT.model.decoder_layers * 3 * 13**2
    assert gpt_step.flops(TOY_GPT, batch) + hidden == counter.get_total_flops()


def test_the_masses_of_the_best_head_are_sorted_by_the_place_of_the_word_among_those_about_an_object(tmp_path):
    side, word = [0, 0, 7, 7], [3, 7, 10, 14]
    boxes = [[0, 3, None], [4, 8, side], [9, 13, side], [14, 16, word], [17, 23, None]]
    row = json.dumps({"picture": "a.png", "text": CAPTION, "boxes": {"text": boxes}})
    (tmp_path / "a.png").write_bytes(PICTURE)
    for part in ("valid", "test"):
        (tmp_path / f"{part}.jsonl").write_text(f"{row}\n")
    captioner = loaded("captioning", model={"decoder_layers": 3})
    head, by_place, even = caption_boxes.measured(captioner, tmp_path, 1)
    found = box_masses(captioner.use(), PICTURE, CAPTION, boxes)
    masses = torch.stack([one.mass for one in found])
    assert masses.mean(0)[head] == masses.mean(0).max()
    assert by_place == [[float(found[0].mass[head]), float(found[2].mass[head])], [float(found[1].mass[head])]]
    assert even == pytest.approx(sum(one.chance for one in found) / 3)


def test_the_distances_of_heads_are_means_over_files(tmp_path):
    other = tmp_path / "other.png"
    (tmp_path / "a.png").write_bytes(PICTURE)
    Image.new("RGB", (21, 14), "red").save(other)
    model = loaded("image_classification")
    one, two = (head_distances.distances(model, [tmp_path / name]) for name in ("a.png", "other.png"))
    both = head_distances.distances(model, [tmp_path / "a.png", other])
    assert list(both) == ["enc.0.self"]
    means = [(a + b) / 2 for a, b in zip(one["enc.0.self"], two["enc.0.self"], strict=True)]
    assert both["enc.0.self"] == pytest.approx(means)
