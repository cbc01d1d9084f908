"""Figures as SVG that a page can hold: they follow its colours, and show their values when pointed at."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

COLOURS = ("#3b6fb6", "#d9822b", "#3f9a6d", "#a65fb0", "#8c6d46", "#c0504d", "#5b9aa0", "#7f7f7f")
_STYLE = 'font-family="system-ui, sans-serif" font-size="11" fill="currentColor"'


def _svg(width: float, height: float, body: Sequence[str], title: str) -> str:
    width = max(width, 60 + 6.6 * len(title))  # So that the title fits.
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-label="{escape(title)}" {_STYLE}>' + "".join(body) + "</svg>"
    )


def _text(x: float, y: float, text: str, anchor: str = "middle", extra: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {extra}>{escape(text)}</text>'


def _rule(x1: float, x2: float, y: float) -> str:
    return f'<line x1="{x1:.1f}" x2="{x2:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="currentColor" opacity="0.15"/>'


def _ticks(low: float, high: float) -> list[float]:
    """Some round numbers between two others."""
    span = max(high - low, 1e-9)
    unit = 10 ** np.floor(np.log10(span / 4))
    step = next(unit * k for k in (1, 2, 5, 10) if span / (unit * k) <= 6)
    return [float(t) + 0.0 for t in np.arange(np.ceil(low / step) * step, high + 1e-9, step)]  # Not -0.


def bars(title: str, groups: Sequence[tuple[str, Sequence[tuple[str, float, float]]]], unit: str = "%") -> str:
    """Groups of bars with whiskers.

    Args:
        title: of the figure.
        groups: (label, bars), a bar being (label, mean, standard deviation); labels of bars make the legend.
        unit: of the numbers.
    """
    legend = list(dict.fromkeys(label for _, members in groups for label, _, _ in members))
    values = [v for _, members in groups for _, m, s in members for v in (m - s, m + s)]
    low, high = min([0.0, *values]), max([0.0, *values])
    left, top, plot, slot = 44.0, 34.0, 190.0, 20.0
    scale = plot / max(high - low, 1e-9)

    def y(value: float) -> float:
        return top + (high - value) * scale

    body, x = [_text(left, 14, title, "start", 'font-weight="600"')], left + 10
    right = left + 10 + sum(len(members) * slot + 26 for _, members in groups)
    for tick in _ticks(low, high):
        body.append(_rule(left, right, y(tick)))
        body.append(_text(left - 5, y(tick) + 4, f"{tick:g}", "end"))
    for group, members in groups:
        for label, mean, std in members:
            colour = COLOURS[legend.index(label) % len(COLOURS)]
            a, b = sorted((y(mean), y(0)))
            note = f"{group}, {label}: {mean:.1f} ± {std:.1f} {unit}"
            body.append(
                f'<g><title>{escape(note)}</title><rect x="{x:.1f}" y="{a:.1f}" width="{slot - 4}" '
                f'height="{max(b - a, 0.5):.1f}" fill="{colour}"/>'
                f'<line x1="{x + slot / 2 - 2:.1f}" x2="{x + slot / 2 - 2:.1f}" y1="{y(mean - std):.1f}" '
                f'y2="{y(mean + std):.1f}" stroke="currentColor"/></g>'
            )
            x += slot
        body.append(_text(x - len(members) * slot / 2, top + plot + 16, group))
        x += 26
    return _svg(max(right, 330), top + plot + 48, [*body, *_legend(legend, left, top + plot + 38)], title)


def lines(title: str, series: Sequence[tuple[str, Sequence[tuple[float, float]]]], x_label: str) -> str:
    """Lines through points (x, y), one of each series' name in the legend."""
    points = [p for _, members in series for p in members]
    (x0, x1), (y0, y1) = ((min(p[i] for p in points), max(p[i] for p in points)) for i in (0, 1))
    left, top, width, height = 48.0, 34.0, 420.0, 190.0

    def at(p: tuple[float, float]) -> tuple[float, float]:
        return left + (p[0] - x0) / max(x1 - x0, 1e-9) * width, top + (y1 - p[1]) / max(y1 - y0, 1e-9) * height

    body = [_text(left, 14, title, "start", 'font-weight="600"')]
    for tick in _ticks(y0, y1):
        _, y = at((x0, tick))
        body.append(_rule(left, left + width, y))
        body.append(_text(left - 5, y + 4, f"{tick:g}", "end"))
    for tick in _ticks(x0, x1):
        body.append(_text(at((tick, y0))[0], top + height + 16, f"{tick:g}"))
    body.append(_text(left + width, top + height + 30, x_label, "end"))
    for number, (label, members) in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(at, members))
        body.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        for p in members[:: max(1, len(members) // 60)]:
            x, y = at(p)
            note = f"{label}: {p[1]:.3f} at {p[0]:g}"
            body.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2" fill="{colour}"><title>{escape(note)}</title></circle>'
            )
    names = [label for label, _ in series]
    return _svg(left + width + 20, top + height + 62, [*body, *_legend(names, left, top + height + 48)], title)


def scatter(title: str, points: np.ndarray, classes: Sequence[str]) -> str:
    """Points [n, 2] in the colours of their classes."""
    legend = sorted(set(classes))
    low, high = points.min(axis=0), points.max(axis=0)
    placed = (points - low) / np.maximum(high - low, 1e-9)
    left, top, size = 10.0, 30.0, 300.0
    body = [_text(left, 14, title, "start", 'font-weight="600"')]
    for (x, y), label in zip(placed, classes, strict=True):
        colour = COLOURS[legend.index(label) % len(COLOURS)]
        body.append(
            f'<circle cx="{left + x * size:.1f}" cy="{top + (1 - y) * size:.1f}" r="2.4" fill="{colour}" '
            f'fill-opacity="0.65"><title>{escape(label)}</title></circle>'
        )
    return _svg(size + 20, top + size + 34, [*body, *_legend(legend, left, top + size + 24)], title)


class Dot(NamedTuple):
    """A point of a figure: where it is, which group it belongs to, and what it says when pointed at."""

    x: float
    y: float
    group: int
    note: str


def dots(
    title: str,
    points: Sequence[Dot],
    groups: Sequence[str],
    x_label: str,
    *,
    ticks: Sequence[tuple[float, str]] | None = None,
    line: Sequence[tuple[float, float]] = (),
) -> str:
    """Points in the colours of their groups.

    Args:
        title: of the figure.
        points: at least one.
        groups: the names of the groups.
        x_label: below the axis.
        ticks: what the axis shows, as (place, text); round numbers by default.
        line: through these points (x, y), from one to the next in steps.
    """
    places = [p.x for p in points] + [x for x, _ in ticks or ()]
    x0, x1, y0, y1 = min(places), max(places), min(p.y for p in points), max(p.y for p in points)
    left, top, width, height = 48.0, 34.0, 420.0, 190.0

    def at(x: float, y: float) -> tuple[float, float]:
        return left + 8 + (x - x0) / max(x1 - x0, 1e-9) * (width - 16), top + (y1 - y) / max(y1 - y0, 1e-9) * height

    body = [_text(left, 14, title, "start", 'font-weight="600"')]
    for tick in _ticks(y0, y1):
        y = at(x0, tick)[1]
        body += [_rule(left, left + width, y), _text(left - 5, y + 4, f"{tick:g}", "end")]
    for place, text in ticks or [(tick, f"{tick:g}") for tick in _ticks(x0, x1)]:
        body.append(_text(at(place, y0)[0], top + height + 18, text))
    body.append(_text(left + width, top + height + 34, x_label, "end"))
    if line:
        first, *rest = (at(*point) for point in line)
        path = f"M{first[0]:.1f} {first[1]:.1f}" + "".join(f"H{x:.1f}V{y:.1f}" for x, y in rest)
        body.append(f'<path d="{path}" fill="none" stroke="{COLOURS[0]}" stroke-width="1.5"/>')
    for p in points:
        x, y = at(p.x, p.y)
        body.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{COLOURS[p.group % len(COLOURS)]}" fill-opacity="0.75">'
            f"<title>{escape(p.note)}</title></circle>"
        )
    return _svg(left + width + 20, top + height + 62, [*body, *_legend(groups, left, top + height + 50)], title)


def ranking(title: str, values: Mapping[str, float]) -> str:
    """A bar to the right for each of some names, in the order given."""
    left, top, width, slot = 110.0, 30.0, 300.0, 20.0
    scale = width / max(*values.values(), 1e-9)
    body = [_text(10, 14, title, "start", 'font-weight="600"')]
    for number, (name, value) in enumerate(values.items()):
        y = top + number * slot
        body.append(_text(left - 6, y + 11, name, "end"))
        body.append(
            f'<rect x="{left}" y="{y:.1f}" width="{max(value * scale, 0.5):.1f}" height="14" fill="{COLOURS[0]}"/>'
        )
        body.append(_text(left + max(value * scale, 0) + 6, y + 11, f"{value:.2f}", "start"))
    return _svg(left + width + 60, top + len(values) * slot + 10, body, title)


def _legend(labels: Sequence[str], x: float, y: float) -> list[str]:
    body = []
    for number, label in enumerate(labels):
        body.append(
            f'<rect x="{x:.1f}" y="{y - 9:.1f}" width="10" height="10" fill="{COLOURS[number % len(COLOURS)]}"/>'
        )
        body.append(_text(x + 14, y, label, "start"))
        x += 24 + 6.2 * len(label)
    return body
