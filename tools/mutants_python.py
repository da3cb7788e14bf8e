"""Changes of Python code, found in its syntax tree."""

from __future__ import annotations

import ast
import hashlib

from mutants_site import Site, numbered
from planting import ROOT

COMPARE = {
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
}  # fmt: skip
BINARY = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "+"),
    ast.Div: ("/", "*"),
}
SWAPPED = {"min": "max", "max": "min", "any": "all", "all": "any"}
DROPPED = ("reversed", "sorted", "set", "abs")
#: Functions that only show things.
SHOWN = ("__repr__", "__str__", "__dir__", "_describe", "describe")


class Finder(ast.NodeVisitor):
    def __init__(self, file: str, text: str) -> None:
        self.file, self.text, self.found = file, text, []
        lines = text.splitlines(keepends=True)
        self.starts = [0]
        for line in lines:
            self.starts.append(self.starts[-1] + len(line))
        self.lines = lines
        self.owner = 1

    def at(self, line: int, column: int) -> int:
        """Characters before a place; the tree counts bytes."""
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def ends(self, node: ast.AST) -> tuple[int, int]:
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)

    def source(self, node: ast.AST) -> str:
        first, last = self.ends(node)
        return self.text[first:last]

    def put(self, kind: str, node: ast.AST, new: str) -> None:
        first, last = self.ends(node)
        self.found.append(Site(self.file, first, node.lineno, kind, self.text[first:last], new, owner=self.owner))

    def between(self, kind: str, whole: ast.AST, left: ast.AST, right: ast.AST, old: str, new: str) -> None:
        """The operator between two operands, in the text of the whole."""
        first, _ = self.ends(whole)
        lo, hi = self.ends(left)[1], self.ends(right)[0]
        gap = self.text[lo:hi]
        if gap.count(old) == 1:
            self.put(kind, whole, self.text[first:lo] + gap.replace(old, new) + self.text[hi : self.ends(whole)[1]])

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name in SHOWN:
            return
        outer = self.owner
        self.owner = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        for default in [*node.args.defaults, *(d for d in node.args.kw_defaults if d)]:
            self.visit(default)
        self.body(node.body)
        self.owner = outer

    def visit_Lambda(self, node: ast.Lambda) -> None:
        outer, self.owner = self.owner, node.lineno
        self.visit(node.body)
        self.owner = outer

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.body(node.body)

    def visit_Module(self, node: ast.Module) -> None:
        self.body(node.body)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)

    def body(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                continue
            if isinstance(statement, (ast.Expr, ast.AugAssign)) and self.owner > 1:
                self.put("statement", statement, "pass")
            self.visit(statement)

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" in ast.dump(node.test):
            return
        self.put("branches" if node.orelse else "condition", node.test, f"not ({self.source(node.test)})")
        if isinstance(node.body[-1], (ast.Return, ast.Continue, ast.Raise)) and not node.orelse:
            self.put("early return", node.test, "False")
        self.visit(node.test)
        self.body(node.body)
        self.body(node.orelse)

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        self.body(node.body)

    def visit_For(self, node: ast.For) -> None:
        self.visit(node.iter)
        self.body(node.body)

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            self.visit(item.context_expr)
        self.body(node.body)

    def visit_Try(self, node: ast.Try) -> None:
        for part in (node.body, *(h.body for h in node.handlers), node.orelse, node.finalbody):
            self.body(part)

    def visit_Raise(self, node: ast.Raise) -> None:
        """What errors say is another matter."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Text."""

    def visit_IfExp(self, node: ast.IfExp) -> None:
        a, test, b = (self.source(part) for part in (node.body, node.test, node.orelse))
        self.put("branches", node, f"({b}) if {test} else ({a})")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        left = node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            old, new = COMPARE[type(op)]
            self.between("comparison", node, left, right, old, new)
            left = right
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if type(node.op) in BINARY and "|" not in self.source(node):
            self.between("arithmetic", node, node.left, node.right, *BINARY[type(node.op)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for i, value in enumerate(node.values):
            parts = [self.source(v) for j, v in enumerate(node.values) if j != i]
            self.put("operand dropped", value, "True" if old == "and" else "False") if parts else None
        parts = [f"({self.source(v)})" for v in node.values]
        self.put("logic", node, f"({f' {new} '.join(parts)})")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self.put("logic", node, f"bool({self.source(node.operand)})")
        if isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant):
            self.put("arithmetic", node, f"({self.source(node.operand)})")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self.put("constant", node, str(not node.value))
        elif isinstance(node.value, (int, float)):
            up = hashlib.sha256(f"{self.file}{self.source(node)}{node.lineno % 7}".encode()).digest()[0] % 2 or node.value == 0
            self.put("constant", node, f"({node.value + (1 if up else -1)})")

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in SWAPPED:
            self.put("min, max, any, all", node.func, SWAPPED[name])
        if name in DROPPED and len(node.args) == 1 and not node.keywords:
            self.put("call dropped", node, f"list({self.source(node.args[0])})" if name != "abs" else f"({self.source(node.args[0])})")
        for keyword in node.keywords:
            if keyword.arg and keyword.arg not in ("code", "labels", "notes", "helps", "strict", "span"):
                first, last = self.ends(keyword)
                rest = self.text[last:]
                if rest.startswith(", "):
                    self.found.append(
                        Site(self.file, first, keyword.lineno, "argument dropped", self.text[first : last + 2], "", owner=self.owner)
                    )
        skip = ("code", "labels", "notes", "helps", "strict")
        for child in [node.func, *node.args, *(k.value for k in node.keywords if k.arg not in skip)]:
            self.visit(child)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value:
            self.visit(node.value)


def sites(file: str, text: str) -> list[Site]:
    """All changes of a file; what does not parse is among them."""
    finder = Finder(file, text)
    finder.visit(ast.parse(text))
    return numbered([s for s in finder.found if len(s.old) < 300])


def parses(site: Site) -> bool:
    """True where the file is still Python, or is not."""
    if not site.file.endswith(".py"):
        return True
    text = (ROOT / site.file).read_text()
    try:
        ast.parse(text[: site.start] + site.new + text[site.start + len(site.old) :])
    except SyntaxError:
        return False
    return True
