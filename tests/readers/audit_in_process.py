"""Audit a tiny reader in a process of its own: MODEL OUT."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tiny_models import audit_rows

import evidep
from evidep.readers.transformer import TransformerReader

if __name__ == "__main__":
    model, out = sys.argv[1:]
    reader = TransformerReader(model=model, epochs=4, batch_size=8, learning_rate=2e-3, precision="fp32")
    evidep.audit(
        audit_rows(250, 1), train=audit_rows(250, 0), readers=[reader], k=40, shuffles=["global"], ablations=(), out=out
    )
