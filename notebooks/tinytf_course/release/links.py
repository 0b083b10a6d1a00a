"""The link by which a JupyterHub with nbgitpuller brings a repository to a student."""

from urllib.parse import quote, urlsplit

__all__ = ["pull_link"]


def pull_link(hub, repository, opens="", branch="main"):
    """A link that copies or updates `repository` on `hub` and opens a file of it in JupyterLab.

    `hub` and `repository` are addresses; `opens` is a path in the repository. Raises ValueError for
    an address that is none, or a path that leads out.
    """
    for address in (hub, repository):
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ValueError(f"{address!r} is no address such as https://hub.example.org")
    if opens.startswith("/") or ".." in opens.split("/"):
        raise ValueError(f"{opens!r} is no path within the repository")
    folder = repository.rstrip("/").split("/")[-1]  # nbgitpuller's own rule: `.git` stays
    urlpath = "/".join(part for part in ("lab/tree", folder, opens.strip("/")) if part)
    asked = {"repo": repository, "urlpath": urlpath, "branch": branch}
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in asked.items())
    return f"{hub.rstrip('/')}/hub/user-redirect/git-pull?{query}"
