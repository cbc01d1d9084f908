"""Reading what version 0.1 wrote: folders of runs (format 0) and of saved estimators (format 1)."""

from pathlib import Path
from typing import Any

from torch import Tensor

from same.errors import InputError
from same.training.loop import Record

FIRST_FORMATS = (0, 1)


def migrate_config(settings: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the settings of version 0.1 as those of this version."""
    settings = dict(settings)
    if settings.pop("learn_inner_lr", False):
        raise InputError(f"{folder}: was trained with learn_inner_lr, which no longer exists; train it again")
    if settings.get("adapts") == "heads":
        settings["adapts"] = "head"
    if settings.get("stop_on") == "score":
        settings["stop_on"] = "linear"  # The closest rule that is left; it has no bearing on a trained model.
    return settings


def migrate(
    about: dict[str, Any], tensors: dict[str, Tensor], history: list[Record], result: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Tensor], dict[str, Any]]:
    """Return settings, weights and summary of a folder of version 0.1 as this version writes them."""
    if about["format"] == 0:  # It has neither adapted heads nor classes: only its encoder can be used.
        tensors = {n if n.startswith("inputs.") else f"model.{n}": value for n, value in tensors.items()}
        tensors = {n: value for n, value in tensors.items() if n.startswith(("inputs.", "model.encoder."))}
        graphs = {"attributes": len(tensors["inputs.mean"]), "labels": {}}
        return {"graphs": graphs, "custom": {}, "options": {"encoder_only": True}}, tensors, result
    graphs = {"attributes": about["graphs"]["attributes"], "labels": _labels(about["graphs"], about["classes"])}
    custom = {name: about["own"].get(name) for name in ("encoder", "tasks")}
    best = min(history, key=lambda record: record["objective"])
    return (
        {"graphs": graphs, "custom": custom, "options": {**about["further"], "fitted": True}},
        {name: value for name, value in tensors.items() if not name.startswith("model.weighting.")},
        {"best": best, "versions": {"same": about["same"]}},
    )


def _labels(graphs: dict[str, Any], given: list[Any] | None) -> dict[str, Any]:
    """Label columns; classes were predicted as the values given to `fit`, or else as codes."""
    labels = {}
    for level, column in (("graph", "y"), ("node", "node_y")):
        classes, shape = graphs[f"{level}_classes"], graphs[f"{level}_targets"]
        if classes is not None:
            classes = given if level == "graph" and given is not None else list(range(len(classes)))
        if classes is not None or shape is not None:
            labels[column] = {"level": level, "classes": classes, "shape": shape or []}
    return labels
