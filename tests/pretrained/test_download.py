"""Published files: fetched once, checked, and kept only if they are what was published."""

import errno
import hashlib
import json
import os
import resource
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tinytf.pretrained import download
from tinytf.pretrained.download import Published, download_files, fetch
from tinytf.support.files import CheckpointError

COMMIT = "0123abcd"
SMALL = {"config.json": b'{"d_model": 512}', "vocab.json": b'{"</s>": 0}'}
LARGE = {"model.safetensors": bytes(range(256)) * 4000, "head.safetensors": b"\x0a\x0e" * 300}
FILES = tuple(SMALL | LARGE)
TREE = f"/api/models/someone/opus/tree/{COMMIT}"


def address(name):
    return f"/someone/opus/resolve/{COMMIT}/{name}"


def entry(name, data):
    oid = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
    said = {"type": "file", "path": name, "oid": oid, "size": len(data)}
    if name in LARGE:
        said["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data),
                       "pointerSize": 130}  # fmt: skip
    return said


class Site:
    """A server with one repository, which answers as the public host does, or as a test says."""

    def __init__(self):
        self.asked, self.ranges, self.faults = [], [], {}
        self.files = {address(n): data for n, data in (SMALL | LARGE).items()}
        tree = [{"type": "directory", "path": "onnx", "oid": "0" * 40, "size": 0}]
        tree += [entry(name, data) for name, data in (SMALL | LARGE).items()]
        self.files[TREE] = json.dumps(tree).encode()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.0"

            def log_message(self, *_):
                pass

            def do_GET(self):
                site.asked.append(self.path)
                site.ranges.append(self.headers["Range"])
                site.faults.get(self.path, site.answer)(self)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"http://127.0.0.1:{self.server.server_port}"
        serve = partial(self.server.serve_forever, poll_interval=0.01)
        self.thread = threading.Thread(target=serve, daemon=True)
        self.thread.start()

    def answer(self, request, announce=None, cut=None, extra=b"", ranged=True):
        """Send the file, from where it is asked for; more, less or announced otherwise."""
        data = self.files.get(request.path)
        if data is None:
            return request.send_error(404)
        start = request.headers["Range"]
        start = int(start.removeprefix("bytes=").removesuffix("-")) if start and ranged else 0
        request.send_response(206 if start else 200)
        body = data[start:cut] + extra
        if announce != "nothing":
            request.send_header("Content-Length", str(announce or len(data) - start))
        request.end_headers()
        return request.wfile.write(body)

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def site():
    site = Site()
    yield site
    site.stop()


def bring(site, folder, files=FILES):
    return download_files("someone/opus", COMMIT, folder, files, host=site.host)


def names(folder):
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


def test_all_files_come_at_the_commit_asked_for_and_once(site, tmp_path):
    folder = bring(site, tmp_path / "new" / "opus")
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == SMALL | LARGE
    assert all(COMMIT in path for path in site.asked)
    before = len(site.asked)
    assert bring(site, folder) == folder
    assert len(site.asked) == before
    (folder / "vocab.json").unlink()
    bring(site, folder)
    assert site.asked[before:] == [TREE, address("vocab.json")]


@pytest.mark.parametrize("name", FILES)
def test_a_file_with_another_hash_is_not_kept(site, tmp_path, name):
    """Config and vocabulary too."""
    site.files[address(name)] = (SMALL | LARGE)[name][:-1] + b"!"
    with pytest.raises(CheckpointError, match=r"has (SHA-256|git's SHA-1) \w+, expected \w+: not"):
        bring(site, tmp_path / "opus")
    assert not {n for n in names(tmp_path / "opus") if name in n}


