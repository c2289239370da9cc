"""Rows of small tables, and the tables built from them."""

from evidep.data.table import build_audit_data
from evidep.types import ColumnRoles

ROLES = ColumnRoles("query", "evidence", "label")


def make(evidence, queries=None, labels=None, **columns):
    n = len(evidence)
    queries = queries or [f"q{i}" for i in range(n)]
    labels = labels or ["no", "yes"] * n
    return [
        {"query": queries[i], "evidence": evidence[i], "label": labels[i]} | {k: v[i] for k, v in columns.items()}
        for i in range(n)
    ]


def build(rows, train=None, roles=ROLES, **named):
    return build_audit_data(rows, train, roles, **named)
