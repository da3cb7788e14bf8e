"""Conditions that Python reads in another way than they are meant: `a < b & c < d` is `a < (b & c) < d`."""

from __future__ import annotations

import ast

from ._spans import line_here

#: How operators are written.
_BITS: dict[type[ast.operator], str] = {ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}
_SIGNS: dict[type[ast.cmpop], str] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}


def with_parentheses() -> str | None:
    """The condition of the user's line with the parentheses that it wants; None where it has none, or is part of a longer statement."""
    line = line_here().removesuffix(",")
    for text in (line, f"{line} pass", f"{line.removeprefix('el')} pass"):
        try:
            nodes = list(ast.walk(ast.parse(text)))
        except SyntaxError:
            continue
        return next((said for node in nodes if isinstance(node, ast.Compare) and (said := _meant(node, text))), None)
    return None


def _meant(node: ast.Compare, line: str) -> str | None:
    """A chain of comparisons as several, joined by the operators that stand in it; None for one comparison without any."""
    if not all(type(op) in _SIGNS for op in node.ops):
        return None
    words = _split(node.left, line)
    for op, right in zip(node.ops, node.comparators, strict=True):
        words += [_SIGNS[type(op)], *_split(right, line)]
    text, group = "", list[str]()
    for word in words:
        if word in _BITS.values():
            text, group = f"{text}{_each(group)} {word} ", []
        else:
            group.append(word)
    return text + _each(group) if text or len(node.ops) > 1 else None


def _each(group: list[str]) -> str:
    """`a < b < c` as comparisons of two."""
    return " & ".join(f"({' '.join(group[i : i + 3])})" for i in range(0, len(group) - 2, 2)) or " ".join(group)


def _split(node: ast.expr, line: str) -> list[str]:
    """The operands of bit operators, and these between them; what stands in parentheses is whole."""
    if not isinstance(node, ast.BinOp) or type(node.op) not in _BITS:
        return [f"({ast.unparse(node)})" if isinstance(node, (ast.Compare, ast.BoolOp, ast.IfExp)) else ast.unparse(node)]
    # Columns are counted in bytes.
    around = line.encode()
    if around[: node.col_offset].rstrip().endswith(b"(") and around[node.end_col_offset :].lstrip().startswith(b")"):
        return [f"({ast.unparse(node)})"]
    return [*_split(node.left, line), _BITS[type(node.op)], *_split(node.right, line)]
