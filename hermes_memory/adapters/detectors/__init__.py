"""Secrets and strong identifiers, found by shape, label and checksum (SPEC §4.1.3). Port: ``Detector``."""

from hermes_memory.adapters.detectors.detector import SecretDetector
from hermes_memory.adapters.detectors.shapes import Shape, load_shapes

__all__ = ["SecretDetector", "Shape", "load_shapes"]
