"""Published files: fetched once, checked, and kept only if they are what was published."""

import errno
import hashlib
import os
import sys
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tinytf.pretrained import download
from tinytf.pretrained.download import download_files
from tinytf.support.files import CheckpointError
from tinytf.support.locks import sole_writer

pytest.importorskip("huggingface_hub")

COMMIT = "0123456789abcdef0123456789abcdef01234567"
SMALL = {"config.json": b'{"d_model": 512}', "vocab.json": b'{"</s>": 0}'}
LARGE = {"model.safetensors": bytes(range(256)) * 4000, "head.safetensors": b"\x0a\x0e" * 300}
FILES = tuple(SMALL | LARGE)


class Site:
    """A server with one repository, which answers as the public host does; its files may change."""

    def __init__(self):
        self.asked, self.files, self.hash = [], dict(SMALL | LARGE), True
        site = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_HEAD(self):
                site.answer(self)

            def do_GET(self):
                site.answer(self)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"http://127.0.0.1:{self.server.server_port}"
        serve = partial(self.server.serve_forever, poll_interval=0.01)
        self.thread = threading.Thread(target=serve, daemon=True)
        self.thread.start()

    def answer(self, request):
        self.asked.append(request.path)
        name = request.path.removeprefix(f"/someone/opus/resolve/{COMMIT}/")
        if name not in self.files:
            return request.send_error(404)
        published, data = (SMALL | LARGE)[name], self.files[name]
        git = hashlib.sha1(b"blob %d\0" % len(published) + published).hexdigest()
        request.send_response(200)
        if self.hash:
            request.send_header("ETag", f'"{git}"')
        if self.hash and name in LARGE:
            request.send_header("X-Linked-Etag", f'"{hashlib.sha256(published).hexdigest()}"')
        request.send_header("X-Repo-Commit", COMMIT)
        request.send_header("Content-Length", str(len(published)))
        request.end_headers()
        if request.command == "GET":
            request.wfile.write(data)
        return None

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
    before = len(site.asked)
    assert bring(site, folder) == folder
    assert len(site.asked) == before
    (folder / "vocab.json").unlink()
    bring(site, folder)
    assert {path.rpartition("/")[2] for path in site.asked[before:]} == {"vocab.json"}


@pytest.mark.parametrize("name", FILES)
def test_a_file_with_another_hash_is_not_kept(site, tmp_path, name):
    """Config and vocabulary too; and once it is right, it comes."""
    site.files[name] = site.files[name][:-1] + b"!"
    with pytest.raises(CheckpointError, match=rf"{name} has the hash \w+, expected \w+: not kept"):
        bring(site, tmp_path / "opus")
    assert not names(tmp_path / "opus") & {name, ".incoming"}
    site.files = SMALL | LARGE
    bring(site, tmp_path / "opus")
    assert names(tmp_path / "opus") == set(FILES)


def test_a_file_that_comes_in_part_is_not_kept(site, tmp_path, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)  # the library waits before it tries again
    site.files["model.safetensors"] = site.files["model.safetensors"][:1000]
    with pytest.raises(CheckpointError, match="could not download opus"):
        bring(site, tmp_path / "opus", ["model.safetensors"])
    assert "model.safetensors" not in names(tmp_path / "opus")


def test_a_server_that_says_no_hash_is_not_trusted(site, tmp_path):
    site.hash = False
    with pytest.raises(CheckpointError):
        bring(site, tmp_path / "opus")
    assert not names(tmp_path / "opus") & set(FILES)


@pytest.mark.parametrize("fault", ["no file", "no host", "no library", "no network wanted"])
def test_what_goes_wrong_on_the_way_is_said_with_what_to_do(site, tmp_path, monkeypatch, fault):
    files, words = ["a", "b", "c"], "404"
    if fault == "no host":
        site.host, words = "http://127.0.0.1:9", "refused"
    elif fault == "no library":
        monkeypatch.setitem(sys.modules, "huggingface_hub", None)
        words = "it takes huggingface_hub: pip install huggingface_hub"
    elif fault == "no network wanted":
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        words = "offline"
    with pytest.raises(CheckpointError, match=rf"could not download opus \(.*{words}") as e:
        bring(site, tmp_path / "opus", files)
    assert "Without a network, get a, b and c of someone/opus by other means" in str(e.value)
    assert not names(tmp_path / "opus") & set(files)


def test_what_goes_wrong_here_is_not_called_the_networks_fault(site, tmp_path, monkeypatch):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(CheckpointError, match=r"could not write .*config\.json: a file is where"):
        bring(site, tmp_path / "taken" / "opus")
    for code, words in ((errno.ENOSPC, "the disk is full"), (errno.EACCES, "is no permission")):

        def failing(*_, code=code):
            raise OSError(code, os.strerror(code))

        with monkeypatch.context() as patch:
            patch.setattr(download.os, "replace", failing)
            with pytest.raises(CheckpointError, match=f"could not write .*{words}") as caught:
                bring(site, tmp_path / "opus")
        assert "Without a network" not in str(caught.value)
        assert "config.json" not in names(tmp_path / "opus")
    bring(site, tmp_path / "opus")


def test_two_downloads_of_one_file_do_not_mix(site, tmp_path):
    with (
        sole_writer(tmp_path / "config.json"),
        pytest.raises(CheckpointError, match="another run is writing"),
    ):
        bring(site, tmp_path)


def test_published_weights_are_looked_for_where_they_always_lay(tmp_path, monkeypatch):
    monkeypatch.setenv("TINYTF_CACHE", str(tmp_path))
    (tmp_path / "gpt2").mkdir()
    for name in download.FILES:
        (tmp_path / "gpt2" / name).write_text("from an earlier version")
    assert download.download_model("gpt2", host="http://127.0.0.1:9") == tmp_path / "gpt2"
    with pytest.raises(CheckpointError, match="could not download gpt2-xl"):
        download.download_model("gpt2-xl", host="http://127.0.0.1:9")


def test_without_a_home_the_cache_must_be_named(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("TINYTF_CACHE", raising=False)
    monkeypatch.setattr(download.Path, "home", homeless)
    with pytest.raises(CheckpointError, match="name a folder for downloads in TINYTF_CACHE"):
        download.cache_folder()
