"""A server on this machine that speaks as much of the Hub's API as huggingface_hub needs for models."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import unquote

TOKEN = "hf_of_the_tests"


@dataclass
class Repository:
    private: bool = False
    branches: dict[str, str] = field(default_factory=dict)  # to the commit


@dataclass
class Hub:
    """What the server holds, and what goes wrong with files by their names: "cut" or "changed"."""

    address: str = ""
    repositories: dict[str, Repository] = field(default_factory=dict)
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)  # large files by their SHA-256
    faults: dict[str, str] = field(default_factory=dict)
    refusals: dict[str, int] = field(default_factory=dict)  # status of requests by the beginning of "METHOD /path"
    requests: list[str] = field(default_factory=list)

    def commit(self, name: str, files: dict[str, bytes], branch: str = "main") -> str:
        """Add a commit with these files to a repository, which is created if it is missing."""
        branches = self.repositories.setdefault(name, Repository()).branches
        files = {**self.commits.get(branches.get(branch, ""), {}), **files}
        digest = hashlib.sha1(repr((name, branch, len(self.commits), sorted(files))).encode()).hexdigest()
        self.commits[digest] = files
        branches[branch] = digest
        return digest

    def add_folder(self, name: str, folder: Path) -> str:
        """Add a commit with the files of a folder, in their current state."""
        files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        return self.commit(name, files)

    def files(self, name: str, branch: str = "main") -> dict[str, bytes]:
        return self.commits[self.repositories[name].branches[branch]]


def is_large(name: str) -> bool:
    return name.endswith((".safetensors", ".onnx", ".bin", ".gguf"))


def git_hash(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""

    def answer(self, status: int, body: object = b"", **headers: str) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def respond(self) -> None:
        path = unquote(self.path.partition("?")[0])
        request = f"{self.command} {path}"
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.hub.requests.append(request)
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        refusal = next((code for start, code in self.hub.refusals.items() if request.startswith(start)), None)
        if refusal:
            self.answer(refusal)
        elif token not in ("", TOKEN):
            self.answer(401, X_Error_Message="Invalid credentials in Authorization header")
        else:
            for pattern, method in ROUTES.items():
                if match := re.fullmatch(pattern, request):
                    getattr(self, method)(**match.groupdict())
                    return
            self.answer(404)

    do_GET = do_HEAD = do_POST = do_PUT = respond

    def files_at(self, name: str, revision: str) -> tuple[str, dict[str, bytes]] | None:
        """Find the commit of a revision and its files; answer with an error if it is missing."""
        repository = self.hub.repositories.get(name)
        if repository is None or (repository.private and not self.headers.get("Authorization")):
            self.answer(404 if self.headers.get("Authorization") else 401, X_Error_Code="RepoNotFound")
            return None
        commit = repository.branches.get(revision, revision)
        if commit not in self.hub.commits and (revision != "main" or repository.branches):
            self.answer(404, X_Error_Code="RevisionNotFound")
            return None
        return commit, self.hub.commits.get(commit, {})

    def info(self, name: str, revision: str = "main") -> None:
        if found := self.files_at(name, revision):
            commit, files = found
            siblings = []
            for path, content in files.items():
                entry: dict[str, Any] = {"rfilename": path, "size": len(content), "blobId": git_hash(content)}
                if is_large(path):
                    digest = hashlib.sha256(content).hexdigest()
                    entry["lfs"] = {"sha256": digest, "size": len(content), "pointerSize": 1}
                siblings.append(entry)
            private = self.hub.repositories[name].private
            self.answer(200, {"id": name, "sha": commit, "private": private, "tags": [], "siblings": siblings})

    def resolve(self, name: str, revision: str, path: str) -> None:
        if not (found := self.files_at(name, revision)):
            return
        commit, files = found
        if path not in files:
            self.answer(404, X_Error_Code="EntryNotFound", X_Repo_Commit=commit)
            return
        content, fault = files[path], self.hub.faults.get(path) if self.command == "GET" else None
        etag = hashlib.sha256(content).hexdigest() if is_large(path) else git_hash(content)
        headers = {"ETag": f'"{etag}"', "X-Repo-Commit": commit}
        if fault == "changed":
            content = content[:-1] + bytes([content[-1] ^ 1])
        if fault != "cut":
            self.answer(200, content, **headers)
            return
        begin = int((re.findall(r"\d+", self.headers.get("Range", "")) or [0])[0])
        size = len(content)
        span = {"Content-Range": f"bytes {begin}-{size - 1}/{size}"} if begin else {}
        headers |= {"Content-Length": str(size - begin), **span}
        self.answer(206 if begin else 200, content[begin : size // 2], **headers)
        self.close_connection = True

    def create(self) -> None:
        order = json.loads(self.body)
        name = f"{order['organization'] or 'someone'}/{order['name']}"
        url = {"url": f"{self.hub.address}/{name}"}
        if not self.headers.get("Authorization"):
            self.answer(401)
        elif name in self.hub.repositories:
            self.answer(409, url)
        else:
            self.hub.repositories[name] = Repository(private=order.get("visibility") == "private")
            self.answer(200, url)

    def branch(self, name: str, branch: str) -> None:
        branches = self.hub.repositories[name].branches
        exists = branch in branches
        branches.setdefault(branch, branches.get("main", ""))
        self.answer(409 if exists else 200, {})

    def validate(self) -> None:
        self.answer(200, {"errors": [], "warnings": []})

    def preupload(self, name: str, revision: str) -> None:
        files = [file["path"] for file in json.loads(self.body)["files"]]
        modes = [{"path": path, "uploadMode": "lfs" if is_large(path) else "regular"} for path in files]
        self.answer(200, {"files": [{**mode, "shouldIgnore": False, "oid": None} for mode in modes]})

    def batch(self, name: str) -> None:
        objects = json.loads(self.body)["objects"]
        actions = [
            {**each, "actions": {"upload": {"href": f"{self.hub.address}/lfs/{each['oid']}"}}} for each in objects
        ]
        self.answer(200, {"transfer": "basic", "objects": actions})

    def store(self, oid: str) -> None:
        assert hashlib.sha256(self.body).hexdigest() == oid
        self.hub.objects[oid] = self.body
        self.answer(200)

    def add_commit(self, name: str, revision: str) -> None:
        lines = [json.loads(line) for line in self.body.splitlines()]
        files = {}
        for line in lines:
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.hub.objects[value["oid"]]
        oid = self.hub.commit(name, files, revision)
        self.answer(200, {"commitUrl": f"{self.hub.address}/{name}/commit/{oid}", "commitOid": oid})


NAME = r"(?P<name>[\w.-]+/[\w.-]+)"
ROUTES = {
    rf"GET /api/models/{NAME}": "info",
    rf"GET /api/models/{NAME}/revision/(?P<revision>.+)": "info",
    rf"(GET|HEAD) /{NAME}/resolve/(?P<revision>[^/]+)/(?P<path>.+)": "resolve",
    r"POST /api/repos/create": "create",
    rf"POST /api/models/{NAME}/branch/(?P<branch>.+)": "branch",
    r"POST /api/validate-yaml": "validate",
    rf"POST /api/models/{NAME}/preupload/(?P<revision>.+)": "preupload",
    rf"POST /{NAME}\.git/info/lfs/objects/batch": "batch",
    r"PUT /lfs/(?P<oid>\w+)": "store",
    rf"POST /api/models/{NAME}/commit/(?P<revision>.+)": "add_commit",
}


@contextmanager
def serving() -> Iterator[Hub]:
    """Serve an empty Hub on a free port."""
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("HubHandler", (Handler,), {"hub": hub}))
    hub.address = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
