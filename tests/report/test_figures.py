from __future__ import annotations

import subprocess
import sys
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from report import report_packets as packets

from evidep.audit.packet import AuditPacket
from evidep.errors import CacheError, SettingError
from evidep.report.figures import FIGURES, arms, diagnostic_map, ladder, save_figures, shuffle_distribution
from evidep.report.figures_shuffles import stacked
from evidep.report.style import save, spread

SVG = "{http://www.w3.org/2000/svg}"


def drawn(figure: Figure, panel: int = 0) -> list[tuple[str, list[tuple[float, float]]]]:
    """Marker and data of every line of one axes."""
    return [
        (str(line.get_marker()), [(float(x), float(y)) for x, y in np.column_stack(line.get_data())])
        for line in figure.axes[panel].lines
    ]


def texts(figure: Figure) -> list[str]:
    found = [text.get_text() for text in figure.texts]
    for axes in figure.axes:
        found += [text.get_text() for text in axes.texts] + [axes.get_title(loc="left")]
        found += [label.get_text() for label in axes.get_yticklabels()]
    return found


def has(lines: list[tuple[str, list[tuple[float, float]]]], marker: str, place: tuple[float, float]) -> bool:
    return any(m == marker and len(p) == 1 and np.allclose(p[0], place) for m, p in lines)


def test_map_puts_readers_at_their_numbers_with_both_intervals() -> None:
    lines = drawn(diagnostic_map(packets.three_readers(), landmarks=False))
    x = 0.4 / 0.71
    assert has(lines, "s", (x, 0.317))
    assert any(np.allclose(p, [(x, 0.301), (x, 0.333)]) for _, p in lines if len(p) == 2)
    assert any(np.allclose(p, [(x - 0.04, 0.317), (x + 0.04, 0.317)]) for _, p in lines if len(p) == 2)
    assert has(lines, "o", (0.4 / 0.585, 0.011))
    assert has(lines, "D", (0.4 / 0.801, packets.three_readers()["delta_evi"][4]["mean"]))
    assert sum(marker == "." for marker, _ in lines) == 1


def test_map_never_puts_an_undefined_mpds_into_the_plane() -> None:
    figure = diagnostic_map(packets.undefined_mpds(), landmarks=False)
    main, strip = figure.axes
    assert not [m for m, _ in drawn(figure, 0) if m in "osDx."]
    assert has(drawn(figure, 1), "s", (0.1, 0.18))
    assert not strip.xaxis.get_visible()
    assert any("no MPDS" in text.get_text() for text in strip.texts)
    assert main.get_ylim() == strip.get_ylim()


def test_map_has_hollow_landmarks_at_the_published_values() -> None:
    figure = diagnostic_map(packets.one_reader())
    hollow = [line for axes in figure.axes for line in axes.lines if line.get_markerfacecolor() == "none"]
    places = [tuple(place) for line in hollow for place in np.column_stack(line.get_data()).tolist()]
    assert (0.643, 0.0) in places
    assert (1.0, 0.0) in places
    assert {y for _, y in places} == {0.0, 0.808, 0.681, 0.367, 0.13}
    assert not any(
        line.get_markerfacecolor() == "none"
        for axes in diagnostic_map(packets.one_reader(), False).axes
        for line in axes.lines
    )


def test_map_without_any_effect_says_so() -> None:
    assert "no reader has a ΔEvi in this audit" in texts(diagnostic_map(packets.not_applicable()))


def test_map_marks_a_failed_reader() -> None:
    assert any(marker == "x" for marker, _ in drawn(diagnostic_map(packets.many_shuffles(), landmarks=False)))


