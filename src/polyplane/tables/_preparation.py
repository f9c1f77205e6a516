"""`polyplane.tables.preparation`, under its former name until its last users have moved."""

from polyplane.tables.preparation import CLIP, LARGEST, RECIPES, Preparation

__all__ = ["CLIP", "LARGEST", "RECIPES", "Preparation"]
