"""Audit a tiny reader in a process of its own: MODEL OUT."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tiny_models import audit_rows

import evidep
from evidep.readers import transformer

if __name__ == "__main__":
    model, out = sys.argv[1:]
    transformer.PAIRS_PER_CALL["cpu"] = 60  # a call per shuffle, so that a kill falls between calls
    reader = transformer.TransformerReader(model=model, epochs=4, batch_size=8, learning_rate=2e-3, precision="fp32")
    evidep.audit(
        audit_rows(60, 1), train=audit_rows(250, 0), readers=[reader], k=40, shuffles=["global"], ablations=(), out=out
    )
