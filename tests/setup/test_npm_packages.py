"""The packages of the npm registry: their checksums, the cache, and a registry that fails."""

from __future__ import annotations

import http.server
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.npm_packages import FILES, FOLDER, NpmError, install, locked
from wcet.page.web_scripts import PACKAGES, SCRIPTS

ROOT = Path(__file__).resolve().parents[2]
(DAGRE,) = locked()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The lock file alone, with an empty cache and no time between tries."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("scripts.npm_packages.PAUSE", 0.0)
    folder = tmp_path / "npm"
    folder.mkdir()
    shutil.copy(FOLDER / "package-lock.json", folder)
    return folder


class Registry(http.server.ThreadingHTTPServer):
    """Gives one answer to every request, and notes the requests."""

    def __init__(self, status: int, content: bytes) -> None:
        self.asked = list[str]()
        asked = self.asked

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:
                """No line on standard error."""

        super().__init__(("127.0.0.1", 0), Handler)


@pytest.fixture
def registries(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Registry]]:
    running = list[Registry]()
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    yield running
    for registry in running:
        registry.shutdown()
        registry.server_close()


def serve(
    registries: list[Registry], monkeypatch: pytest.MonkeyPatch, status: int, content: bytes
) -> Registry:
    registry = Registry(status, content)
    threading.Thread(target=registry.serve_forever, daemon=True).start()
    registries.append(registry)
    monkeypatch.setenv("npm_config_registry", f"http://127.0.0.1:{registry.server_port}/")
    return registry


def files(folder: Path) -> dict[str, bytes]:
    place = folder / "node_modules" / DAGRE.name
    return {name: (place / name).read_bytes() for name in FILES[DAGRE.name]}


def test_the_installed_files_come_from_the_registry(
    folder: Path, registries: list[Registry], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real package; then from the cache, without a registry."""
    install(folder)
    assert files(folder) == files(FOLDER)
    registry = serve(registries, monkeypatch, 500, b"")
    shutil.rmtree(folder / "node_modules")
    install(folder)
    assert files(folder) == files(FOLDER)
    assert registry.asked == []


def test_every_script_of_the_page_is_fetched() -> None:
    assert {(one.package, one.file) for one in SCRIPTS} <= {
        (name, file) for name, held in FILES.items() for file in held
    }
    assert Path(str(PACKAGES)) == FOLDER / "node_modules"


def test_the_lock_file_has_the_versions_of_the_requirements() -> None:
    wanted = json.loads((FOLDER / "package.json").read_text())["dependencies"]
    assert {one.name: one.version for one in locked()} == wanted


def test_another_file_is_refused(
    folder: Path, registries: list[Registry], monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = serve(registries, monkeypatch, 200, b"another file")
    with pytest.raises(NpmError, match="checksum of @dagrejs/dagre"):
        install(folder)
    assert registry.asked == [f"/{DAGRE.name}/-/{DAGRE.archive}"]
    assert not (folder / "node_modules").exists()
    assert not list(folder.parent.rglob("*.tgz"))


def test_a_damaged_cache_is_not_used(
    folder: Path, registries: list[Registry], monkeypatch: pytest.MonkeyPatch
) -> None:
    install(folder)
    (cached,) = folder.parent.rglob("*.tgz")
    content = cached.read_bytes()
    cached.write_bytes(content[:-1])
    shutil.rmtree(folder / "node_modules")
    serve(registries, monkeypatch, 200, content)
    install(folder)
    assert files(folder) == files(FOLDER)
    assert cached.read_bytes() == content


@pytest.mark.parametrize(("status", "tries"), [(404, 1), (503, 3)])
def test_a_registry_that_fails_is_named(
    folder: Path,
    registries: list[Registry],
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    tries: int,
) -> None:
    registry = serve(registries, monkeypatch, status, b"")
    with pytest.raises(NpmError, match=rf"{status}.*npm_config_registry"):
        install(folder)
    assert len(registry.asked) == tries


def test_without_a_network_the_build_of_a_wheel_says_so(tmp_path: Path) -> None:
    sources = tmp_path / "sources"
    for name in ("wcet/page/npm/package-lock.json", "scripts/npm_packages.py", "pyproject.toml"):
        (sources / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, sources / name)
    (sources / "wcet/__init__.py").touch()
    (sources / "LICENSE").touch()
    pip = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation")
    done = subprocess.run(
        [*pip, "--wheel-dir", str(tmp_path), str(sources)],
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path),
            "npm_config_registry": "http://127.0.0.1:1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "downloading @dagrejs/dagre" in done.stdout + done.stderr
    assert not list(tmp_path.glob("*.whl"))
