"""An audit on the dataset that it is about: one commit, as a pull request, that its owners decide on."""

from __future__ import annotations

import difflib
import json
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from evidep.audit.packet import PACKET_FILE, AuditPacket
from evidep.errors import SettingError
from evidep.hub.client import Hub, Repo
from evidep.hub.data_files import would_be_loaded
from evidep.hub.errors import HubError
from evidep.hub.section import audit_section, with_section
from evidep.report.badge import badge_endpoint, badge_svg
from evidep.report.card import FIGURE_FOLDER
from evidep.report.escape import code, one_line
from evidep.report.words import evidence_line, region_title

README: Final = "README.md"
FOLDER: Final = "audit"
TITLE: Final = "Evidence audit"
"""Begins the title of every pull request; by it and the author an open one is found again."""
_FOLDER_NAME: Final = re.compile(r"\.?[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*")


@dataclass(frozen=True, slots=True)
class Attachment:
    """What attaching an audit to a dataset means, or meant.

    Attributes:
        dataset: ORG/NAME.
        pull_request: Number of the open pull request that is updated, None for a new one.
        files: Path to content, of every file that is new or different.
        unchanged: Paths that are already there as they should be.
        diff: What happens to README.md, as a unified diff; empty where nothing does.
        url: Where the pull request is, once it holds the audit; else None.
    """

    dataset: str
    pull_request: int | None
    files: Mapping[str, bytes]
    unchanged: tuple[str, ...]
    diff: str
    url: str | None = None

    @property
    def nothing_to_do(self) -> bool:
        """Whether the dataset (or the open pull request) already holds exactly this audit."""
        return not self.files


def audit_files(packet: AuditPacket, folder: str = FOLDER) -> dict[str, bytes]:
    """Path to content of the files beside the README: packet, badge and figures.

    Raises:
        SettingError: A folder name that is not plain.
    """
    from evidep.report.figures import save_figures

    if not _FOLDER_NAME.fullmatch(folder):
        raise SettingError(f"folder: expected a plain relative name such as {FOLDER} or .{FOLDER}, got {folder!r}")
    files = {
        f"{folder}/{PACKET_FILE}": f"{packet.to_json()}\n".encode(),
        f"{folder}/badge.json": (json.dumps(badge_endpoint(packet), ensure_ascii=False) + "\n").encode(),
        f"{folder}/badge.svg": badge_svg(packet).encode(),
    }
    with tempfile.TemporaryDirectory(prefix="evidep-figures-") as figures:
        for path in save_figures(packet, figures, ("png",)):
            files[f"{folder}/{FIGURE_FOLDER}/{path.name}"] = path.read_bytes()
    return files


def attach(
    packet: AuditPacket, dataset: str, *, folder: str = FOLDER, send: bool = False, hub: Hub | None = None
) -> Attachment:
    """Plan the attachment of an audit to a dataset on the Hub, and send it as a pull request where that is asked for.

    A second time the section and files are updated: in the own pull request while that is open, else in a new one.
    The same audit a second time changes nothing and sends nothing.

    Args:
        packet: The audit.
        dataset: ORG/NAME of the dataset.
        folder: Folder in the dataset for packet, badge and figures.
        send: False plans only.
        hub: Connection to use.

    Raises:
        HubError: No token, no right, a gated or missing dataset, a card that cannot be edited, files that would be
            loaded as data, two changes by others in a row, or a Hub that stays unreachable.
        SettingError: A folder name that is not plain.
    """
    hub = Hub() if hub is None else hub
    user = hub.user(f"dataset {dataset}", writes=True) if send else None
    files = audit_files(packet, folder)
    hub.refuse_token(files)

    def once() -> Attachment:
        plan, repo = _plan(hub, packet, dataset, folder, files, user)
        if plan.nothing_to_do or not send:
            return plan
        return _send(hub, packet, plan, repo)

    return hub.persistently(once)


def _plan(
    hub: Hub, packet: AuditPacket, dataset: str, folder: str, files: Mapping[str, bytes], user: str | None
) -> tuple[Attachment, Repo]:
    repo, number = hub.read(dataset, "dataset"), None
    if user is None and hub.has_token:
        user = hub.user(f"dataset {dataset}", writes=False)
    if user is not None:
        number = hub.open_pull_request(dataset, "dataset", user, TITLE)
    if number is not None:
        repo = hub.read(dataset, "dataset", f"refs/pr/{number}")
    before = hub.download(repo, README)
    if would_be_loaded(before, repo.files, files):
        raise HubError(
            f"dataset {dataset}: its card names no data files, so {folder}/ would be loaded as data; choose a hidden "
            f"folder (--folder .{folder.removeprefix('.')}), which datasets passes over"
        )
    after = with_section(before, audit_section(packet, f"{folder}/{FIGURE_FOLDER}"))
    wanted = {README: after, **files}
    same = hub.same(repo, files) | ({README} if before == after else set())
    changed = {path: content for path, content in wanted.items() if path not in same}
    url = hub.pull_request_url(dataset, number) if number is not None and not changed else None
    return Attachment(dataset, number, changed, tuple(sorted(same)), _diff(before, after), url), repo


def _send(hub: Hub, packet: AuditPacket, plan: Attachment, repo: Repo) -> Attachment:
    commit = hub.commit(
        repo,
        plan.files,
        title=f"{TITLE}: {region_title(packet)}",
        description=_description(packet),
        new_pull_request=plan.pull_request is None,
    )
    number = plan.pull_request
    url = commit.pr_url if number is None else hub.pull_request_url(plan.dataset, number)
    return Attachment(plan.dataset, number, plan.files, plan.unchanged, plan.diff, url)


def _description(packet: AuditPacket) -> str:
    found = evidence_line(packet)
    return "\n\n".join(
        [
            "An audit of evidence dependence (MPDS, ΔEvi) as a section of the card, with its packet and figures. "
            "Nothing else of the card is changed.",
            *([one_line(found)] if found else []),
            f"Signature: {code(packet.signature)}",
        ]
    )


def _diff(before: bytes | None, after: bytes) -> str:
    def lines(content: bytes | None) -> list[str]:
        return (content or b"").decode("utf-8", errors="replace").splitlines(keepends=True)

    parts = []
    for line in difflib.unified_diff(lines(before), lines(after), f"a/{README}", f"b/{README}"):
        parts.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(parts)
