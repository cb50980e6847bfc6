"""What the description of the API says is what the server does."""

import json
import re
from dataclasses import fields
from importlib.resources import files

import pytest

import served
from heedful.inspector.look import Question
from heedful.serve.engine import Engine
from heedful.serve.inspector.routes import inspector_routes

DOCUMENT = json.loads((files("heedful.serve.inspector") / "openapi.json").read_text())
SCHEMAS = DOCUMENT["components"]["schemas"]


@pytest.fixture(scope="module")
def server():
    return served.client()


def test_every_route_is_described_and_no_other():
    routes = inspector_routes(Engine(served.models()), served.PAGE, ([], []))
    there = {
        (re.sub(r":\w+}", "}", route.path), method.lower())
        for route in routes
        for method in route.methods - {"HEAD"}
        if route.path.startswith("/api/")
    }
    described = {
        (path, method) for path, methods in DOCUMENT["paths"].items() for method in methods if method != "parameters"
    }
    assert there == described


def test_a_question_has_the_fields_that_are_described():
    assert set(SCHEMAS["Question"]["properties"]) == {field.name for field in fields(Question)} | {"model"}


def test_answers_have_the_fields_that_are_described(server):
    models = server.get("/api/v1/models").json()["models"]
    assert all(set(model) == set(SCHEMAS["Model"]["required"]) for model in models)
    seen = server.post("/api/v1/traces", json={"model": "gpt", "text": "the old dog"}).json()
    assert set(seen) == set(SCHEMAS["Look"]["required"])


def test_the_server_gives_its_description(server):
    assert server.get("/api/v1/openapi.json").json() == DOCUMENT


def test_references_lead_somewhere():
    def walk(node):
        if isinstance(node, dict):
            if "$ref" in node:
                yield node["$ref"]
            node = list(node.values())
        if isinstance(node, list):
            for one in node:
                yield from walk(one)

    for reference in walk(DOCUMENT):
        place = DOCUMENT
        for part in reference.removeprefix("#/").split("/"):
            place = place[part]
        assert place
