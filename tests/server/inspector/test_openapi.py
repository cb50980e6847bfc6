"""What the description of the API says is what the server does."""

import json
import re
from dataclasses import fields
from importlib.resources import files
from itertools import chain

import pytest

import served
from heedful.inspector.look import Question
from heedful.server.engine import Engine
from heedful.server.inspector.routes import inspector_routes

DOCUMENT = json.loads((files("heedful.server.inspector") / "openapi.json").read_text())
SCHEMAS = DOCUMENT["components"]["schemas"]
PLAIN = r"(?!(What|Who|How|Where|That|Those|Whose|Its|The same)\b)[A-Z]"  # how a sentence that stands alone begins


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
    references = [node["$ref"] for node in nodes(DOCUMENT) if "$ref" in node]
    assert references
    for reference in references:
        place = DOCUMENT
        for part in reference.removeprefix("#/").split("/"):
            place = place[part]
        assert place


def test_whatever_is_described_is_described_in_plain_words():
    said = list(descriptions(DOCUMENT))
    assert len(said) > 80
    assert [text for text in said if not re.match(PLAIN, text)] == []


def test_every_operation_parameter_field_and_answer_is_described():
    operations = [
        operation
        for methods in DOCUMENT["paths"].values()
        for method, operation in methods.items()
        if method != "parameters"
    ]
    parameters = [*chain.from_iterable(operation.get("parameters", []) for operation in operations)]
    answers = [*chain.from_iterable(operation["responses"].values() for operation in operations)]
    described = [*parameters, *answers, *DOCUMENT["components"]["parameters"].values(), *properties(DOCUMENT)]
    assert [one for one in operations if not one.get("summary")] == []
    assert [one for one in described if not one.keys() & {"description", "$ref"}] == []


def nodes(tree):
    """Every object in a JSON document."""
    if isinstance(tree, dict):
        yield tree
        yield from chain.from_iterable(map(nodes, tree.values()))
    if isinstance(tree, list):
        yield from chain.from_iterable(map(nodes, tree))


def descriptions(tree):
    """Every summary and description."""
    for node in nodes(tree):
        yield from (node[key] for key in ("summary", "description") if isinstance(node.get(key), str))


def properties(tree):
    """Every field of every object."""
    for node in nodes(tree):
        if node.get("type") == "object":
            yield from node["properties"].values()