@pytest.mark.parametrize("name", packets.EVERY)
def test_map_shows_everything_inside_its_limits(name: str) -> None:
    for axes in diagnostic_map(packets.EVERY[name]()).axes:
        (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
        for line in axes.lines:
            if line.get_marker() not in ("None", ""):
                x, y = line.get_data()
                assert np.all((np.asarray(x) >= left) & (np.asarray(x) <= right))
                assert np.all((np.asarray(y) >= bottom) & (np.asarray(y) <= top))


def test_shuffles_show_every_dot_the_full_accuracy_and_the_exact_mean() -> None:
    packet = packets.many_shuffles()
    lines = drawn(shuffle_distribution(packet))
    row = packet["delta_evi"][0]
    dots = next(p for m, p in lines if m == "o" and len(p) == 500)
    assert np.allclose(sorted(x for x, _ in dots), sorted(row["accuracy_shuffled"]))
    assert all(abs(y - 1) <= 0.37 for _, y in dots)
    assert any(len(p) == 2 and p[0][0] == p[1][0] == 0.62 for _, p in lines)
    assert has(lines, "D", (0.62 - 0.03, 1))
    assert any(len(p) == 2 and p[0][0] == p[1][0] == packet["majority_rate"] for _, p in lines)


def test_shuffles_without_exact_value_have_no_diamond() -> None:
    document = packets.three_readers().to_dict()
    document["delta_evi"] = [row for row in document["delta_evi"] if row["reader"] == "minilm"]
    assert not [m for m, _ in drawn(shuffle_distribution(AuditPacket(document))) if m == "D"]


def test_an_arm_that_is_not_applicable_says_why() -> None:
    found = texts(shuffle_distribution(packets.large_effect()))
    assert "not applicable: one class alone has items that can move" in found
    document = packets.not_applicable().to_dict()
    document["delta_evi"][0]["accuracy_shuffled"] = [None] * 20
    assert len([m for m, _ in drawn(shuffle_distribution(AuditPacket(document))) if m == "o"]) == 0


def test_stacked_dots_keep_apart() -> None:
    heights = stacked(np.array([0.5, 0.5, 0.5, 0.9]))
    assert sorted(heights[:3].tolist()) == pytest.approx([-0.16, 0.0, 0.16])
    assert heights[3] == 0.0
    assert np.abs(stacked(np.full(500, 0.5))).max() == pytest.approx(0.36)


def test_arms_have_the_bars_of_every_reader() -> None:
    figure = arms(packets.three_readers())
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["tfidf_lr", "minilm_lr", "minilm"]
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    widths = {name: patch.get_width() for name, patch in zip(names, figure.axes[1].patches, strict=True)}
    assert widths["majority rate"] == 0.34
    assert widths["metadata alone"] == 0.4
    assert widths["query and evidence"] == 0.71
    assert widths["swapped, global"] == pytest.approx(0.393)
    assert widths["query only, retrained"] == 0.6
    assert widths["query only, masked"] == pytest.approx(0.55)
    # Whisker of the swapped bar: 0.710 - [0.301, 0.333] = [0.377, 0.409].
    ends = [p for _, p in drawn(figure, 1) if len(p) == 2 and p[0][1] == names.index("swapped, global")]
    assert np.allclose(ends[-1], [(0.377, 3), (0.409, 3)])


def test_an_arm_that_was_not_run_is_a_dash_and_no_bar() -> None:
    figure = arms(packets.not_applicable())
    assert len(figure.axes[0].patches) == 3
    assert [text.get_text() for text in figure.axes[0].texts].count("–") == 2


def test_ladder_goes_from_weak_to_strong_with_intervals_and_seeds() -> None:
    figure = ladder(packets.three_readers())
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["tfidf_lr\n(light)", "minilm_lr\n(middle)", "minilm\n(strong)"]
    assert figure.axes[0].get_ylim()[0] > figure.axes[0].get_ylim()[1]
    lines = drawn(figure)
    y = next(p[0][1] for m, p in lines if m == "o" and np.isclose(p[0][0], 0.317))
    assert 0.5 < y < 1.5
    assert any(np.allclose(p, [(0.301, y), (0.333, y)]) for _, p in lines if len(p) == 2)
    assert sum(marker == "." for marker, _ in lines) == 2


def test_ladder_draws_no_point_for_what_is_not_applicable() -> None:
    figure = ladder(packets.not_applicable())
    assert not [m for m, _ in drawn(figure) if m in "os"]
    assert "global: not applicable" in texts(figure)


@pytest.mark.parametrize("name", ["undefined_mpds", "many", "hostile", "not_applicable"])
def test_no_text_leaves_the_figure(name: str) -> None:
    for draw in FIGURES.values():
        figure = draw(packets.EVERY[name]())
        width, height = figure.get_size_inches() * figure.dpi
        figure.canvas.draw()
        for text in [*figure.texts, *(text for axes in figure.axes for text in (*axes.texts, *axes.get_yticklabels()))]:
            if text.get_text() and text.get_visible():
                box = text.get_window_extent()
                assert box.x0 >= -1, (draw.__name__, text.get_text())
                assert box.x1 <= width + 1, (draw.__name__, text.get_text())
                assert box.y0 >= -1, (draw.__name__, text.get_text())
                assert box.y1 <= height + 1, (draw.__name__, text.get_text())


def test_map_names_do_not_cover_one_another() -> None:
    figure = diagnostic_map(packets.many())
    figure.canvas.draw()
    for axes in figure.axes:
        boxes = [t.get_window_extent() for t in axes.texts if t.get_fontsize() == 9 and t.get_fontweight() != "bold"]
        for at, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in boxes[at + 1 :])


