"""Draw the rooms of the package, and list its files: `python docs/rooms.py` writes both into `docs/`.

A room may import only the rooms to its left. `tests/test_rooms.py` checks this, and that the picture
(`assets/rooms.svg`) and the tree of files (in `house.md`) are up to date.
"""

import ast
import re
from pathlib import Path

DOCS = Path(__file__).parent
PACKAGE = DOCS.parent / "src" / "same"
PICTURE, PAGE = DOCS / "assets" / "rooms.svg", DOCS / "house.md"

LEAVES = ("commit", "config", "errors", "files", "metrics", "seeding", "threads")
"""Modules that import nothing but each other."""

ROOMS = {
    "leaves": "errors, files, seeds, threads, metrics, the configuration",
    "linear": "linear models, a leaf",
    "graphs": "sets of graphs, and the formats they come in",
    "nn": "encoders and heads",
    "tasks": "what is learned",
    "episodes": "what one step draws (Algorithm 4)",
    "weighting": "from several losses to one update",
    "methods": "how tasks are learned (Algorithms 1 to 3)",
    "training": "the loop, and the rules between its steps",
    "saved": "a trained model, in memory and on disk",
    "experiment": "from a configuration to a trained model",
    "probes": "scores",
    "study": "many runs, tables and reports",
    "tuning": "hyperparameter search",
    "estimator": "GraphEncoder",
    "cli": "the command same",
}
"""The rooms from left to right."""

ORDER = list(ROOMS)


def room_of(module: str) -> str | None:
    """Return the room of a module such as `same.graphs.store`; None for the package itself and for names in it."""
    parts = module.split(".")
    if parts[0] != "same" or len(parts) < 2 or parts[1].startswith("__"):
        return None
    return "leaves" if parts[1] in LEAVES else parts[1]


def modules() -> dict[Path, ast.Module]:
    """Return the files of the package, parsed."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}


def imported(tree: ast.Module) -> set[str]:
    """Return the modules that a file imports, at any depth."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"same.{alias.name}" for alias in node.names} if node.module == "same" else {node.module}
    return names


def edges() -> dict[tuple[str, str], list[str]]:
    """Return the imports between rooms, as {(room, imported room): [files]}."""
    result: dict[tuple[str, str], list[str]] = {}
    for path, tree in modules().items():
        relative = path.relative_to(PACKAGE)
        room = room_of(".".join(("same", *relative.with_suffix("").parts)))
        for other in {room_of(name) for name in imported(tree)} - {None, room} if room else ():
            result.setdefault((room, other), []).append(relative.as_posix())
    return result


def wrong() -> list[str]:
    """Return the imports that go to the right, or to no room, one line each."""
    place = {room: number for number, room in enumerate(ORDER)}
    return [
        f"{room} imports {other}: {', '.join(files)}"
        for (room, other), files in sorted(edges().items())
        if not place.get(other, len(place)) < place.get(room, -1)
    ]


def draw() -> str:
    """Return the picture: rooms on a diagonal, and a dot where the room of a row imports the room of a column."""
    step, lines, dots, names = 26, [], [], []
    centre = {room: step * number + step // 2 for number, room in enumerate(ORDER)}
    imports = edges()
    for room, at in centre.items():
        columns = [centre[other] for one, other in imports if one == room]
        rows = [centre[one] for one, other in imports if other == room]
        lines.append(f"M{min(columns, default=at)},{at}H{at}V{max(rows, default=at)}")
        names.append(
            f'<circle cx="{at}" cy="{at}" r="6" fill="#3f51b5"/>'
            f'<text x="{at + 14}" y="{at + 4}" fill="currentColor"><tspan font-weight="bold">{room}</tspan>'
            f'<tspan fill-opacity="0.7" dx="8">{ROOMS[room]}</tspan></text>'
        )
    for (room, other), files in sorted(imports.items(), key=lambda edge: (ORDER.index(edge[0][0]), edge[0])):
        dots.append(
            f'<circle cx="{centre[other]}" cy="{centre[room]}" r="{min(3 + len(files) / 3, 6):.1f}">'
            f"<title>{room} imports {other}: {', '.join(files)}</title></circle>"
        )
    height = step * len(ORDER)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {height + 260} {height}" font-family="sans-serif" '
            'font-size="12" role="img" aria-label="The rooms of the package and their imports">',
            f'<path d="{"".join(lines)}" fill="none" stroke="#9e9e9e" stroke-width="0.6" stroke-opacity="0.7"/>',
            '<g fill="#7986cb">',
            *dots,
            "</g>",
            *names,
            "</svg>",
            "",
        ]
    )


def tree() -> str:
    """Return the files of the package in the order of the rooms, with the first line of each docstring."""
    rows = []
    for path, content in modules().items():
        *folder, name = path.relative_to(PACKAGE).parts
        room = room_of(f"same.{folder[0] if folder else path.stem}")
        is_folder = bool(folder) and name == "__init__.py"
        shown = f"{'/'.join(folder)}/" if is_folder else f"{'  ' if folder else ''}{name}"
        line = f"{shown:<25} {(ast.get_docstring(content) or '').split(chr(10))[0]}"
        rows.append((ORDER.index(room) if room else -1, folder, not is_folder, name, line))
    return "\n".join(row[-1] for row in sorted(rows))


def page(text: str) -> str:
    """Return `house.md` with the tree of files between its markers."""
    return re.sub(r"(?<=<!-- begin tree -->\n).*?(?=<!-- end -->)", f"```text\n{tree()}\n```\n", text, flags=re.DOTALL)


if __name__ == "__main__":
    if lines := wrong():
        raise SystemExit("\n".join(lines))
    PICTURE.write_text(draw(), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
