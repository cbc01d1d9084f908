"""Draw the rooms of the package and the imports between them: `python docs/rooms.py > docs/assets/rooms.svg`.

A room may import the rooms to its left only. `tests/test_rooms.py` checks this, and that the picture is up to date.
"""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "same"

LEAVES = ("errors", "files", "seeding", "threads", "metrics", "config")
ROOMS = (
    "leaves",
    "graphs",
    "nn",
    "tasks",
    "episodes",
    "weighting",
    "methods",
    "training",
    "linear",
    "saved",
    "experiment",
    "probes",
    "study",
    "tuning",
    "estimator",
    "cli",
)
"""The rooms from left to right."""


def room_of(module: str) -> str | None:
    """Return the room of a module name such as `same.graphs.store`; None for the package itself."""
    parts = module.split(".")
    if parts[0] != "same" or len(parts) < 2:
        return None
    return "leaves" if parts[1] in LEAVES else parts[1]


def imports(path: Path) -> set[str]:
    """Return the modules of the package that a file imports, at any depth."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            if node.module == "same":
                names |= {f"same.{alias.name}" for alias in node.names}
    return {name for name in names if name.split(".")[0] == "same"}


def edges() -> dict[tuple[str, str], list[str]]:
    """Return the imports from one room to another, as {(room, imported room): [files]}."""
    found: dict[tuple[str, str], list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        relative = path.relative_to(PACKAGE)
        if str(relative) in ("__init__.py", "__main__.py"):
            continue
        room = room_of(".".join(("same", *relative.with_suffix("").parts)))
        for module in imports(path):
            other = room_of(module)
            if room and other and other != room and not other.startswith("__"):
                found.setdefault((room, other), []).append(str(relative))
    return found


def wrong() -> list[str]:
    """Return the imports that go to the right, one line each."""
    order = {room: place for place, room in enumerate(ROOMS)}
    lines = []
    for (room, other), files in sorted(edges().items()):
        if room not in order or other not in order or order[other] >= order[room]:
            lines.append(f"{room} imports {other}: {', '.join(sorted(set(files)))}")
    return lines


def draw() -> str:
    """Return the picture as SVG: the rooms in order, and an arc for each import, dark where it is the nearest one."""
    step, top = 74, 330
    place = {room: 60 + i * step for i, room in enumerate(ROOMS)}
    width = place[ROOMS[-1]] + 60
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top + 50}" font-family="sans-serif" '
        'font-size="12" role="img" aria-label="Rooms of the package and their imports">'
    ]
    for room, other in sorted(edges()):
        if room in place and other in place:
            a, b = place[other], place[room]
            height = min(top - 30, 26 + abs(b - a) * 0.26)
            parts.append(
                f'<path d="M{b},{top} C{b},{top - height:.0f} {a},{top - height:.0f} {a},{top}" fill="none" '
                'stroke="#3f6fb5" stroke-opacity="0.45"/>'
            )
    for room, x in place.items():
        parts.append(f'<circle cx="{x}" cy="{top}" r="4" fill="#1f3f70"/>')
        parts.append(f'<text x="{x}" y="{top + 22}" text-anchor="middle" fill="currentColor">{room}</text>')
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    for line in wrong():
        raise SystemExit(line)
    print(draw(), end="")
