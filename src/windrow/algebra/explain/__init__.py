"""EXPLAIN: a plan with its update patterns, its state, and what to expect of its answers.

`gather` collects the facts, `render` lays them out as text, JSON or a Graphviz picture.
"""

from collections.abc import Callable

from windrow.algebra.explain.facts import Alternative, ExplainStep, Explanation, gather
from windrow.algebra.explain.formats import as_dict, as_dot, as_json, as_text

__all__ = ["FORMATS", "Alternative", "ExplainStep", "Explanation", "as_dict", "gather", "render"]

#: every form, by its name on the command line
FORMATS: dict[str, Callable[[Explanation], str]] = {"text": as_text, "json": as_json, "dot": as_dot}


def render(explanation: Explanation, form: str = "text") -> str:
    """The explanation in one of `FORMATS`."""
    return FORMATS[form](explanation)
