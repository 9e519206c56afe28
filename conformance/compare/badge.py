"""Draws the badge of a backend: the verdict of the suite as a small SVG."""

from __future__ import annotations

from html import escape

from uop.conformance.compare.columns import Column

LABEL = "uop conformance"
COLORS = {"good": "#17693a", "bad": "#b3261e", "open": "#7a5200", "absent": "#59616b"}
CHARACTER, MARGIN = 6.5, 16


def badge(column: Column) -> str:
    """The badge as a document of its own, which a page may contain too."""
    left, right = _width(LABEL), _width(column.verdict)
    label = escape(f"{LABEL}: {column.verdict}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f'aria-label="{label}"><title>{label}</title>'
        f'<rect width="{left + right}" height="20" rx="4" fill="#333a43"/>'
        f'<path d="M{left} 0h{right - 4}a4 4 0 0 1 4 4v12a4 4 0 0 1-4 4h{4 - right}z" '
        f'fill="{COLORS[column.kind]}"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f"{_text(LABEL, 0)}{_text(column.verdict, left)}</g></svg>\n"
    )


def _width(text: str) -> int:
    return round(CHARACTER * len(text)) + MARGIN


def _text(text: str, x: int) -> str:
    length = _width(text) - MARGIN
    return f'<text x="{x + MARGIN // 2}" y="14" textLength="{length}">{escape(text)}</text>'
