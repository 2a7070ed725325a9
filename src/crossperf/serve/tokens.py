"""Bearer tokens with a scope: who may read, and who may also write."""

from __future__ import annotations

import hashlib
import hmac
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from crossperf.documents import read_bytes
from crossperf.errors import SettingsError

Scope = Literal["read", "write"]
#: Variables of the environment that hold a token, by scope.
READ_VARIABLE, WRITE_VARIABLE = "CROSSPERF_READ_TOKEN", "CROSSPERF_WRITE_TOKEN"
#: Fewer characters than this can be guessed.
_SHORTEST = 20


@dataclass(frozen=True, repr=False)
class Tokens:
    """The digests of tokens by scope; tokens themselves are not kept.

    >>> tokens = Tokens.of({"read": "a" * 20, "write": "b" * 20})
    >>> tokens.scope_of("b" * 20), tokens.scope_of("a" * 20), tokens.scope_of("c" * 20)
    ('write', 'read', None)
    """

    digests: tuple[tuple[Scope, bytes], ...] = ()

    @classmethod
    def of(cls, tokens: Mapping[Scope, str]) -> Tokens:
        """Return tokens by scope."""
        return cls(tuple((scope, _digest(token)) for scope, token in tokens.items()))

    @classmethod
    def read(cls, path: Path | None, environment: Mapping[str, str]) -> Tokens:
        """Return the tokens of a file and of the environment.

        A line of the file is a scope and a token: ``write 5dI...``; empty lines and those with ``#`` are passed over.
        The file must be readable by its owner alone.
        """
        own: list[tuple[Scope, bytes]] = []
        if path is not None:
            _refuse_open_to_others(path)
            lines = read_bytes(path, 2**16).decode("utf-8", "replace").splitlines()
            for number, line in enumerate(lines, start=1):
                words = line.split()
                if not words or line.lstrip().startswith("#"):
                    continue
                if len(words) != 2 or words[0] not in ("read", "write"):
                    expected = "'read' or 'write' and a token"
                    raise SettingsError(f"{path}, line {number}: expected {expected}.", argument="token_file")
                scope: Scope = "write" if words[0] == "write" else "read"
                own.append((scope, _checked(words[1], f"{path}, line {number}")))
        variables: tuple[tuple[Scope, str], ...] = (("read", READ_VARIABLE), ("write", WRITE_VARIABLE))
        for scope, variable in variables:
            if environment.get(variable):
                own.append((scope, _checked(environment[variable], variable)))
        return cls(tuple(own))

    def __bool__(self) -> bool:
        return bool(self.digests)

    @property
    def readable_by_all(self) -> bool:
        """Whether reading needs no token: none has the read scope alone."""
        return not any(scope == "read" for scope, _ in self.digests)

    def scope_of(self, token: str) -> Scope | None:
        """Return what a token allows, ``None`` for a strange one; the time that takes tells nothing of the others."""
        digest, allowed = hashlib.sha256(token.encode("utf-8", "replace")).digest(), None
        for scope, known in self.digests:
            if hmac.compare_digest(digest, known) and allowed != "write":
                allowed = scope
        return allowed


def _checked(token: str, where: str) -> bytes:
    if len(token) < _SHORTEST or not token.isascii() or not token.isprintable():
        expected = f"one of {_SHORTEST} characters or more, such as 'openssl rand -hex 24' prints"
        raise SettingsError(f"{where}: found a token that is too short or not plain text, expected {expected}.")
    return _digest(token)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _refuse_open_to_others(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read ({error.strerror}), expected a file of tokens.") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SettingsError(f"{path}: others may read it, expected its owner alone. Try: chmod 600 {path}")
