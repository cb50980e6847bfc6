"""Neighbours of a token, the curves of a run, and what heads did at its checkpoints, as the page asks for them."""

import json
from dataclasses import asdict
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

import served
from heedful.checkpoint import Checkpoints, load_model
from heedful.inspector.development import read_run, snapshots
from heedful.inspector.measures.embeddings import neighbours, row
from heedful.server.application import application
from heedful.server.engine import Engine
from heedful.server.inspector.routes import inspector_routes
from reversal import trained_run
from subjects import TEXT, generator, translator

TEXTS = {"text": "w1 w2 w3", "target": "w3 w2 w1"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return trained_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def server(run):
    models = {**served.models(), str(run): load_model(run)}
    routes = inspector_routes(Engine(models), served.PAGE, ([], []))
    return TestClient(application(routes), "http://127.0.0.1:8642")


@pytest.mark.parametrize(("name", "line"), [("translator", "src"), ("translator", "tgt"), ("gpt", "tgt")])
def test_neighbours_of_a_token_are_found_in_the_table_of_its_line(server, name, line):
    seen = server.post("/api/v1/traces", json={"model": name, "text": TEXT}).json()
    found = server.get(f"/api/v1/traces/{seen['id']}/neighbours?line={line}&place=1&count=3").json()
    token = seen["lines"][line]["read"]["ids"][1]
    subject = translator() if name == "translator" else generator()
    tokenizer = (
        subject.tokenizer if name == "gpt" else getattr(subject.tokenizers, {"src": "source"}.get(line, "target"))
    )
    expected = neighbours(subject.model, tokenizer, line, token, 3)
    assert found.pop("neighbours") == [asdict(one) for one in expected]
    assert found == asdict(row(subject.model, line, token))


@pytest.mark.parametrize("query", ["line=src&place=99", "line=tgt.said&place=0", "place=1", "line=src&place=-1"])
def test_a_token_that_is_not_there_has_no_neighbours(server, query):
    seen = server.post("/api/v1/traces", json={"model": "translator", "text": TEXT}).json()
    assert server.get(f"/api/v1/traces/{seen['id']}/neighbours?{query}").status_code == 400


def test_a_run_tells_how_it_went(server, run):
    found = server.get(f"/api/v1/models/{quote(str(run), safe='')}/development").json()
    assert found["steps"] == Checkpoints(run, keep_last=2).steps()
    assert found["best"] in found["steps"]
    records = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    assert found["curves"]["loss"] == [[record["update"], record["loss"]] for record in records if "loss" in record]


def test_a_model_without_a_run_has_no_curves_and_no_checkpoints(server):
    assert server.get("/api/v1/models/translator/development").json() is None
    answer = server.post("/api/v1/models/translator/heads", json=TEXTS)
    assert answer.status_code == 400
    assert "does not have a run folder" in answer.json()["error"]


def test_heads_come_checkpoint_by_checkpoint(server, run):
    answer = server.post(f"/api/v1/models/{quote(str(run), safe='')}/heads", json=TEXTS)
    events = [json.loads(event.removeprefix("data: ")) for event in answer.text.split("\n\n") if event]
    assert events == [asdict(one) for one in snapshots(run, **TEXTS)]


def test_the_model_of_each_checkpoint_stops_when_its_client_leaves(server, run, monkeypatch):
    watched = []
    monkeypatch.setattr(Engine, "watch", lambda _, loaded: watched.append(loaded))
    server.post(f"/api/v1/models/{quote(str(run), safe='')}/heads", json=TEXTS)
    assert len(watched) == len(read_run(run).steps)


def test_texts_that_do_not_fit_are_refused_before_anything_is_sent(server, run):
    address = f"/api/v1/models/{quote(str(run), safe='')}/heads"
    assert server.post(address, json={"text": " "}).status_code == 400
    assert server.post(address, json={"text": "w1", "folder": "elsewhere"}).status_code == 400
    assert server.post(address.replace("run", "walk"), json=TEXTS).status_code == 404
