"""Strangers stay outside: other hosts, other origins, and whoever has no token."""

import pytest

from served import client

ASK = {"model": "translator", "text": "the old dog ."}


@pytest.mark.parametrize("host", ["127.0.0.1:8642", "localhost:8642", "localhost", "[::1]:8642", "LOCALHOST"])
def test_names_of_this_machine_are_answered_to(host):
    assert client().get("/api/v1/models", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "192.168.0.7:8642",
        "",
        "evil.example@127.0.0.1@x",
        "[::2]",
        "[",
        "[::1",
        "127.0.0.1]",
    ],
)
def test_a_name_that_somebody_pointed_here_is_refused(host):
    answer = client().get("/api/v1/models", headers={"Host": host})
    assert answer.status_code == 421
    assert "models" not in answer.text


def test_a_page_of_another_server_may_not_ask():
    ours = client()
    assert ours.post("/api/v1/traces", json=ASK, headers={"Origin": "http://127.0.0.1:8642"}).status_code == 201
    for origin in ("http://evil.example", "null", "http://127.0.0.1:9", "file://", "http://[", "[", "//"):
        answer = ours.post("/api/v1/traces", json=ASK, headers={"Origin": origin})
        assert answer.status_code == 403
        assert "access-control-allow-origin" not in answer.headers


def test_every_answer_tells_a_browser_what_it_may_do():
    ours = client()
    for path, status in (("/", 200), ("/api/v1/models", 200), ("/nothing", 404), ("/api/v1/traces/none", 404)):
        answer = ours.get(path)
        assert answer.status_code == status
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert ("connect-src 'self'" in policy) == (path == "/")
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"


def test_a_token_opens_once_and_stays_as_a_cookie():
    guarded = client(token="right", base="http://box.example:80")
    assert guarded.get("/").status_code == 401
    assert guarded.get("/?token=wrong").status_code == 401
    assert guarded.get("/?token=").status_code == 401
    entered = guarded.get("/?token=right")
    assert (entered.status_code, entered.headers["location"]) == (303, "/")
    assert "httponly" in entered.headers["set-cookie"].lower()
    assert "samesite=strict" in entered.headers["set-cookie"].lower()
    assert guarded.get("/").status_code == 200
    assert client(token="right").get("/", headers={"Cookie": "heedful=wrong"}).status_code == 401
    for cookie in (";;=\x01", "a@b=1; (=)", "heedful", 'heedful="'):
        assert client(token="right").get("/", headers={"Cookie": cookie}).status_code == 401


def test_without_a_token_none_is_asked_for():
    assert client().get("/?token=anything").status_code == 200


def test_two_servers_of_one_host_do_not_take_each_other_s_cookie():
    servers = {token: client(token=token, base="http://box.example:80") for token in ("one", "two")}
    cookies = [server.get(f"/?token={token}").headers["set-cookie"] for token, server in servers.items()]
    both = {"Cookie": "; ".join(cookie.partition(";")[0] for cookie in cookies)}
    assert [server.get("/", headers=both).status_code for server in servers.values()] == [200, 200]
