"""Reads which packages a script imports."""

from __future__ import annotations

import ast


def imported(text: str) -> set[str]:
    """The packages that a script imports."""
    return {
        name.split(".")[0]
        for node in ast.walk(ast.parse(text))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [str(node.module)]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
