"""`evidep push-card` as a user meets it: a difference on stdout, everything else on stderr, nothing sent unasked."""

from __future__ import annotations

import pytest
from hub.fixtures import CARD, READER, WRITER, claims, figures_drawn_once, standin  # noqa: F401
from report.report_packets import large_effect, three_readers

pytestmark = pytest.mark.usefixtures("figures_drawn_once")


@pytest.fixture
def audit(tmp_path):
    return large_effect().save(tmp_path / "audit")


def test_dry_run_then_yes_then_nothing_to_do(call_cli, standin, claims, audit):  # noqa: F811
    command = ("push-card", audit, "--dataset", "ledger/claims")
    code, out, err = call_cli(*command)
    assert code == 0, err
    assert out.startswith("--- a/README.md\n+++ b/README.md\n")
    assert "+## Evidence audit of `planted`" in out
    assert "audit/packet.json: " in out
    assert "dry run, nothing was sent; --yes sends this as a new pull request on ledger/claims" in err
    assert "the packet calls its data planted, not ledger/claims" in err
    assert standin.store.writes() == []

    code, shown, err = call_cli(*command, "--yes")
    assert code == 0, err
    assert shown == out
    assert f"sent as a new pull request: {standin.url}/datasets/ledger/claims/discussions/1" in err
    assert claims.files("refs/pr/1")["README.md"].startswith(CARD)

    sent = list(standin.store.writes())
    code, out, err = call_cli(*command, "--yes")
    assert (code, out) == (0, "")
    assert f"nothing to do: {standin.url}/datasets/ledger/claims/discussions/1 already holds this audit" in err
    assert standin.store.writes() == sent


def test_an_update_names_the_open_pull_request(call_cli, standin, claims, audit, tmp_path):  # noqa: F811
    call_cli("push-card", audit, "--dataset", "ledger/claims", "--yes")
    other = three_readers().save(tmp_path / "other")
    code, out, err = call_cli("push-card", other, "--dataset", "ledger/claims")
    assert code == 0
    assert "--yes sends this as pull request 1 on ledger/claims" in err
    assert "-## Evidence audit of `planted`" in out
    assert "+## Evidence audit of `snli_cad`" in out


def test_no_note_where_the_names_agree(call_cli, standin, audit):  # noqa: F811
    document = large_effect().to_dict()
    document["data"]["name"] = "ledger/claims"
    from evidep.audit.packet import AuditPacket

    AuditPacket(document).save(audit)
    assert "note:" not in call_cli("push-card", audit, "--dataset", "ledger/claims")[2]


@pytest.mark.parametrize(
    ("arguments", "token", "words"),
    [
        (("--yes",), None, "no Hugging Face token was found"),
        (("--yes",), READER, "the token may only read"),
        (("--yes", "--folder", "../x"), WRITER, "plain relative name"),
        (("--timeout", "0"), WRITER, "timeout"),
    ],
)
def test_bad_use_is_2_with_one_line_and_nothing_sent(
    call_cli, standin, audit, monkeypatch, arguments, token, words  # noqa: F811
):  # fmt: skip
    if token is None:
        monkeypatch.delenv("HF_TOKEN")
    else:
        monkeypatch.setenv("HF_TOKEN", token)
    document = large_effect().to_dict()
    document["data"]["name"] = "ledger/claims"
    from evidep.audit.packet import AuditPacket

    AuditPacket(document).save(audit)
    code, out, err = call_cli("push-card", audit, "--dataset", "ledger/claims", *arguments)
    assert (code, out) == (2, "")
    assert len(err.strip().splitlines()) == 1
    assert words in err
    assert WRITER not in err
    assert standin.store.writes() == []


def test_the_real_command_offline(run_cli, audit):
    """A process of its own: HF_HUB_OFFLINE is read when the client is imported."""
    done = run_cli("push-card", audit, "--dataset", "org/name", "--yes", HF_HUB_OFFLINE="1", HF_TOKEN=WRITER)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "HF_HUB_OFFLINE is set" in done.stderr.splitlines()[-1]
    assert WRITER not in done.stderr
    assert "Traceback" not in done.stderr


def test_help_loads_nothing_heavy(run_cli):
    done = run_cli("push-card", "--help")
    assert done.returncode == 0
    assert "--yes" in done.stdout
    import subprocess
    import sys

    code = (
        "import sys\nfrom evidep.cli import build_parser\nbuild_parser()\n"
        "print([m for m in ('huggingface_hub', 'httpx2', 'numpy', 'datasets', 'matplotlib') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
