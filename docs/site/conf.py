"""The site's settings for Sphinx; build.py runs it on pages that stand at their places."""

from __future__ import annotations

import json
from importlib.metadata import version as version_of
from typing import TYPE_CHECKING, ClassVar

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from pygments.lexer import RegexLexer
from pygments.lexers import JsonLexer
from pygments.token import Comment, Keyword, Name, Number, String, Text, _TokenType

from uop.conformance.reference.docs import grammar
from uop.conformance.reference.find import anchor, slug

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator

project = "uop"
version = release = version_of("uop")
html_title = "uop"
extensions = ["myst_parser"]
exclude_patterns = ["README.md"]
nitpicky = True
highlight_language = "text"

myst_heading_anchors = 4
myst_heading_slug_func = "uop.conformance.reference.find.slug"
myst_fence_as_directive = ["math"]

html_theme = "furo"
html_math_renderer = "mathml"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["versions.js"]
templates_path = ["templates"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "versions.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_copy_source = False
html_use_index = False
html_show_sphinx = False
html_show_copyright = False

TOKENS = {
    "comment": Comment,
    "constant.numeric": Number,
    "constant": Keyword.Constant,
    "keyword": Keyword,
    "storage": Keyword.Type,
    "string": String,
    "support": Name.Function,
    "variable.parameter": Name.Attribute,
    "variable": Name.Variable,
}


def token_of(name: str) -> _TokenType:
    """How Pygments calls what an editor knows by a name: the first entry that begins it."""
    return next(token for start, token in TOKENS.items() if name.startswith(start))


class UOpLexer(RegexLexer):
    """Highlights programs by the grammar that editors use."""

    name = "uop"
    tokens: ClassVar = {
        "root": [
            *((p["match"], token_of(p["name"])) for p in json.loads(grammar())["patterns"]),
            (r"\s+|[\w.]+|.", Text),
        ]
    }


def name_sections(app: Sphinx, doctree: nodes.document) -> None:
    """Give each section the anchor that `uop explain` prints, and that of GitHub."""
    for section in doctree.findall(nodes.section):
        heading = section.next_node(nodes.title).astext()
        names = [anchor(app.env.docname, heading), slug(heading), *section["ids"]]
        section["ids"] = list(dict.fromkeys(names))


def write_math(writer: HTML5Translator, node: nodes.math | nodes.math_block) -> None:
    """Write a formula as MathML, which browsers draw without a script."""
    writer.body.append(tex2mathml(node.astext(), as_block=isinstance(node, nodes.math_block)))
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    app.add_lexer("uop", UOpLexer)
    app.add_lexer("jsonc", JsonLexer)
    app.add_html_math_renderer("mathml", (write_math, None), (write_math, None))
    # Before Sphinx notes the anchors of the table of contents.
    app.connect("doctree-read", name_sections, priority=400)
