"""A kit for testing window queries, public: the same script runs on every executor."""

from windrow.algebra.values import Change
from windrow.testing.harness import Harness

__all__ = ["Change", "Harness"]
