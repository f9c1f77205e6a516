"""`polyplane info`: the contents of a model file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polyplane._plain import plain
from polyplane.cli.common import AsJson, PrintedTable, command, present
from polyplane.cli.data import ModelPath, learner_of, name_of
from polyplane.cli.report import facts_table, member_weights, members_shown
from polyplane.model import Model

if TYPE_CHECKING:
    from polyplane.files import ModelFile

#: Maximum number of feature names in the text output; --json lists all of them.
MOST_NAMES = 100


@command("polyplane info model.safetensors", "polyplane info model.safetensors --json | jq .parameters")
def info(model: ModelPath, as_json: AsJson = False) -> None:
    """Show the contents of a model file: learner, parameters, classes, planes, features, size and versions.

    The whole file is read and validated, as in all commands that load a model.
    """
    from polyplane.loading import read_model

    content = describe(model, read_model(model))
    present(content, _tables(content), as_json)


def describe(path: str, found: ModelFile) -> dict[str, Any]:
    """Describe the contents of a model file."""
    estimator, steps = learner_of(found.model), [type(step).__name__ for _, step in getattr(found.model, "steps", ())]
    model = Model.of(found.model)
    inputs: Any = model.inputs
    planes = model.planes
    counts = (planes.indptr[1:] - planes.indptr[:-1]).reshape(planes.n_members, -1).sum(axis=0).tolist()
    content: dict[str, Any] = {
        "file": path,
        "size": found.size,
        "format": found.format,
        "polyplane": found.version,
        "learner": name_of(estimator),
        "estimator": type(estimator).__name__,
        "pipeline": ", ".join(steps) or None,
        "features": inputs.n_encoded,
        "feature_names": list(inputs.names) if inputs.is_named and not inputs.is_table else None,
        "dtype": planes.coef.dtype.name,
        "members": planes.n_members,
        "member_weights": member_weights(planes),
        "planes": planes.n_planes,
        "classes": [{"label": label, "planes": n} for label, n in zip(model.classes.tolist(), counts, strict=True)],
        "steps": getattr(estimator, "n_iter_", None),
        "can_go_on_training": getattr(estimator, "_is_resumable", False),
        "temperature": model.temperature,
    }
    if inputs.is_table:
        content["preparation"] = "; ".join(dict.fromkeys(getattr(estimator, "preparation_", ()))) or None
        content["columns"] = [
            {"column": column.name, "kind": column.kind, "gaps": column.has_gaps, "features": len(column.features)}
            for column in inputs.columns
        ]
        content |= {"dropped": dict(inputs.dropped), "notes": dict(inputs.notes)}
    content["parameters"] = {} if estimator is model else plain(estimator.get_params(deep=False))
    content["metadata"] = {name: _short(value) for name, value in found.metadata.items()}
    return content


def _short(value: Any) -> Any:
    """Return a metadata value; an array is described by its dtype and shape."""
    if hasattr(value, "shape") and value.shape:
        return f"{value.dtype.name} array of {' x '.join(str(size) for size in value.shape)}"
    return plain(value)


def _tables(content: dict[str, Any]) -> list[PrintedTable]:
    facts, names = dict(content), content["feature_names"]
    facts |= {"feature_names": names is not None, "classes": len(content["classes"])}
    facts |= {"size": f"{content['size']:,} bytes", "members": members_shown(content["member_weights"])}
    if "columns" in content:
        facts |= {"columns": len(content["columns"]), "feature_names": None}
    tables = [
        facts_table(f"Model {content['file']}", facts),
        PrintedTable("Classes", ("label", "planes"), [tuple(entry.values()) for entry in content["classes"]]),
    ]
    if content["parameters"]:
        tables.append(PrintedTable("Parameters", ("parameter", "value"), list(content["parameters"].items())))
    if "columns" in content:
        entries = [entry | {"gaps": "yes" if entry["gaps"] else "no"} for entry in content["columns"][:MOST_NAMES]]
        rows = [tuple(entry.values()) for entry in entries]
        tables.append(PrintedTable("Columns", ("column", "kind", "missing values", "encoded features"), rows))
    if content.get("dropped"):
        tables.append(PrintedTable("Dropped", ("column", "reason"), list(content["dropped"].items())))
    if content.get("notes"):
        tables.append(PrintedTable("Notes", ("column", "note"), list(content["notes"].items())))
    if content["metadata"]:
        tables.append(PrintedTable("Metadata", ("name", "value"), list(content["metadata"].items())))
    if names is not None and len(names) <= MOST_NAMES:
        tables.append(PrintedTable("Features", ("number", "name"), [(j, name) for j, name in enumerate(names)]))
    return tables
