"""`polyplane info`: the contents of a model file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polyplane._plain import plain
from polyplane.cli._common import AsJson, Table, command, present
from polyplane.cli._data import ModelFile
from polyplane.cli._learners import TABLE, learner_of, name_of

if TYPE_CHECKING:
    from polyplane.files import ModelFile as Contents

#: Maximum number of feature names in the text output; --json lists all of them.
MOST_NAMES = 100


@command("polyplane info model.safetensors", "polyplane info model.safetensors --json | jq .parameters")
def info(model: ModelFile, as_json: AsJson = False) -> None:
    """Show the contents of a model file: learner, parameters, classes, planes, features, size and versions.

    The whole file is read and validated, as in all commands that load a model.
    """
    from polyplane.loading import read_model

    content = describe(model, read_model(model))
    present(content, _tables(content), as_json)


def describe(path: str, found: Contents) -> dict[str, Any]:
    """Describe the contents of a model file."""
    model, steps = learner_of(found.model), [type(step).__name__ for _, step in getattr(found.model, "steps", ())]
    return {
        "file": path,
        "size": found.size,
        "format": found.format,
        "polyplane": found.version,
        "learner": name_of(model),
        "estimator": type(model).__name__,
        **({"pipeline": ", ".join(steps)} if steps else {}),
        **(_about_table(model) if name_of(model) == TABLE else _about_planes(model)),
        "parameters": plain(model.get_params(deep=False)),
        "metadata": {name: _short(value) for name, value in found.metadata.items()},
    }


def _about_planes(model: Any) -> dict[str, Any]:
    planes, names = model.planes_, getattr(model, "feature_names_in_", None)
    members = getattr(planes, "members", [planes])
    return {
        "features": planes.n_features,
        "feature_names": None if names is None else [str(name) for name in names],
        "dtype": planes.coef.dtype.name,
        **({"machines": len(members)} if len(members) > 1 else {}),
        "planes": planes.n_planes,
        "classes": _classes(model, members),
        "steps": getattr(model, "n_iter_", None),
        "can_go_on_training": hasattr(model, "_state"),
    }


def _about_table(model: Any) -> dict[str, Any]:
    encoding, members = model.table_model_.encoding, [member.planes for member in model.members_]
    return {
        "features": len(encoding.features),
        "feature_names": None,
        "dtype": members[0].coef.dtype.name,
        "machines": len(members),
        "planes": sum(member.n_planes for member in members),
        "classes": _classes(model, members),
        "steps": model.n_iter_,
        "can_go_on_training": False,
        "preparation": "; ".join(dict.fromkeys(model.preparation_)),
        "temperature": model.temperature_,
        "columns": [
            {"column": column.name, "kind": column.kind, "gaps": column.has_gaps, "features": len(column.features)}
            for column in encoding.columns
        ],
        "dropped": dict(encoding.dropped),
    }


def _classes(model: Any, members: list[Any]) -> list[dict[str, Any]]:
    counts = sum(member.indptr[1:] - member.indptr[:-1] for member in members).tolist()
    return [{"label": label, "planes": count} for label, count in zip(model.classes_.tolist(), counts, strict=True)]


def _short(value: Any) -> Any:
    """Return a metadata value; an array is described by its dtype and shape."""
    if hasattr(value, "shape") and value.shape:
        return f"{value.dtype.name} array of {' x '.join(str(size) for size in value.shape)}"
    return plain(value)


def _tables(content: dict[str, Any]) -> list[Table]:
    shown = {"machines": "members"}  # the JSON key has the former name
    facts = {shown.get(name, name): value for name, value in content.items() if not isinstance(value, list | dict)}
    names = content["feature_names"]
    facts |= {"feature_names": "no" if names is None else "yes", "classes": len(content["classes"])}
    if "columns" in content:
        facts |= {"columns": len(content["columns"])}
        del facts["feature_names"]
    tables = [
        Table(f"Model {content['file']}", (), list(facts.items())),
        Table("Classes", ("label", "planes"), [tuple(entry.values()) for entry in content["classes"]]),
        Table("Parameters", ("parameter", "value"), list(content["parameters"].items())),
    ]
    if "columns" in content:
        rows = [tuple(entry.values()) for entry in content["columns"][:MOST_NAMES]]
        tables.append(Table("Columns", tuple(content["columns"][0]), rows))
    if content.get("dropped"):
        tables.append(Table("Dropped", ("column", "reason"), list(content["dropped"].items())))
    if content["metadata"]:
        tables.append(Table("Metadata", ("name", "value"), list(content["metadata"].items())))
    if names is not None and len(names) <= MOST_NAMES:
        tables.append(Table("Features", ("number", "name"), [(j, name) for j, name in enumerate(names)]))
    return tables
