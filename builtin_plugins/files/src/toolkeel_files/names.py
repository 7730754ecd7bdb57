"""Which names are refused, whatever lies under them."""

from __future__ import annotations

import fnmatch
import functools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Literal
from urllib.parse import unquote

from toolkeel import ToolError

from .settings import Settings
from .shown import shown

Protection = Literal["", "read_only", "protected"]

PROTECTED = (
    # what holds secrets
    ".env", ".env.*", "*.env", ".envrc", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".npmrc", ".pypirc", ".htpasswd",
    ".git-credentials", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk", "id_rsa",
    "id_dsa", "id_ecdsa", "id_ed25519", ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".dockercfg", "*.tfstate",
    "*.tfstate.*",
    # what this program obeys, and keeps of others in a home folder
    ".toolkeel",
    # what git runs (hooks, filters, aliases); the second is its short name on disks that make those
    ".git", "git~[0-9]*",
)  # fmt: skip
"""Names that are neither read nor written."""

READ_ONLY = (
    ".vscode", ".idea", ".claude", ".cursor", ".mcp.json", ".devcontainer", ".husky", ".hg", ".svn",
    ".gitmodules", ".gitattributes", ".pre-commit-config.yaml",
)  # fmt: skip
"""Names that are read but not written: editors, agents and version control run or obey what they hold."""

_PATH_BYTES = 4_095
_BETWEEN = re.compile(r"[/\\]")
_DEVICE = re.compile(r"(?i)(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])[ .]*(\.|$)")
_DRIVE = re.compile(r"[A-Za-z]:")
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_JOINERS = frozenset("\u200c\u200d\ufe0e\ufe0f")
"""Invisible, but part of how words and emoji are written."""
_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0\ufe00-\ufe0f\U000e0000-\U000e0fff]")
"""What is not drawn although its category does not say so."""


class PathRefused(ToolError):
    """A path that may not be used, whether or not something is there."""


class Names:
    """The rules of one configuration. Names are compared folded: case, width, invisible characters do not matter."""

    def __init__(self, settings: Settings) -> None:
        self._protected = globs((*PROTECTED, *settings.protected))
        self._read_only = globs((*READ_ONLY, *settings.read_only))
        self._unprotected = globs(settings.unprotected)
        self.protection = functools.lru_cache(maxsize=4_096)(self._protection)
        """How one name is protected; cached, since a search asks for every file."""

    def check_text(self, path: str) -> None:
        """Refuse a path by its text alone: empty, too long, unprintable in a way that deceives, dots in disguise."""
        where = shown(path)
        if not path:
            raise PathRefused("the path is empty", remedy="Give a path; '.' is the workspace folder itself")
        if "\0" in path:
            raise PathRefused("the path holds a NUL character", where=where)
        try:
            length = len(path.encode())
        except UnicodeEncodeError:
            raise PathRefused("the path is not valid Unicode", where=where) from None
        if length > _PATH_BYTES:
            raise PathRefused(f"the path has {length:,} bytes, more than {_PATH_BYTES:,}", where=where)
        if not _TURNING.isdisjoint(path):
            raise PathRefused("the path holds characters that turn the direction of text", where=where)
        if path.isascii() and "\\" not in path:
            return
        for part in path.split("/"):
            if part != ".." and ".." in (piece.strip() for piece in _BETWEEN.split(_compatible(part))):
                raise PathRefused(
                    "the path holds '..' in disguise", where=where, remedy="Use '/' between folders and plain dots"
                )

    def check_use(self, parts: Sequence[str], *, writing: bool) -> None:
        """Refuse the real path ``parts`` when one of its names is protected."""
        for part in parts:
            protection = self.protection(part)
            if protection == "protected":
                raise PathRefused(
                    f"the name {shown(part)} is protected: it is neither read nor written",
                    where=shown("/".join(parts)),
                    remedy="Do without it; an operator may exempt names at plugins.files.unprotected",
                )
            if protection and writing:
                raise PathRefused(
                    f"the name {shown(part)} is protected from writing, since other programs obey what it holds",
                    where=shown("/".join(parts)),
                    remedy="Ask the user to change it; an operator may exempt names at plugins.files.unprotected",
                )

    def _protection(self, name: str) -> Protection:
        folded = fold(name)
        if self._unprotected.match(folded):
            return ""
        if self._protected.match(folded):
            return "protected"
        return "read_only" if self._read_only.match(folded) else ""


def check_new(names: Iterable[str]) -> None:
    """Refuse names for something new that would mislead: another system, a shell or an eye reads them otherwise."""
    for name in names:
        fault = _fault(name)
        if fault:
            raise PathRefused(f"nothing new may be named so: {fault}", where=shown(name))


def fold(name: str) -> str:
    """The name as the most careless file system would compare it."""
    if name.isascii():
        folded = name.lower()
    else:
        visible = "".join(char for char in _compatible(name) if not _invisible(char))
        folded = _compatible(visible.casefold())
    stem = folded.partition(":")[0]  # what follows a colon is a stream of the same file on NTFS
    return stem.rstrip(". ") or folded


def globs(patterns: Iterable[str]) -> re.Pattern[str]:
    """One expression that matches a folded name which any of the globs means."""
    return re.compile("|".join(fnmatch.translate(fold(pattern)) for pattern in patterns) or r"(?!)")


def _compatible(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _invisible(char: str) -> bool:
    return unicodedata.category(char) == "Cf" or _BLANK.match(char) is not None


def _fault(name: str) -> str:
    if any(unicodedata.category(char) == "Cc" for char in name):
        return "it holds control characters"
    if any(_invisible(char) and char not in _JOINERS for char in name):
        return "it holds invisible characters"
    if "\\" in name:
        return "a backslash separates folders elsewhere; use '/'"
    if _DEVICE.match(name):
        return "it is a device on Windows"
    if _DRIVE.match(name) or "::" in name or ":$" in name:
        return "it is a drive or a file stream on Windows"
    if name == "~":
        return "'~' is not expanded to the home folder here"
    if name.startswith("${") or (name[0] == name[-1] == "%" and len(name) > 1):
        return "variables are not expanded here"
    decoded = unquote(name)
    if decoded != name and (_BETWEEN.search(decoded) or ".." in decoded or "\0" in decoded):
        return "percent signs are not decoded here"
    return "it ends in a dot or a space" if name[-1] in ". " else ""
