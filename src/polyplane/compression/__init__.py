"""Compressed models: planes within a memory budget, as tables of one-byte weights."""

from polyplane.compression.classifier import CompressedClassifier, compress

__all__ = ["CompressedClassifier", "compress"]
