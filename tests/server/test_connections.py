"""Connections that say nothing are closed, and however many there are, others are served."""

import json
import socket
import threading
import time
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

import served
from heedful.inspector.page import Page
from heedful.server import limits as connections

PATIENCE = 120  # seconds: a busy machine is slow
LARGE = Page("x" * 20_000_000)  # more than the system's own buffers hold
LONG = json.dumps({"model": "translator", "text": "the old dog " * 97, "beam": 7}).encode()
HEAD = b"GET /api/v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.fixture
def models():
    return served.models()


@pytest.fixture
def live(monkeypatch, models):
    for name in ("HEADERS", "READING"):
        monkeypatch.setattr(connections, name, 0.3)
    monkeypatch.setattr(connections, "IDLE", 0.3)
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 11)
    with served.Live(models, LARGE) as server:
        yield server


def connected(live):
    return socket.create_connection(live.listening.getsockname(), timeout=PATIENCE)


def closed(connection):
    """Wait until the server has closed a connection; return what it said before."""
    said = b""
    try:
        while part := connection.recv(65536):
            said += part
    except ConnectionError:
        pass
    return said


def asked(live):
    """What the server says of its models."""
    with urlopen(f"{live.address}api/v1/models", timeout=PATIENCE) as answer:
        return json.load(answer)["models"]


def test_a_connection_that_brings_no_request_is_closed(live):
    with connected(live) as silent:
        assert closed(silent) == b""


def test_headers_that_come_a_byte_at_a_time_do_not_keep_a_connection_open(live):
    with connected(live) as slow:
        slow.sendall(HEAD)

        def drip():
            try:
                while True:
                    slow.sendall(b"X")
                    time.sleep(0.01)
            except OSError:
                pass

        dripping = threading.Thread(target=drip)
        dripping.start()
        assert closed(slow) == b""
    dripping.join(PATIENCE)


def test_a_second_request_on_a_connection_is_answered_and_a_half_one_closes_it(live):
    with connected(live) as client:
        for _ in range(2):
            client.sendall(HEAD + b"\r\n")
            assert client.recv(4) == b"HTTP"
            while b"sample" not in client.recv(65536):
                pass
        client.sendall(HEAD)
        closed(client)


def test_a_connection_without_a_next_request_is_closed(live):
    with connected(live) as client:
        client.sendall(HEAD + b"\r\n")
        assert closed(client).startswith(b"HTTP/1.1 200")


def test_beside_any_number_of_silent_connections_others_are_served(live, monkeypatch):
    monkeypatch.setattr(connections, "HEADERS", PATIENCE)
    silent = [connected(live) for _ in range(53)]
    assert len(asked(live)) == 4
    assert len(live.server.server_state.connections) <= connections.MAX_CONNECTIONS
    assert closed(silent[0]) == b""
    for connection in silent:
        connection.close()


POST = b"POST /api/v1/traces HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n{"


def test_beside_any_number_of_half_sent_requests_others_are_served(live):
    halves = [connected(live) for _ in range(13)]
    for half in halves:
        half.sendall(POST)
    assert asked(live)
    for half in halves:
        half.close()


def test_a_half_sent_request_does_not_keep_a_server_from_ending(live, capfd, monkeypatch):
    monkeypatch.setattr(live.server.config, "timeout_graceful_shutdown", PATIENCE)
    with connected(live) as half:
        half.sendall(POST)
        assert asked(live)
        begin = time.monotonic()
        live.server.should_exit = True
        live.thread.join()
        assert closed(half) == b""
    assert time.monotonic() - begin < PATIENCE / 4
    assert capfd.readouterr().err == ""


def test_an_answer_that_nobody_reads_is_given_up(live):
    with connected(live) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        while not live.server.server_state.connections:
            time.sleep(0.01)
        while live.server.server_state.connections:
            time.sleep(0.01)
        assert len(closed(client)) < len(LARGE.html)


def test_an_answer_that_is_read_slowly_arrives_whole(live):
    with connected(live) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        said = b""
        while part := client.recv(1_000_000):
            said += part
            time.sleep(0.02)
        assert said.endswith(LARGE.html.encode())


def test_what_is_computed_stops_when_its_client_hangs_up(live, models):
    ran = []
    models["translator"].model.decoder.blocks[0].register_forward_pre_hook(lambda *_: ran.append(1))
    with connected(live) as client:
        head = f"POST /api/v1/traces HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(LONG)}\r\n\r\n"
        client.sendall(head.encode() + LONG)
        while len(ran) < 3:
            time.sleep(0.001)
    while live.server.server_state.tasks:
        time.sleep(0.001)
    at_most = len(ran) + 2
    short = json.dumps({"model": "gpt", "text": "the dog", "target": " sees"}).encode()
    urlopen(Request(f"{live.address}api/v1/traces", short), timeout=PATIENCE).close()
    assert len(ran) <= at_most


def test_what_is_computed_stops_when_the_server_ends(live):
    found = []

    def ask():
        with pytest.raises(HTTPError) as refused:
            urlopen(Request(f"{live.address}api/v1/traces", LONG), timeout=PATIENCE)
        found.append(refused.value.code)
        refused.value.close()

    asking = threading.Thread(target=ask)
    asking.start()
    while not live.server.server_state.tasks:
        time.sleep(0.01)
    live.server.should_exit = True
    asking.join(PATIENCE)
    live.thread.join(PATIENCE)
    assert not live.thread.is_alive()
    assert found == [503]
