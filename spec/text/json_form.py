"""The JSON form of programs. Every node has its derived properties, so a reader needs no rules.

    {"format": "uop/1", "nodes": [{"op": "PARAM", "src": [0], "arg": {"slot": 0, "dtype": "int8"},
      "dtype": "int8", "shape": [2], "device": null, "addrspace": null}, ...]}

Sources come first and the root last; `tag` is optional. Floats are strings as in the text, integers
outside 2^53 strings of digits. Unknown keys of a program and of its nodes are ignored; an unknown
field of an arg is an error, because it may change the meaning of the node.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from uop.spec.errors import InvalidError, MalformedError, UnsupportedError
from uop.spec.properties.symbolic import spelled
from uop.spec.text.codec import decode_arg, encode_arg, op_named
from uop.spec.text.literal import Literal
from uop.spec.text.program import Unbuilt
from uop.spec.uop import UOp

FORMAT = "uop/1"
Json = dict[str, Any]


def to_json(root: UOp) -> Json:
    """The program under a root as JSON data. Law: `from_json(to_json(u)) is u`."""
    return _program(root.toposort())


def unbuilt_to_json(node: Unbuilt) -> Json:
    """The JSON data of a program with an unchecked last node, which has no derived properties."""
    return _program(dict.fromkeys(u for root in node.src for u in root.toposort()), node)


def _program(order: Iterable[UOp], *last: Unbuilt) -> Json:
    number = {u: k for k, u in enumerate(order)}
    nodes = [_node(u, number) | _derived(u) for u in number]
    return {"format": FORMAT, "nodes": [*nodes, *(_node(u, number) for u in last)]}


def from_json(data: object) -> UOp:
    """The root of a program; MalformedError for other data, InvalidError for an invalid node."""
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        raise MalformedError(f'expected an object with "format": "{FORMAT}"')
    described = data.get("nodes")
    if not isinstance(described, list) or not described:
        raise MalformedError("nodes: expected a list of nodes, the root last")
    nodes: list[UOp] = []
    for position, node in enumerate(described):
        place = f"nodes[{position}]"
        try:
            nodes.append(_read(node, nodes))
        except MalformedError as error:
            raise MalformedError(f"{place}: {error.message}") from None
        except InvalidError as error:
            raise error.at(place) from None
        except UnsupportedError as error:
            raise UnsupportedError(f"{place}: {error}") from None
    return nodes[-1]


def dumps(root: UOp) -> str:
    """The program under a root as JSON text, on one line."""
    return json.dumps(to_json(root), separators=(",", ":"))


def loads(text: str, path: str = "") -> UOp:
    """The root of a program in JSON text; the errors of `from_json`."""
    try:
        data = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise MalformedError(error.msg, error.lineno, error.colno, path) from None
    except (ValueError, RecursionError) as error:
        raise MalformedError(f"no JSON: {error}", 1, 1, path) from None
    return from_json(data)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number; floats are strings")


def _node(u: UOp | Unbuilt, number: Mapping[UOp, int]) -> Json:
    fields = encode_arg(u.arg)
    node: Json = {
        "op": u.op.name,
        "src": [number[s] for s in u.src],
        "arg": None if fields is None else {name: _to_json(v) for name, v in fields.items()},
    }
    return node if u.tag is None else node | {"tag": u.tag}


def _derived(u: UOp) -> Json:
    device = list(u.device) if isinstance(u.device, tuple) else u.device
    addrspace = None if u.addrspace is None else u.addrspace.name
    shape = [_to_json(spelled(size)) for size in u.shape]
    return {"dtype": u.dtype.name, "shape": shape, "device": device, "addrspace": addrspace}


def _to_json(literal: Literal) -> Any:
    if isinstance(literal, int) and abs(literal) > 1 << 53:
        return str(literal)
    if isinstance(literal, tuple):
        return [_to_json(item) for item in literal]
    return literal


def _from_json(value: object) -> Literal:
    """The literal of an arg field: a leaf or a list of leaves; deeper lists are refused."""
    if isinstance(value, list):
        return tuple(_leaf(item) for item in value)
    return _leaf(value)


def _leaf(value: object) -> Literal:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise MalformedError(f"expected a value, found {type(value).__name__}")


def _read(node: object, nodes: list[UOp]) -> UOp:
    if not isinstance(node, Mapping):
        raise MalformedError("expected an object")
    op, src, arg, tag = node.get("op"), node.get("src", []), node.get("arg"), node.get("tag")
    if not isinstance(op, str):
        raise MalformedError("op: expected the name of an op")
    if not isinstance(src, list):
        raise MalformedError("src: expected a list of positions")
    if not (tag is None or isinstance(tag, str)):
        raise MalformedError("tag: expected a string or null")
    if not (arg is None or isinstance(arg, Mapping)):
        raise MalformedError("arg: expected an object or null")
    declaration = op_named(op)
    fields = None if arg is None else {str(name): _from_json(v) for name, v in arg.items()}
    operands = [_source(position, nodes) for position in src]
    u = UOp(declaration.op, *operands, arg=decode_arg(declaration, fields), tag=tag)
    for key, expected in _derived(u).items():
        if key in node and node[key] != expected:
            raise MalformedError(f"{key}: expected {expected}, found {node[key]}")
    return u


def _source(position: object, nodes: list[UOp]) -> UOp:
    if isinstance(position, int) and not isinstance(position, bool) and 0 <= position < len(nodes):
        return nodes[position]
    raise MalformedError(f"src: expected the position of a node before this one, found {position}")