def test_no_more_is_read_than_was_announced(site, tmp_path):
    """A server that goes on for ever is left at once."""
    sent = []

    def endless(request):
        request.send_response(200)
        request.end_headers()
        try:
            for _ in range(4000):
                sent.append(request.wfile.write(bytes(1 << 16)))
        except OSError:
            pass

    for name in ("model.safetensors", "config.json"):
        sent.clear()
        site.faults = {address(name): endless}
        size = len((SMALL | LARGE)[name])
        with pytest.raises(CheckpointError, match=rf"{name} sends more than {size} bytes"):
            bring(site, tmp_path / "opus", [name])
        assert sum(sent) < 50 << 20
        assert name not in names(tmp_path / "opus")
    site.faults = {TREE: endless}
    with pytest.raises(CheckpointError, match="sends more than 4194304 bytes"):
        bring(site, tmp_path / "opus", ["config.json"])
    site.faults = {address("config.json"): lambda r: site.answer(r, announce=10**12)}
    with pytest.raises(CheckpointError, match="announces 1000000000000 bytes, expected 16"):
        bring(site, tmp_path / "opus", ["config.json"])


@pytest.mark.parametrize("ranged", [True, False])
@pytest.mark.parametrize("announce", [None, "nothing"])
def test_a_download_that_broke_off_goes_on(site, tmp_path, ranged, announce):
    name = "model.safetensors"
    path, size = address(name), len(LARGE[name])
    cut = size // 3
    site.faults = {path: lambda request: site.answer(request, announce, cut)}
    with pytest.raises(CheckpointError, match=rf"ended after {cut} of {size} bytes: try again"):
        bring(site, tmp_path / "opus", [name])
    assert name not in names(tmp_path / "opus")
    site.faults = {path: lambda request: site.answer(request, ranged=ranged)}
    bring(site, tmp_path / "opus", [name])
    assert (tmp_path / "opus" / name).read_bytes() == LARGE[name]
    assert site.ranges[-1] == f"bytes={cut}-"
    assert names(tmp_path / "opus") == {name}


def test_a_part_of_something_else_is_found_at_the_end(site, tmp_path):
    name = "model.safetensors"
    part = f".{name}.{hashlib.sha256(LARGE[name]).hexdigest()[:12]}.part"
    (tmp_path / part).write_bytes(b"x" * 1000)
    with pytest.raises(CheckpointError, match=r"SHA-256 .* not kept"):
        bring(site, tmp_path, [name])
    assert names(tmp_path) == set()
    (tmp_path / part).write_bytes(bytes(len(LARGE[name]) + 9))  # longer than the file can be
    bring(site, tmp_path, [name])
    assert (tmp_path / name).read_bytes() == LARGE[name]
    (tmp_path / name).rename(tmp_path / part)  # all of it had come, but not its name
    before = len(site.asked)
    bring(site, tmp_path, [name])
    assert site.asked[before:] == [TREE]
    assert names(tmp_path) == {name}


def redirect(to):
    def answer(request):
        request.send_response(302)
        request.send_header("Location", to)
        request.end_headers()

    return answer


def broken_chunk(request):
    request.send_response_only(200)
    request.send_header("Transfer-Encoding", "chunked")
    request.end_headers()
    request.wfile.write(b"5\r\nhello\r\nzz\r\n")


