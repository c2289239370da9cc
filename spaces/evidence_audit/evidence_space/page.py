"""The look of the page: theme without web fonts, style sheet for phones, dark and light."""

from __future__ import annotations

from typing import Any, Final

TITLE: Final = "Evidence audit"
INTRO: Final = """# Does this benchmark need its evidence?

A benchmark hands a system a **query** and **evidence** and asks for a **label**. This Space swaps the evidence between
items and looks whether accuracy falls (**ΔEvi**), and how far metadata alone predicts the labels (**MPDS**). If
swapping changes nothing, a good score on the benchmark does not show that a system reads its evidence."""

PROGRAMS: Final = """The same audits for programs. Every endpoint is typed and described under *Use via API* below.

```python
from gradio_client import Client

space = Client("OWNER/evidence_audit")  # or the address of this page
result = space.predict(world="nq", api_name="/audit_planted_world")
print(result["verdict"], result["packet"]["signature"])
```

| endpoint | what |
|---|---|
| `/audit_rows` | audit rows that you send |
| `/audit_planted_world` | audit an example whose answer is known |
| `/audit_hub_dataset` | audit a dataset of the Hub |
| `/score_predictions` | ΔEvi and MPDS of predictions that you have |
| `/read_packet`, `/compare_packets` | read one packet, compare two |
| `/aggregate_scores` | aggregate scores over tasks |

Language models reach the same endpoints as tools of an MCP server (streamable HTTP) at `/gradio_api/mcp/`.

Links to an example: `?world=nq`, to a tab: `?tab=leaderboard`. On your own machine: `pip install evidep`, then
`evidep audit FILE`.
"""

CSS: Final = """
.gradio-container {width: 100% !important; max-width: 1100px !important; min-width: 0; margin: 0 auto !important;}
.ev-notice {border-left: 4px solid #2f8fd0; padding: .6em .9em; border-radius: 4px; background: rgba(47,143,208,.12);
  margin: .2em 0; overflow-wrap: anywhere;}
.ev-error {border-color: #d0342c; background: rgba(208,52,44,.14);}
.ev-done {border-color: #1a8f6b; background: rgba(26,143,107,.14);}
.ev-verdict {border-left: 8px solid #888; border-radius: 6px; padding: .7em 1em; background: rgba(128,128,128,.12);}
.ev-verdict h2 {margin: .1em 0 .3em; font-size: 1.5em;} .ev-verdict p {margin: .35em 0; overflow-wrap: anywhere;}
.ev-good {border-color: #1a8f6b; background: rgba(26,143,107,.14);}
.ev-bad {border-color: #c2571a; background: rgba(224,112,42,.16);}
.ev-small {font-size: .85em; opacity: .85;}
.ev-scroll {overflow-x: auto; margin: .6em 0;}
.ev-table {border-collapse: collapse; width: 100%; font-size: .92em;}
.ev-table caption {text-align: left; font-weight: 600; padding: .3em 0;}
.ev-table th, .ev-table td {padding: .3em .6em; border-bottom: 1px solid rgba(128,128,128,.35); text-align: left;
  vertical-align: top; font-weight: normal; overflow-wrap: anywhere; min-width: 4em;}
.ev-table thead th {font-weight: 600;} .ev-table .ev-num {text-align: right; white-space: nowrap;
  font-variant-numeric: tabular-nums;}
.ev-progress progress {width: 100%; height: 1em;} .ev-progress span {display: block; font-size: .92em;}
.ev-item {border: 1px solid rgba(128,128,128,.4); border-radius: 6px; padding: .4em .8em; margin: .5em 0;}
.ev-item p {margin: .25em 0; overflow-wrap: anywhere;}
.ev-figure {width: 100%; max-width: 1000px; height: auto; background: white; border-radius: 6px;}
.ev-html ul, .ev-html ol {padding-left: 1.4em; list-style: revert;}
.ev-html li {margin: .2em 0; overflow-wrap: anywhere;}
.ev-html h3 {font-size: 1.1em; font-weight: 600; margin: .8em 0 .3em;}
.ev-card {max-height: 40em; overflow-y: auto; border: 1px solid rgba(128,128,128,.4); border-radius: 6px;
  padding: 0 1em;}
.ev-card .ev-card {border: 0; padding: 0; max-height: none;}
.ev-card table {display: block; overflow-x: auto; border: 0 !important;}
:focus-visible {outline: 3px solid #2f8fd0 !important; outline-offset: 1px;}
.js-plotly-plot text {fill: #1f1f1f !important;} .dark .js-plotly-plot text {fill: #ececec !important;}
.js-plotly-plot .modebar {display: none;}
.js-plotly-plot .hoverlayer text {fill: #ffffff !important;}
@media (max-width: 640px) {.gradio-container {padding: 8px !important;} .ev-table {font-size: .85em;}}
"""


def theme() -> Any:
    """Gradio's default look in system fonts: nothing is fetched from elsewhere."""
    import gradio as gr

    default = gr.themes.Default(
        primary_hue="blue",
        font=("ui-sans-serif", "system-ui", "sans-serif"),
        font_mono=("ui-monospace", "Consolas", "monospace"),
    )
    # The default grey of hints and labels is too faint to be read by everybody.
    return default.set(
        block_info_text_color="*neutral_600",
        block_info_text_color_dark="*neutral_300",
        block_label_text_color="*neutral_700",
        block_label_text_color_dark="*neutral_200",
        block_title_text_color="*neutral_800",
        block_title_text_color_dark="*neutral_100",
    )
