"""Captioner: texts about files, alone or together, by every search."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from heedful.errors import InputError
from heedful.predictors.captioner import Captioner
from heedful.tasks import TASKS as ALL
from heedful.text.tokenizer import BOS, EOS, PAD
from toy_captions import TASKS, recipe, write_table
from toy_media import drawn, png


@pytest.fixture(params=TASKS)
def made(request, tmp_path):
    """An untrained captioner with strong opinions, and the files that it reads."""
    settings = recipe(request.param, write_table(request.param, tmp_path / "files"))
    task = ALL[request.param].prepare(settings, tmp_path / "data", lambda _: None)
    torch.manual_seed(1)
    model = task.build(settings, task.tokenizers).eval()
    torch.nn.init.normal_(model.output.weight)
    files = sorted((tmp_path / "files" / "files").iterdir())[:7]
    return Captioner(model, task.tokenizers, settings), files


def test_a_text_does_not_depend_on_the_other_files(made):
    captioner, files = made
    together = list(captioner.caption_files(files))
    for file, found in zip(files, together, strict=True):
        [alone] = captioner.caption_files([file])
        assert [one.text for one in alone] == [one.text for one in found]
        assert alone[0].hypothesis.score == pytest.approx(found[0].hypothesis.score, abs=1e-4)
    small = replace(captioner.config, batch_tokens=1)
    captioner.config = small
    assert [found[0].text for found in captioner.caption_files(files)] == [found[0].text for found in together]


def test_a_beam_of_one_is_greedy_search_through_the_whole_model(made):
    captioner, files = made
    for file in files[:3]:
        rows = captioner.reader.modality.features(captioner.reader.decoded(file))[None]
        mask, written = torch.ones(1, rows.size(1), dtype=torch.bool), [BOS]
        with torch.no_grad():
            while len(written) <= captioner.config.max_extra and (len(written) == 1 or written[-1] != EOS):
                target = torch.tensor([written])
                logits = captioner.model(rows, mask, target, torch.ones_like(target, dtype=torch.bool))[0, -1]
                logits[[PAD, BOS]] = -torch.inf  # which no search writes
                written.append(int(logits.argmax()))
        tokens = [token for token in written[1:] if token != EOS]
        assert captioner.caption(file, beam=1) == captioner.tokenizers.target.decode(tokens)


def test_the_score_of_a_text_is_that_of_teacher_forcing(made):
    captioner, files = made
    [found] = captioner.caption_files(files[:1], n_best=3, alpha=0.0)
    rows = captioner.reader.modality.features(captioner.reader.decoded(files[0]))[None]
    scores = [one.hypothesis.score for one in found]
    assert scores == sorted(scores, reverse=True)
    for one in found:
        wanted = [*one.hypothesis.tokens, EOS][: len(one.hypothesis.token_scores)]
        target = torch.tensor([[BOS, *wanted[:-1]]])
        with torch.no_grad():
            mask = torch.ones(1, rows.size(1), dtype=torch.bool)
            logs = captioner.model(rows, mask, target, torch.ones_like(target, dtype=torch.bool))[0].log_softmax(-1)
        total = sum(float(logs[place, token]) for place, token in enumerate(wanted))
        assert math.isclose(one.hypothesis.score, total, abs_tol=1e-3)


def test_files_bytes_and_arrays_are_all_read(tmp_path):
    settings = recipe("captioning", write_table("captioning", tmp_path / "files"))
    task = ALL["captioning"].prepare(settings, tmp_path / "data", lambda _: None)
    captioner = Captioner(task.build(settings, task.tokenizers).eval(), task.tokenizers, settings)
    pixels = drawn("left", 3)
    (tmp_path / "one.png").write_bytes(png(pixels))
    told = captioner.caption([str(tmp_path / "one.png"), png(pixels), pixels])
    assert told[0] == told[1] == told[2] == captioner.caption(tmp_path / "one.png")
    with pytest.raises(InputError, match="image 2: "):
        captioner.caption([pixels, b"no picture"])
    unknown: Any = {"beams": 3}
    with pytest.raises(InputError, match="unknown option beams"):
        captioner.caption(pixels, **unknown)
    with pytest.raises(InputError, match="beam must be at least 1"):
        captioner.caption(np.zeros((14, 21, 3), np.uint8), beam=0)
    with pytest.raises(InputError, match=r"n_best = 3: .* caption_files"):
        captioner.caption(pixels, beam=3, n_best=3)


def test_a_text_ends_where_the_positions_of_the_model_do(tmp_path):
    made = recipe("captioning", write_table("captioning", tmp_path / "files"))
    settings = replace(made, model=replace(made.model, positions="learned", max_target_positions=7))
    task = ALL["captioning"].prepare(settings, tmp_path / "data", lambda _: None)
    model = task.build(settings, task.tokenizers).eval()
    with torch.no_grad():
        weight = model.get_parameter("output.weight")
        weight[EOS] = 0
        weight[EOS + 3] *= 100
    captioner = Captioner(model, task.tokenizers, settings)
    for beam in (1, 3):
        [[one]] = captioner.caption_files([drawn("left", 3)], beam=beam, max_extra=997)
        assert len(one.hypothesis.token_scores) <= 7
