"""What the page tries on a model is answered as Python answers it, and what cannot be tried is refused in words."""

import json
import re

import pytest
from starlette.testclient import TestClient

import subjects
from heedful.inspector.capture.recorder import Head
from heedful.inspector.experiments.ablation import cost
from heedful.inspector.experiments.minimal_pairs import contrasts, shifts
from heedful.server.application import application
from heedful.server.engine import Engine
from heedful.server.inspector.routes import inspector_routes
from served import PAGE, SAMPLE, client, models

OFF = [{"block": "dec.0.cross", "number": 1}, {"block": "enc.1.self", "number": 0}]
PATTERN = {"block": "dec.*.cross", "number": 0}
LINE = f"{subjects.TEXT}\tthe old woman sees the station .\t{subjects.GERMAN}\tder Hund .\tpair"


@pytest.fixture(scope="module")
def server():
    return client()


def look(server, model="translator", text=subjects.TEXT):
    return server.post("/api/v1/traces", json={"model": model, "text": text}).json()


def test_a_look_is_compared_with_itself_without_some_heads(server):
    seen = look(server)
    found = server.post(f"/api/v1/traces/{seen['id']}/without", json={"off": OFF}).json()
    assert found["pieces"] == seen["lines"]["tgt"]["written"]["labels"]
    assert len(found["whole"]) == len(found["without"]) == len(found["pieces"])
    assert found["whole"] != found["without"]
    assert found["choices"] == []


@pytest.mark.parametrize(("model", "block"), [("gpt", "dec.0.self"), ("bert", "enc.0.self"), ("classes", "enc.0.self")])
def test_every_family_can_do_without_a_head(server, model, block):
    seen = look(server, model, "the old [MASK] sees the station .")
    path = f"/api/v1/traces/{seen['id']}/without"
    found = server.post(path, json={"off": [{"block": block, "number": 1}], "way": "even"}).json()
    assert bool(found["pieces"]) == (model == "gpt")
    assert bool(found["choices"]) == (model != "gpt")


def test_the_cost_of_some_heads_is_that_of_python(server):
    found = server.post("/api/v1/costs", json={"model": "translator", "off": OFF, "way": "even"}).json()
    off = [Head(**head) for head in OFF]
    expected = cost(models()["translator"].use(), off, *SAMPLE, "even")
    assert found["system"]["value"] == pytest.approx(expected.system.value)
    assert found["p_value"] == pytest.approx(expected.p_value)


def test_with_all_heads_the_sample_is_translated_once(monkeypatch):
    engine = Engine(models())
    translator, asked = engine.model("translator").predictor, []
    plain = translator.translate
    monkeypatch.setattr(translator, "translate", lambda texts: asked.append(texts) or plain(texts))
    with TestClient(application(inspector_routes(engine, PAGE, SAMPLE)), "http://127.0.0.1:8642") as server:
        for _ in range(2):
            server.post("/api/v1/costs", json={"model": "translator", "off": OFF})
        with server.stream("POST", "/api/v1/sweeps", json={"model": "translator"}) as answer:
            events = [line for line in answer.iter_lines() if line]
    assert len(asked) == 1 + 2 + len(events)


def test_an_error_on_the_way_comes_as_an_event(server):
    with server.stream("POST", "/api/v1/sweeps", json={"model": "translator", "way": "loud"}) as answer:
        [event] = [json.loads(line.removeprefix("data: ")) for line in answer.iter_lines() if line]
    assert "choose one of silent, even" in event["error"]


def test_minimal_pairs_are_answered_as_python_answers_them(server):
    lines = ["# mine", LINE, LINE.replace("pair", "control")]
    found = server.post("/api/v1/probes/bias", json={"model": "translator", "lines": lines}).json()
    expected = list(shifts(models()["translator"].use(), contrasts(lines)))
    assert [one["shift"] for one in found["shifts"]] == pytest.approx([one.shift for one in expected], abs=1e-5)
    assert [one["contrast"]["line"] for one in found["shifts"]] == [2, 3]
    assert found["summaries"]["pair"]["count"] == found["summaries"]["control"]["count"] == 1
    assert len(found["summaries"]["pair"]["shift"]) == 3


@pytest.mark.parametrize(
    ("path", "question", "status", "words"),
    [
        ("costs", {"model": "gpt", "off": OFF}, 400, "this needs a translator and a sample"),
        ("costs", {"model": "nobody", "off": OFF}, 404, "does not exist"),
        ("costs", {"model": "translator", "off": [{"block": "dec.9.self", "number": 0}]}, 400, "the tensor dec.9"),
        ("costs", {"model": "translator", "off": [{"block": "*", "number": 0}]}, 400, "is a pattern, but a head"),
        ("costs", {"model": "translator", "off": "all"}, 400, "off"),
        ("probes/bias", {"model": "translator", "lines": [LINE, "what"]}, 400, "line 2: has 1 column "),
        ("probes/bias", {"model": "classes", "lines": [LINE]}, 400, "line 1: .*not for a Classifier"),
        ("probes/bias", {"model": "translator", "lines": [LINE] * 301}, 400, "the page allows at most 300 lines"),
        ("probes/bias", {"model": "translator"}, 400, "lines"),
        ("probes/bias", {"model": "translator", "lines": [LINE], "head": PATTERN}, 400, "is a pattern, but a head"),
        ("traces/none/without", {"off": OFF}, 404, "that inspection is no longer in the cache"),
    ],
)
def test_what_cannot_be_tried_is_refused_in_words(server, path, question, status, words):
    answer = server.post(f"/api/v1/{path}", json=question)
    assert answer.status_code == status
    assert re.search(words, answer.json()["error"])
