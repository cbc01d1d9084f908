"""Charts as SVG for a page: their text takes the colour of the page, and tooltips show values."""

import io
import re
from collections.abc import Callable, Sequence
from typing import Any

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # Text stays text.
    "text.parse_math": False,  # Names of datasets may contain dollar signs.
    "font.size": 9,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    **dict.fromkeys(("axes.spines.top", "axes.spines.right"), False),
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), "#888888"),
    **dict.fromkeys(("xtick.labelcolor", "ytick.labelcolor"), "black"),
}
_NOTE = "note: "
"""Start of the id of an artist that has a tooltip."""


def bars(title: str, groups: Sequence[tuple[str, Sequence[tuple[str, float, float]]]], unit: str = "%") -> str:
    """Groups (label, bars) of bars (label in the legend, mean, standard deviation)."""
    legend = list(dict.fromkeys(label for _, members in groups for label, _, _ in members))

    def draw(axes: Any) -> None:
        start, centres = 0, []
        for group, members in groups:
            for place, (label, mean, std) in enumerate(members, start):
                (bar,) = axes.bar(place, mean, yerr=std, color=f"C{legend.index(label)}", ecolor="#888888")
                bar.set_gid(f"{_NOTE}{group}, {label}: {mean:.1f} ± {std:.1f} {unit}")
            centres.append(start + (len(members) - 1) / 2)
            start += len(members) + 1
        axes.set_xticks(centres, [group for group, _ in groups])

    return _chart(title, max(5, sum(0.25 * len(members) + 0.3 for _, members in groups)), 3, draw, legend)


def _chart(title: str, width: float, height: float, draw: Callable[[Any], None], legend: Sequence[str] = ()) -> str:
    """A chart that `draw` draws; equal charts are equal strings."""
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    text = io.StringIO()
    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": title}):
        width = max(width, 0.6 + 0.09 * len(title))
        figure = Figure((width, height), layout="constrained", facecolor="none")
        axes = figure.subplots()
        axes.set_facecolor("none")
        axes.set_title(title)
        draw(axes)
        handles = [Patch(color=f"C{number}", label=label) for number, label in enumerate(legend)]
        columns = int(width / (0.55 + 0.08 * max(map(len, legend), default=0)))
        figure.legend(handles=handles, loc="outside lower left", ncols=max(columns, 1), frameon=False)
        figure.savefig(text, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    svg = text.getvalue()
    return re.sub(rf"<g id=(['\"]){_NOTE}(.*?)\1>", r"<g><title>\2</title>", svg[svg.index("<svg") :])
