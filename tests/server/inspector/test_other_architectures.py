"""A model that is no Transformer is served: its answers, tokens and search; what needs attention heads is refused."""

from dataclasses import replace

import pytest
from starlette.testclient import TestClient

import subjects
from heedful.server.application import application
from heedful.server.engine import Engine
from heedful.server.inspector.routes import inspector_routes
from served import PAGE, SAMPLE
from subjects import gated

HEAD = {"block": "dec.0.cross", "number": 0}
PAIR = f"{subjects.TEXT}\tthe old woman sees the station .\tder Hund\tden Bahnhof\tpair"


@pytest.fixture(scope="module")
def server():
    return TestClient(application(inspector_routes(Engine({"own": gated()}), PAGE, SAMPLE)), "http://[::1]")


@pytest.fixture(scope="module")
def seen(server):
    answer = server.post("/api/v1/traces", json={"model": "own", "text": subjects.TEXT})
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_its_answers_tokens_and_search_are_shown(server, seen):
    assert server.get("/api/v1/models").json()["models"][0]["stacks"] == seen["blocks"] == []
    assert seen["answers"][0]["options"]
    assert seen["lines"]["src"]["read"]["labels"]
    assert seen["search"]["token"]
    assert max(seen["checks"].values()) < 1e-5


def test_it_is_exported_without_an_attention_head(server, seen):
    answer = server.get(f"/api/v1/traces/{seen['id']}/export.html")
    assert answer.status_code == 200
    assert 'data-part="overview"' in answer.text


@pytest.mark.parametrize(
    ("path", "question"),
    [
        ("traces/{id}/without", {"off": [HEAD]}),
        ("costs", {"model": "own", "off": [HEAD]}),
        ("sweeps", {"model": "own"}),
        ("probes/bias", {"model": "own", "lines": [PAIR]}),
    ],
)
def test_experiments_on_attention_heads_are_refused_in_words(server, seen, path, question):
    answer = server.post("/api/v1/" + path.format(id=seen["id"]), json=question)
    assert answer.status_code == 400
    assert "own is not a Transformer, so it has no attention heads" in answer.json()["error"]


def test_of_a_run_the_curves_are_shown_and_its_heads_refused(tmp_path):
    (tmp_path / "log.jsonl").write_text('{"update": 1, "loss": 2.0}\n')
    engine = Engine({"own": replace(gated(), path=tmp_path / "model")})
    server = TestClient(application(inspector_routes(engine, PAGE, SAMPLE)), "http://[::1]")
    assert server.get("/api/v1/models/own/development").json()["curves"] == {"loss": [[1, 2.0]]}
    answer = server.post("/api/v1/models/own/heads", json={"text": subjects.TEXT})
    assert answer.status_code == 400
    assert "own is not a Transformer" in answer.json()["error"]


@pytest.mark.parametrize("path", ["tensors", "attribution?place=0&token=5", "neighbours?line=src&place=0"])
def test_everything_else_is_answered_or_refused(server, seen, path):
    assert server.get(f"/api/v1/traces/{seen['id']}/{path}").status_code in (200, 400)