@pytest.mark.parametrize(
    ("positions", "expected"),
    [
        ([0.5], [0.5]),
        ([0.5, 0.5], [0.45, 0.55]),
        ([0.5, 0.2], [0.5, 0.2]),
        ([0.0, 0.0], [0.0, 0.1]),
        ([1.0, 1.0, 0.98], [0.9, 1.0, 0.8]),
        ([], []),
    ],
)
def test_spread(positions: list[float], expected: list[float]) -> None:
    assert spread(positions, 0.1, 0.0, 1.0) == pytest.approx(expected)


def test_files_are_the_same_every_time_and_sane(tmp_path: Path) -> None:
    packet = packets.one_reader()
    first = save_figures(packet, tmp_path / "a")
    assert {path.name for path in first} == {f"{name}.{kind}" for name in FIGURES for kind in ("png", "svg")}
    for path, again in zip(first, save_figures(packet, tmp_path / "b"), strict=True):
        assert path.read_bytes() == again.read_bytes()
        assert path.stat().st_size < 400_000
    from PIL import Image

    with Image.open(tmp_path / "a" / "diagnostic_map.png") as image:
        assert image.width == 1280
        assert image.info.get("Software") is None


def test_the_callers_style_neither_matters_nor_changes(tmp_path: Path) -> None:
    packet = packets.one_reader()
    plain = save(diagnostic_map(packet), tmp_path / "a.png").read_bytes()
    with matplotlib.rc_context({"axes.facecolor": "black", "font.size": 30, "savefig.dpi": 20, "text.color": "red"}):
        before = dict(matplotlib.rcParams)
        assert save(diagnostic_map(packet), tmp_path / "b.png").read_bytes() == plain
        assert dict(matplotlib.rcParams) == before


def test_strangers_names_are_text_in_svg(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for path in save_figures(packets.hostile(), tmp_path, ("svg",)):
            root = ET.parse(path).getroot()
            tags = {element.tag.removeprefix(SVG) for element in root.iter()}
            assert not tags & {"script", "image", "a", "foreignObject"}


def test_unknown_format_and_unwritable_place(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="'pdf' is unknown; choose from png, svg"):
        save_figures(packets.one_reader(), tmp_path, ("pdf",))
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("x")
    with pytest.raises(CacheError, match="cannot write the figure"):
        save(diagnostic_map(packets.one_reader()), tmp_path / "file" / "map.png")


def test_no_pyplot_and_no_figure_before_it_is_asked_for() -> None:
    program = (
        "import sys; sys.path.insert(0, 'tests')\n"
        "from report import report_packets as p\nimport evidep.report.card, evidep.report.text\n"
        "evidep.report.card.audit_card(p.one_reader(), figures=True); str(p.one_reader())\n"
        "assert 'matplotlib' not in sys.modules\n"
        "from evidep.report.figures import FIGURES\n"
        "[draw(p.one_reader()) for draw in FIGURES.values()]\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[2])
