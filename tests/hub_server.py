"""A small stand-in for the HTTP API of the Hugging Face Hub: repositories in memory, with commits and branches."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlparse


class HubServer:
    """Serves repositories on a free port. Files are in `commits[commit][name]`, branches in `branches[name]`."""

    def __init__(self) -> None:
        self.commits: dict[str, dict[str, bytes]] = {}
        self.branches: dict[tuple[str, str], str] = {}
        self.requests: list[str] = []
        hub = self

        class Handler(_Handler):
            server_hub = hub

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def files(self, repository: str, revision: str = "main") -> dict[str, bytes]:
        commit = self.branches.get((repository, revision), revision)
        return self.commits[commit]

    def commit(self, repository: str, revision: str, files: dict[str, bytes]) -> str:
        content = b"".join(name.encode() + data for name, data in sorted(files.items()))
        commit = hashlib.sha1(content).hexdigest()
        self.commits[commit] = files
        self.branches[repository, revision] = commit
        return commit


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_hub: HubServer

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self, status: int, value: object = None, headers: dict[str, str] | None = None) -> None:
        content = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _parts(self) -> list[str]:
        path = unquote(urlparse(self.path).path)
        self.server_hub.requests.append(f"{self.command} {path}")
        return path.strip("/").split("/")

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        hub, parts = self.server_hub, self._parts()
        if len(parts) == 5 and parts[2] == "resolve":  # user/name/resolve/revision/file
            repository, revision, name = f"{parts[0]}/{parts[1]}", parts[3], parts[4]
            commit = hub.branches.get((repository, revision), revision)
            if commit not in hub.commits:
                return self._answer(404, b"", {"X-Error-Code": "RevisionNotFound"})
            if name not in hub.commits[commit]:
                return self._answer(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit})
            data = hub.commits[commit][name]
            digest = hashlib.sha256(data).hexdigest()
            return self._answer(200, data, {"ETag": f'"{digest}"', "X-Repo-Commit": commit})
        if parts[:2] == ["api", "models"] and len(parts) >= 4:
            repository = f"{parts[2]}/{parts[3]}"
            revision = parts[5] if parts[4:5] == ["revision"] else "main"
            commit = hub.branches.get((repository, revision), revision)
            if commit not in hub.commits:
                return self._answer(404, {"error": "not found"}, {"X-Error-Code": "RepoNotFound"})
            names = sorted(hub.commits[commit])
            if parts[4:5] == ["tree"]:
                entries = [{"type": "file", "path": n, "size": len(hub.commits[commit][n]), "oid": "0"} for n in names]
                return self._answer(200, entries)
            siblings = [{"rfilename": name} for name in names]
            return self._answer(200, {"id": repository, "sha": commit, "siblings": siblings, "private": False})
        return self._answer(404, {"error": f"no route {self.path}"})

    def do_POST(self) -> None:
        hub, parts = self.server_hub, self._parts()
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not self.headers.get("Authorization", "").startswith("Bearer "):
            return self._answer(401, {"error": "no token"})
        if parts == ["api", "validate-yaml"]:  # of the card
            return self._answer(200, {"errors": [], "warnings": []})
        if parts == ["api", "repos", "create"]:
            fields = json.loads(body)
            repository = f"{fields.get('organization') or 'user'}/{fields['name']}"
            if (repository, "main") not in hub.branches:
                hub.commit(repository, "main", {})
            return self._answer(200, {"url": f"{hub.url}/{repository}", "id": repository, "name": repository})
        repository = f"{parts[2]}/{parts[3]}"
        if parts[4] == "branch":
            hub.branches[repository, parts[5]] = hub.branches[repository, "main"]
            return self._answer(200, {})
        if parts[4] == "preupload":
            files = [
                {"path": file["path"], "uploadMode": "regular", "shouldIgnore": False, "oid": None}
                for file in json.loads(body)["files"]
            ]
            return self._answer(200, {"files": files})
        if parts[4] == "commit":
            files = dict(hub.files(repository, parts[5]))
            for line in body.decode().splitlines():
                entry = json.loads(line)
                if entry["key"] == "file":
                    files[entry["value"]["path"]] = base64.b64decode(entry["value"]["content"])
                elif entry["key"] == "deletedFile":
                    del files[entry["value"]["path"]]
            commit = hub.commit(repository, parts[5], files)
            return self._answer(200, {"commitOid": commit, "commitUrl": f"{hub.url}/{repository}/commit/{commit}"})
        return self._answer(404, {"error": f"no route {self.path}"})
