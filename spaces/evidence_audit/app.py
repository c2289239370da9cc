"""The Space's page. `python app.py` serves it; on the Hub the same file is run."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import sys
import tempfile
from typing import Any

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("MPLBACKEND", "agg")
if "GRADIO_TEMP_DIR" not in os.environ:
    # A folder of this process: its uploads and results go when it ends.
    os.environ["GRADIO_TEMP_DIR"] = tempfile.mkdtemp(prefix="evidep-space-files-")
    atexit.register(shutil.rmtree, os.environ["GRADIO_TEMP_DIR"], ignore_errors=True)

import gradio as gr
from evidence_space import endpoints, limits, page, tab_audit, tab_leaderboard, tab_packet, tab_predictions
from evidence_space.origins import WORLD, WORLD_NAMES

TABS = ("audit", "predictions", "packet", "leaderboard", "api")


def build() -> gr.Blocks:
    """The whole page."""
    with gr.Blocks(
        title=page.TITLE, analytics_enabled=False, delete_cache=(limits.FILE_LIFETIME // 3, limits.FILE_LIFETIME)
    ) as demo:
        gr.Markdown(page.INTRO)
        with gr.Tabs(elem_id="tabs") as tabs:
            with gr.Tab("Audit a dataset", id="audit"):
                audit = tab_audit.build()
            with gr.Tab("Audit your predictions", id="predictions"):
                tab_predictions.build()
            with gr.Tab("Read a packet", id="packet"):
                tab_packet.build()
            with gr.Tab("Fair leaderboard", id="leaderboard"):
                tab_leaderboard.build()
            with gr.Tab("For programs", id="api"):
                gr.Markdown(page.PROGRAMS)
        gr.Markdown(limits.SUMMARY, elem_classes="ev-small")

        def arrive(request: gr.Request) -> dict[Any, Any]:
            asked = dict(request.query_params)
            tab = asked.get("tab") if asked.get("tab") in TABS else "audit"
            world = asked.get("world") if asked.get("world") in WORLD_NAMES else "triviaqa"
            shown = audit["look"](WORLD, None, world, "", "", "")
            return {tabs: gr.update(selected=tab), audit["world"]: world, **shown}

        demo.load(
            arrive, None, [tabs, audit["world"], *audit["shown"]], api_visibility="private", show_progress="hidden"
        )
        demo.unload(leave)
        endpoints.build()
    demo.queue(max_size=limits.QUEUE, default_concurrency_limit=4, api_open=True)
    return demo


def leave(request: gr.Request) -> None:
    """Stop what a visitor left running."""
    tab_audit.VISITORS.stop(str(request.session_hash))


def launch(**options: Any) -> Any:
    """Serve the page with its API and MCP server."""
    settings: dict[str, Any] = {
        "theme": page.theme(),
        "css": page.CSS,
        "max_file_size": limits.MAX_FILE_BYTES,
        "mcp_server": True,
        "ssr_mode": False,
        "footer_links": ["api"],
        "enable_monitoring": False,
    }
    return build().launch(**(settings | options))


if __name__ == "__main__":
    # Being told to end must end like an interrupt, so that what visitors uploaded is removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    launch()
