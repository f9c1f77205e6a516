"""`polyplane.tables.preparation`, under its former name until its last users have moved."""

from polyplane.tables.preparation import CLIP, RECIPES, Preparation
from polyplane.tables.preparation import LARGEST_FEATURE as LARGEST

__all__ = ["CLIP", "LARGEST", "RECIPES", "Preparation"]
