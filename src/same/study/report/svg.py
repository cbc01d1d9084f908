"""Figures as SVG for a page: they follow its colours and show their values in tooltips."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

COLOURS = ("#3b6fb6", "#d9822b", "#3f9a6d", "#a65fb0", "#8c6d46", "#c0504d", "#5b9aa0", "#7f7f7f")
_STYLE = 'font-family="system-ui, sans-serif" font-size="11" fill="currentColor"'
_LEFT, _TOP, _WIDTH, _HEIGHT = 48.0, 34.0, 420.0, 190.0


class Dot(NamedTuple):
    """A point of a figure, the number of its group, and its tooltip."""

    x: float
    y: float
    group: int
    note: str


def standalone(svg: str) -> str:
    """A figure for a file of its own, where it has no page to take the colour of its text from."""
    return svg.replace("<svg ", '<svg color="#222" ', 1)


def bars(title: str, groups: Sequence[tuple[str, Sequence[tuple[str, float, float]]]], unit: str = "%") -> str:
    """Groups of bars with whiskers.

    Args:
        title: title of the figure.
        groups: (label, bars) of each group; a bar is (label, mean, standard deviation), and its label is in the legend.
        unit: unit of the values.
    """
    legend = list(dict.fromkeys(label for _, members in groups for label, _, _ in members))
    values = [v for _, members in groups for _, m, s in members for v in (m - s, m + s)]
    low, high = min([0.0, *values]), max([0.0, *values])
    left, slot = 44.0, 20.0
    scale = _HEIGHT / max(high - low, 1e-9)

    def y(value: float) -> float:
        return _TOP + (high - value) * scale

    body, x = [_title(title, left)], left + 10
    right = left + 10 + sum(len(members) * slot + 26 for _, members in groups)
    body += _y_axis(low, high, left, right, y)
    for group, members in groups:
        for label, mean, std in members:
            a, b = sorted((y(mean), y(0)))
            note = f"{group}, {label}: {mean:.1f} ± {std:.1f} {unit}"
            body.append(
                f'<g><title>{escape(note)}</title><rect x="{x:.1f}" y="{a:.1f}" width="{slot - 4}" '
                f'height="{max(b - a, 0.5):.1f}" fill="{_colour(legend.index(label))}"/>'
                f'<line x1="{x + slot / 2 - 2:.1f}" x2="{x + slot / 2 - 2:.1f}" y1="{y(mean - std):.1f}" '
                f'y2="{y(mean + std):.1f}" stroke="currentColor"/></g>'
            )
            x += slot
        body.append(_text(x - len(members) * slot / 2, _TOP + _HEIGHT + 16, group))
        x += 26
    return _svg(max(right, 330), _TOP + _HEIGHT + 48, [*body, *_legend(legend, left, _TOP + _HEIGHT + 38)], title)


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
        title: title of the figure.
        points: points, at least one.
        groups: names of the groups.
        x_label: label of the x axis.
        ticks: ticks of the x axis as (place, text); round numbers by default.
        line: points (x, y) of a staircase.
    """
    places, heights = [p.x for p in points] + [x for x, _ in ticks or ()], [p.y for p in points]
    x0, x1, y0, y1 = min(places), max(places), min(heights), max(heights)

    def at(x: float, y: float) -> tuple[float, float]:
        across = (x - x0) / max(x1 - x0, 1e-9) * (_WIDTH - 16)
        return _LEFT + 8 + across, _TOP + (y1 - y) / max(y1 - y0, 1e-9) * _HEIGHT

    body = [_title(title, _LEFT), *_y_axis(y0, y1, _LEFT, _LEFT + _WIDTH, lambda y: at(x0, y)[1])]
    for place, text in ticks or [(tick, f"{tick:g}") for tick in _ticks(x0, x1)]:
        body.append(_text(at(place, y0)[0], _TOP + _HEIGHT + 18, text))
    body.append(_text(_LEFT + _WIDTH, _TOP + _HEIGHT + 34, x_label, "end"))
    if line:
        first, *rest = (at(*point) for point in line)
        path = f"M{first[0]:.1f} {first[1]:.1f}" + "".join(f"H{x:.1f}V{y:.1f}" for x, y in rest)
        body.append(f'<path d="{path}" fill="none" stroke="{COLOURS[0]}" stroke-width="1.5"/>')
    body += [_circle(*at(p.x, p.y), 3, p.group, p.note) for p in points]
    body += _legend(groups, _LEFT, _TOP + _HEIGHT + 50)
    return _svg(_LEFT + _WIDTH + 20, _TOP + _HEIGHT + 62, body, title)


