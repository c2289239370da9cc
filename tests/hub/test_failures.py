"""Every way the Hub can fail: one line that says what to do, nothing sent, the token nowhere."""

from __future__ import annotations

import logging
import traceback

import pytest
from hub.fixtures import READER, WRITER
from report.report_packets import large_effect, three_readers

from evidep.audit.packet import AuditPacket
from evidep.errors import SettingError
from evidep.hub.attach import attach
from evidep.hub.client import Hub
from evidep.hub.errors import HubError, scrub
from evidep.hub.section import BEGIN

FOREIGN = "hf_foreignforeignforeignforeign"


def push(packet=None, dataset="ledger/claims", send=True, timeout=20.0):
    hub = Hub(timeout=timeout, waits=(0.01, 0.02))
    return attach(packet or large_effect(), dataset, hub=hub, send=send)


def no_token(standin, claims, monkeypatch):
    monkeypatch.delenv("HF_TOKEN")


def foreign_token(standin, claims, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", FOREIGN)


def read_only_token(standin, claims, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", READER)


def private(standin, claims, monkeypatch):
    claims.private = True


def private_without_token(standin, claims, monkeypatch):
    claims.private = True


def gated(standin, claims, monkeypatch):
    claims.allowed = {"somebody"}


def disabled(standin, claims, monkeypatch):
    claims.disabled = True


def no_pull_requests(standin, claims, monkeypatch):
    claims.takes_pulls = False


def no_right(standin, claims, monkeypatch):
    standin.fail("POST .*/commit/", status=403, message="You cannot do that")


def offline(standin, claims, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


def unreachable(standin, claims, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")


def broken_card(standin, claims, monkeypatch):
    claims.commit("main", claims.files() | {"README.md": b"---\na: [\n---\n", "train.csv": b"a\n"})


def broken_markers(standin, claims, monkeypatch):
    claims.commit("main", claims.files() | {"README.md": claims.files()["README.md"] + BEGIN})


def refused_file(standin, claims, monkeypatch):
    standin.fail("POST .*/commit/", status=400, message="file too large")


def always_500(standin, claims, monkeypatch):
    standin.fail("POST .*/commit/", status=500, times=99)


def always_500_when_read(standin, claims, monkeypatch):
    standin.fail("GET .*/revision/main", status=500, times=99)


def always_503_on_the_card(standin, claims, monkeypatch):
    standin.fail("GET .*README.md", status=503, times=99)


def a_gateways_page(standin, claims, monkeypatch):
    standin.fail("POST /api/validate-yaml", status=502, times=99, message="<html>Bad Gateway</html>")


def a_login_page(standin, claims, monkeypatch):
    standin.fail("GET .*/revision/main", status=200, times=99, message="<html>Welcome to the hotel</html>")


def another_api(standin, claims, monkeypatch):
    standin.fail("GET .*/revision/main", status=200, times=99, message="{}")


def too_many_requests(standin, claims, monkeypatch):
    standin.fail("POST .*/commit/", status=429, times=99, message="slow down")


def echoes_the_token(standin, claims, monkeypatch):
    standin.fail("POST .*/commit/", status=418, message=f"bad header Authorization: Bearer {WRITER}", times=99)


FAILURES = [
    (no_token, "no Hugging Face token was found; run `hf auth login` or set HF_TOKEN"),
    (foreign_token, "the token was not accepted"),
    (read_only_token, "the token may only read"),
    (private, "does not exist, or it is private and this token may not see it"),
    (gated, "is gated and this token has no access"),
    (disabled, "has been disabled"),
    (no_pull_requests, "no right to do that (Discussions are disabled for this repo"),
    (no_right, "this token has no right to do that (You cannot do that)"),
    (offline, "HF_HUB_OFFLINE is set"),
    (unreachable, "the Hub cannot be reached"),
    (broken_card, "the Hub refuses the card's metadata"),
    (broken_markers, "leave one pair"),
    (refused_file, "file too large"),
    (always_500, "the Hub failed with status 500"),
    (always_500_when_read, "the Hub failed with status 500"),
    (always_503_on_the_card, "the Hub failed with status 503"),
    (a_gateways_page, "is none that the Hub gives"),
    (a_login_page, "is none that the Hub gives"),
    (another_api, "is none that the Hub gives"),
    (too_many_requests, "too many requests (slow down)"),
    (echoes_the_token, "***"),
]


def holds_no_token(*texts):
    return not any(token in text for token in (WRITER, READER, FOREIGN) for text in texts)


@pytest.mark.parametrize(("failure", "words"), FAILURES, ids=[failure.__name__ for failure, _ in FAILURES])
def test_one_line_nothing_sent_no_token(standin, claims, monkeypatch, caplog, capfd, failure, words):
    failure(standin, claims, monkeypatch)
    caplog.set_level(logging.DEBUG)
    with pytest.raises(HubError) as caught:
        push()
    message = str(caught.value)
    assert words in message
    assert "\n" not in message
    assert len(message) < 500
    assert "ledger/claims" in message or "README.md" in message
    shown = capfd.readouterr()
    trace = "".join(traceback.format_exception(caught.value))
    assert holds_no_token(message, repr(caught.value), trace, caplog.text, shown.out, shown.err)
    assert claims.pulls == []


def test_a_missing_dataset_and_a_bad_name(standin):
    with pytest.raises(HubError, match="dataset ledger/nothing does not exist"):
        push(dataset="ledger/nothing")
    with pytest.raises(HubError, match="no name of a repository on the Hub"):
        push(dataset="not/a/name")
    assert standin.store.writes() == []


def test_a_visitor_is_told_that_a_token_is_missing(standin, claims, monkeypatch):
    monkeypatch.delenv("HF_TOKEN")
    claims.private = True
    with pytest.raises(HubError, match="or it is private and no token is set"):
        push(send=False)


def test_a_read_only_token_may_look(standin, claims, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", READER)
    assert push(send=False).files


@pytest.mark.parametrize("status", [500, 502, 503, 504, 429, 408])
def test_a_passing_failure_is_tried_again(standin, claims, status):
    standin.fail("POST .*/commit/", status=status, times=2)
    assert push().url.endswith("/discussions/1")
    assert len(claims.pulls) == 1


@pytest.mark.parametrize("status", [500, 504])
def test_a_commit_whose_answer_was_lost_is_not_made_twice(standin, claims, status):
    fault = standin.fail("POST .*/commit/", status=status, afterwards=True)
    done = push()
    assert fault.times == 0
    assert len(claims.pulls) == 1
    assert done.url == f"{standin.url}/datasets/ledger/claims/discussions/1"


def test_a_commit_that_takes_too_long_is_not_made_twice(standin, claims, caplog):
    """The Hub commits, but answers after the time limit."""
    standin.fail("POST .*/commit/", status=0, delay=3.0, afterwards=True)
    done = push(timeout=1.0)
    assert "did not answer in time" in caplog.text
    assert len(claims.pulls) == 1
    assert done.url.endswith("/discussions/1")


def test_a_hub_that_never_answers_ends_in_one_line(standin, claims):
    standin.fail("GET .*/revision/main", status=0, delay=5.0, times=99)
    with pytest.raises(HubError, match="did not answer in time"):
        push(timeout=0.3)
    assert claims.pulls == []


def somebody_commits_first(monkeypatch, claims, times):
    """Before each of our next `times` commits, the owners push one of their own."""
    real, left = Hub.commit, [times]

    def commit(self, repo, files, **more):
        if left[0]:
            left[0] -= 1
            text = claims.files()["README.md"] + f"\nOwners' line {left[0]}.\n".encode()
            claims.commit("main", claims.files() | {"README.md": text})
        return real(self, repo, files, **more)

    monkeypatch.setattr(Hub, "commit", commit)


def test_a_stale_parent_is_read_again_once(standin, claims, monkeypatch):
    somebody_commits_first(monkeypatch, claims, 1)
    push()
    readme = claims.files("refs/pr/1")["README.md"]
    assert b"Owners' line 0." in readme
    assert readme.index(b"Owners' line 0.") < readme.index(BEGIN)
    assert len(claims.pulls) == 1


def test_a_parent_that_is_stale_twice_is_an_error(standin, claims, monkeypatch):
    somebody_commits_first(monkeypatch, claims, 2)
    with pytest.raises(HubError, match="changed by somebody else in the meantime, twice"):
        push()
    assert claims.pulls == []


def test_a_packet_that_holds_the_token_is_refused(standin, claims, capfd):
    document = large_effect().to_dict()
    document["data"]["notes"] = [f"loaded with {WRITER}"]
    for send in (True, False):
        with pytest.raises(HubError, match=r"audit/packet\.json holds your Hugging Face token") as caught:
            push(AuditPacket(document), send=send)
        assert holds_no_token(str(caught.value))
    assert standin.store.writes() == []
    assert claims.pulls == []


def test_the_token_is_in_no_file_that_is_sent(standin, claims):
    push(three_readers())
    sent = claims.files("refs/pr/1")
    assert all(WRITER.encode() not in content for content in sent.values())
    assert holds_no_token(repr(Hub()))


def test_scrub_hides_what_looks_like_a_token():
    assert scrub("a hf_AbCdEfGh1234567890 b\n c") == "a *** b c"
    assert scrub("Bearer sesame", "sesame") == "Bearer ***"
    assert len(scrub("x" * 1000)) == 300


def test_a_timeout_must_be_positive(standin):
    with pytest.raises(SettingError, match="timeout"):
        Hub(timeout=0)


def test_the_users_client_keeps_its_own_time_limit(standin, claims):
    from huggingface_hub import get_session

    before = get_session().timeout
    push(timeout=7.0)
    assert get_session().timeout == before


def test_an_audit_writes_the_token_nowhere(monkeypatch, tmp_path, caplog):
    from support import make_rows

    import evidep

    monkeypatch.setenv("HF_TOKEN", WRITER)
    caplog.set_level(logging.DEBUG)
    evidep.audit(make_rows(60), ablations=(), shuffles=("global",), out=tmp_path)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 3
    assert not any(WRITER.encode() in path.read_bytes() for path in files)
    assert holds_no_token(caplog.text)
