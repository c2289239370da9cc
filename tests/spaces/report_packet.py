"""A small packet of the audit itself, for tests."""

from __future__ import annotations

from functools import cache

from evidence_space.auditing import Choices, audit_origin
from evidence_space.origins import world_origin

from evidep.audit.packet import AuditPacket


@cache
def small_packet(world: str = "nq", seed: int = 0) -> AuditPacket:
    origin = world_origin(world, 200, seed)
    known = origin.roles
    assert known is not None
    choices = Choices(known.query, known.evidence, known.label, known.metadata, seed=seed)
    return audit_origin(origin, choices, lambda stage, done, total: None)[0]
