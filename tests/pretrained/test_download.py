"""Published files: fetched once, checked, and kept only if they are what was published."""

import hashlib
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tinytf.pretrained.download import download_files
from tinytf.support.files import CheckpointError

COMMIT = "0123abcd"
SMALL = {"config.json": b'{"d_model": 512}', "vocab.json": b'{"</s>": 0}'}
LARGE = {"model.safetensors": bytes(range(256)) * 40, "head.safetensors": b"\x0a\x0e" * 300}
FILES = tuple(SMALL | LARGE)


class Quiet(SimpleHTTPRequestHandler):
    asked = ()

    def log_message(self, *_):
        pass

    def do_GET(self):
        type(self).asked += (self.path,)
        super().do_GET()


@pytest.fixture
def site(tmp_path):
    """A server with one repository: large files stand as pointers, as the public host has them."""
    root = tmp_path / "www" / "someone" / "opus"
    for kind in ("raw", "resolve"):
        (root / kind / COMMIT).mkdir(parents=True)
    for name, data in (SMALL | LARGE).items():
        (root / "resolve" / COMMIT / name).write_bytes(data)
        pointer = f"version 1\noid sha256:{hashlib.sha256(data).hexdigest()}\nsize {len(data)}\n"
        (root / "raw" / COMMIT / name).write_bytes(pointer.encode() if name in LARGE else data)
    Quiet.asked = ()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "www")))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", root
    server.shutdown()
    server.server_close()
    thread.join()


def fetch(site, folder, files=FILES):
    return download_files("someone/opus", COMMIT, folder, files, host=site[0])


def test_all_files_come_at_the_commit_asked_for_and_once(site, tmp_path):
    folder = fetch(site, tmp_path / "new" / "opus")
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == SMALL | LARGE
    assert {path.split("/")[4] for path in Quiet.asked} == {COMMIT}
    before = len(Quiet.asked)
    assert fetch(site, folder) == folder
    assert len(Quiet.asked) == before
    (folder / "vocab.json").unlink()
    fetch(site, folder)
    assert [path.rpartition("/")[2] for path in Quiet.asked[before:]] == ["vocab.json"]


@pytest.mark.parametrize("name", LARGE)
def test_a_large_file_with_another_checksum_is_not_kept(site, tmp_path, name):
    path = site[1] / "resolve" / COMMIT / name
    path.write_bytes(LARGE[name][:-1] + b"!")
    with pytest.raises(CheckpointError, match=r"has SHA-256 \w+, expected \w+: not kept"):
        fetch(site, tmp_path / "opus")
    path.write_bytes(LARGE[name][:-5])
    with pytest.raises(CheckpointError, match=r"gave \d+ bytes, expected \d+: try again"):
        fetch(site, tmp_path / "opus")
    assert name not in {p.name for p in (tmp_path / "opus").iterdir()}


def test_weights_without_a_checksum_are_not_trusted(site, tmp_path):
    (site[1] / "raw" / COMMIT / "model.safetensors").write_text("<html>")
    with pytest.raises(CheckpointError, match="does not say the checksum of opus's weights"):
        fetch(site, tmp_path / "opus")
    assert not (tmp_path / "opus").exists()


def test_a_file_that_is_not_there_and_a_host_that_is_not_are_named(site, tmp_path):
    with pytest.raises(CheckpointError, match=r"could not download opus .*404"):
        fetch(site, tmp_path / "opus", (*FILES, "target.spm"))
    with pytest.raises(CheckpointError, match=r"Without a network, get a, b and c of someone/opus"):
        download_files("someone/opus", COMMIT, tmp_path, "abc", host="http://127.0.0.1:9")
