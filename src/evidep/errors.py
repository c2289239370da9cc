"""Errors that a caller can fix. Every message is one line: what was expected, what came, what to do."""

from __future__ import annotations


class EvidepError(Exception):
    """Base of all errors that evidep raises on purpose. The command line prints the message and exits with 2."""


class DataError(EvidepError):
    """The dataset cannot be audited as it is: a column, a row, a label or a file is not what it should be."""


class SettingError(EvidepError):
    """A setting (an argument or option) is out of its range or contradicts another one."""


class ReaderError(EvidepError):
    """A reader could not be built, fitted or asked for scores."""


class CacheError(EvidepError):
    """Finished work could not be written or read back (full disk, read-only folder, foreign file)."""


class PacketError(EvidepError):
    """A file is no audit packet, or one of a schema version that this release cannot read."""


class MissingExtraError(EvidepError):
    """An optional dependency is needed. The message ends with the exact pip command."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed: pip install 'evidep[{extra}]'"
        )
        self.package = package
        self.extra = extra
