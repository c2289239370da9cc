"""Shared fixtures: an offline environment and the real benchmark data where it is at hand."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

_HOME = tempfile.mkdtemp(prefix="evidep-test-home-")
os.environ.update(
    HF_EVALUATE_OFFLINE="1",
    HF_HUB_OFFLINE="1",
    HF_HUB_DISABLE_XET="1",
    HF_HUB_DISABLE_TELEMETRY="1",
    OMP_NUM_THREADS="1",
    TOKENIZERS_PARALLELISM="false",
    GRADIO_ANALYTICS_ENABLED="False",
    HF_HOME=_HOME,
    MPLBACKEND="agg",
)

import pytest  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]


def data_folder() -> Path | None:
    """The folder of real benchmark text: EVIDEP_DATA, else ../shared/data beside the checkout."""
    named = os.environ.get("EVIDEP_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    return folder if folder.is_dir() else None


@pytest.fixture(scope="session")
def real_data() -> Path:
    folder = data_folder()
    if folder is None:
        pytest.skip("no real benchmark data: set EVIDEP_DATA to its folder")
    return folder


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--run-slow", action="store_true", help="also run the tests marked slow")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--run-slow"):
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="slow: run with --run-slow"))