def no_answer(request):
    request.connection.close()


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (redirect(address("config.json")), "answers 302 .*infinite loop"),
        (redirect("file:///etc/hostname"), "file:///etc/hostname.* is not allowed"),
        (redirect("ftp://127.0.0.1/x"), "leads to ftp://127.0.0.1/x, which is not followed"),
        (redirect("http://[/x"), "the answer is broken: Invalid IPv6"),
        (redirect("http://127.0.0.1:9/x"), "can't be reached"),
        (lambda request: request.send_error(500), "answers 500 Internal Server Error"),
        (lambda request: request.send_error(416), "answers 416"),
        (lambda request: request.wfile.write(b"what?\r\n\r\n"), "the answer is broken: what"),
        (broken_chunk, "the answer is broken|sends more|announces"),
        (no_answer, "can't be reached|the answer is broken"),
        (lambda request: request.wfile.write(b"HTTP/1.0 200 OK\r\n" + b"a: b\r\n" * 200 + b"\r\n"),
         "the answer is broken: got more than 100 headers"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("where", [TREE, address("config.json")])
def test_what_goes_wrong_on_the_way_is_said_plainly(site, tmp_path, fault, message, where):
    if where == TREE and "loop" in message:
        fault = redirect(TREE)
    site.faults = {where: fault}
    with pytest.raises(CheckpointError, match=message) as caught:
        bring(site, tmp_path / "opus", ["config.json"])
    assert "could not download opus from http://127.0.0.1" in str(caught.value)
    assert "Without a network, get config.json of someone/opus" in str(caught.value)
    assert "config.json" not in names(tmp_path / "opus")


def test_a_silent_server_is_left(site, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "TIMEOUT", 0.3)
    wait = threading.Event()

    def silent(request):
        request.send_response(200)
        request.end_headers()
        wait.wait(5)

    for where in (TREE, address("config.json")):
        for fault in (lambda request: wait.wait(5), silent):
            site.faults = {where: fault}
            with pytest.raises(CheckpointError, match=r"no answer for 0\.3 seconds"):
                bring(site, tmp_path / "opus", ["config.json"])
    wait.set()


@pytest.mark.parametrize(
    "text",
    ["<html>", "{}", "[1]", '[{"type": "file"}]', "[" * 100_000, '[{"type": "file", "path": "a"}]',
     '[{"type": "file", "path": "a", "size": -1, "oid": "a"}]',
     '[{"type": "file", "path": "a", "size": 1e9, "oid": "a"}]',
     '[{"type": "file", "path": "a", "size": 5, "oid": "<html>"}]',
     '[{"type": "file", "path": "a", "size": 5, "oid": 7}]',
     '[{"type": "file", "path": "a", "size": 5, "oid": "a", "lfs": 7}]', b"\xff"],
)  # fmt: skip
def test_a_list_without_sizes_and_hashes_is_not_trusted(site, tmp_path, text):
    site.files[TREE] = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(CheckpointError, match=r"no list of files with sizes|has no config\.json"):
        bring(site, tmp_path / "opus", ["config.json"])
    assert not (tmp_path / "opus").exists()


def test_a_file_that_is_not_there_and_a_host_that_is_not_are_named(site, tmp_path):
    with pytest.raises(CheckpointError, match=rf"opus at {COMMIT} has no target\.spm, x"):
        bring(site, tmp_path / "opus", (*FILES, "target.spm", "x"))
    with pytest.raises(CheckpointError, match=r"Without a network, get a, b and c of someone/opus"):
        download_files("someone/opus", COMMIT, tmp_path, "abc", host="http://127.0.0.1:9")


# ---- what goes wrong here is not the network's fault


def test_a_local_error_is_called_one(site, tmp_path, monkeypatch):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(CheckpointError, match=r"could not write .*config\.json: a file is where"):
        bring(site, tmp_path / "taken" / "opus")
    for code, words in ((errno.ENOSPC, "the disk is full"), (errno.EACCES, "is no permission")):

        def failing(*_, code=code):
            raise OSError(code, os.strerror(code))

        with monkeypatch.context() as patch:
            patch.setattr(download.os, "replace", failing)
            with pytest.raises(CheckpointError, match=words) as caught:
                bring(site, tmp_path / "opus")
        assert "Without a network" not in str(caught.value)
        assert "config.json" not in names(tmp_path / "opus")
    bring(site, tmp_path / "opus")


def test_a_file_that_no_longer_fits_is_called_a_local_error(site, tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(
            CheckpointError, match=r"could not write .*model\.safetensors: File too"
        ):
            bring(site, tmp_path / "opus", ["model.safetensors"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    bring(site, tmp_path / "opus", ["model.safetensors"])  # goes on from what was written
    assert site.ranges[-1] == "bytes=100000-"
    assert (tmp_path / "opus" / "model.safetensors").read_bytes() == LARGE["model.safetensors"]


def test_two_downloads_of_one_file_do_not_mix(site, tmp_path):
    data = SMALL["config.json"]
    said = Published(len(data), "git's SHA-1", entry("config.json", data)["oid"])
    part = tmp_path / f".config.json.{said.digest[:12]}.part"
    with part.open("a+b") as other:
        assert download.hold(other)
        with pytest.raises(CheckpointError, match=r"another process is downloading config\.json"):
            fetch(site.host + address("config.json"), tmp_path / "config.json", said)


def test_without_a_home_the_cache_must_be_named(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("TINYTF_CACHE", raising=False)
    monkeypatch.setattr(download.Path, "home", homeless)
    with pytest.raises(CheckpointError, match="name a folder for downloads in TINYTF_CACHE"):
        download.cache_folder()
