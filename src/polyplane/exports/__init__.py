"""Export of models to other languages: C, JavaScript, SQL, ONNX and JSON."""

from polyplane.exports.c import to_c
from polyplane.exports.javascript import to_javascript
from polyplane.exports.json_text import to_json
from polyplane.exports.sql import to_sql

__all__ = ["to_c", "to_javascript", "to_json", "to_sql"]