def scatter(title: str, points: np.ndarray, classes: Sequence[str]) -> str:
    """Points [n, 2] in the colours of their classes."""
    legend = sorted(set(classes))
    low, high = points.min(axis=0), points.max(axis=0)
    scaled = (points - low) / np.maximum(high - low, 1e-9)
    left, top, size = 10.0, 30.0, 300.0
    body = [_title(title, left)]
    for (x, y), label in zip(scaled, classes, strict=True):
        body.append(_circle(left + x * size, top + (1 - y) * size, 2.4, legend.index(label), label))
    return _svg(size + 20, top + size + 34, [*body, *_legend(legend, left, top + size + 24)], title)


def ranking(title: str, values: Mapping[str, float]) -> str:
    """A horizontal bar for each name, in the order given."""
    left, top, width, slot = 110.0, 30.0, 300.0, 20.0
    scale = width / max(*values.values(), 1e-9)
    body = [_title(title, 10)]
    for number, (name, value) in enumerate(values.items()):
        y, length = top + number * slot, max(value * scale, 0)
        body.append(_text(left - 6, y + 11, name, "end"))
        body.append(f'<rect x="{left}" y="{y:.1f}" width="{max(length, 0.5):.1f}" height="14" fill="{COLOURS[0]}"/>')
        body.append(_text(left + length + 6, y + 11, f"{value:.2f}", "start"))
    return _svg(left + width + 60, top + len(values) * slot + 10, body, title)


def _svg(width: float, height: float, body: Sequence[str], title: str) -> str:
    width = max(width, 60 + 6.6 * len(title))  # The title must fit.
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-label="{escape(title)}" {_STYLE}>' + "".join(body) + "</svg>"
    )


def _y_axis(low: float, high: float, left: float, right: float, y: Callable[[float], float]) -> list[str]:
    body = []
    for tick in _ticks(low, high):
        line = f'x1="{left:.1f}" x2="{right:.1f}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"'
        body.append(f'<line {line} stroke="currentColor" opacity="0.15"/>')
        body.append(_text(left - 5, y(tick) + 4, f"{tick:g}", "end"))
    return body


def _ticks(low: float, high: float) -> list[float]:
    """Some round numbers in a range."""
    span = max(high - low, 1e-9)
    unit = 10 ** np.floor(np.log10(span / 4))
    step = next(unit * k for k in (1, 2, 5, 10) if span / (unit * k) <= 6)
    return [float(t) + 0.0 for t in np.arange(np.ceil(low / step) * step, high + 1e-9, step)]  # Not -0.


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _title(title: str, x: float) -> str:
    return _text(x, 14, title, "start", 'font-weight="600"')


def _text(x: float, y: float, text: str, anchor: str = "middle", extra: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {extra}>{escape(text)}</text>'


def _circle(x: float, y: float, radius: float, colour: int, note: str) -> str:
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{_colour(colour)}" fill-opacity="0.75">'
        f"<title>{escape(note)}</title></circle>"
    )


def _legend(labels: Sequence[str], x: float, y: float) -> list[str]:
    body = []
    for number, label in enumerate(labels):
        body.append(f'<rect x="{x:.1f}" y="{y - 9:.1f}" width="10" height="10" fill="{_colour(number)}"/>')
        body.append(_text(x + 14, y, label, "start"))
        x += 24 + 6.2 * len(label)
    return body
