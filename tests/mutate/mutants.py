"""Single faults that can be put into a module: one node of its syntax tree becomes another."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_ARITHMETIC = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
_NAMES = {
    "min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum",
    "nanmedian": "nanmean", "median": "mean", "nanmin": "nanmax", "nanmax": "nanmin", "ceil": "floor", "floor": "ceil",
    "argmax": "argmin", "argmin": "argmax", "float64": "float32", "hypot": "maximum",
}  # fmt: skip
_GUARD = 1e-100
"""Numbers below it keep from a division by zero: a tenth more is the same guard."""


@dataclass(frozen=True)
class Mutant:
    """A fault: where it is, what it does, and the module that has it."""

    line: int
    before: str
    after: str
    source: str


def mutants(source: str) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Every node that is part of what a module does, with what may stand in its place."""
    yield from _within(ast.parse(source))


def mutated(source: str, number: int) -> Mutant:
    """The module with the fault of that number; all other text stays as it is."""
    tree = ast.parse(source)
    old, new = list(_within(tree))[number]
    before, line = ast.unparse(old), getattr(old, "lineno", 0)
    after = ast.unparse(new)
    span = _span(source, old)
    _exchange(tree, old, new)
    wanted = ast.dump(tree)
    for text in (after, f"({after})"):
        changed = (source.encode()[: span.start] + text.encode() + source.encode()[span.stop :]).decode()
        if _parsed(changed) == wanted:
            return Mutant(line, _short(before), _short(after), changed)
    return Mutant(line, _short(before), _short(after), ast.unparse(ast.fix_missing_locations(tree)))


def _exchange(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, new)
            elif isinstance(value, list):
                setattr(parent, name, [new if item is old else item for item in value])


def _parsed(source: str) -> str:
    try:
        return ast.dump(ast.parse(source))
    except SyntaxError:
        return ""


def _span(source: str, node: Any) -> range:
    """Bytes of a node."""
    begins = [0]
    for line in source.encode().splitlines(keepends=True):
        begins.append(begins[-1] + len(line))
    return range(begins[node.lineno - 1] + node.col_offset, begins[node.end_lineno - 1] + node.end_col_offset)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) < 90 else f"{line[:87]}..."


def _within(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    if isinstance(node, ast.If):
        yield node.test, ast.Constant(value=False)
    for new in _instead(node):
        yield node, new
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list", "type_params"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _says_nothing(child):
                yield from _within(child)


def _says_nothing(node: ast.AST) -> bool:
    """Texts, types and messages: a change of them is no fault of what is computed."""
    if isinstance(node, ast.Import | ast.ImportFrom | ast.JoinedStr | ast.Raise | ast.Assert):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, ast.keyword) and node.arg == "strict":  # of zip: an assertion as well
        return True
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return True
    return isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(base) for base in node.bases)


def _instead(node: ast.AST) -> Iterator[ast.AST]:
    new = copy.copy(node)  # its lists are shared with the other, and replaced where they differ
    if isinstance(new, ast.Compare):
        new.ops = [_COMPARISONS[type(new.ops[0])](), *new.ops[1:]]
        yield new
    elif isinstance(new, ast.BinOp | ast.AugAssign) and type(new.op) in _ARITHMETIC:
        if not any(isinstance(part, ast.JoinedStr) or _is_text(part) for part in ast.walk(new)):
            new.op = _ARITHMETIC[type(new.op)]()
            yield new
    elif isinstance(new, ast.BoolOp):
        new.op = ast.And() if isinstance(new.op, ast.Or) else ast.Or()
        yield new
    elif isinstance(new, ast.UnaryOp) and isinstance(new.op, ast.Not | ast.USub):
        yield new.operand
    elif isinstance(new, ast.Constant) and isinstance(new.value, bool | int | float):
        if (value := _another(new.value)) != new.value:
            new.value = value
            yield new
    elif isinstance(new, ast.Attribute) and new.attr in _NAMES and isinstance(new.ctx, ast.Load):
        new.attr = _NAMES[new.attr]
        yield new
    elif isinstance(new, ast.Name) and new.id in _NAMES and isinstance(new.ctx, ast.Load):
        new.id = _NAMES[new.id]
        yield new
    elif isinstance(new, ast.Call) and new.keywords and new.keywords[-1].arg != "strict":
        new.keywords = new.keywords[:-1]
        yield new
    elif isinstance(new, ast.Expr) and isinstance(new.value, ast.Call):
        yield ast.Pass()
    elif isinstance(new, ast.IfExp):
        new.body, new.orelse = new.orelse, new.body
        yield new
    elif isinstance(new, ast.Continue | ast.Break):
        yield ast.Pass()


def _another(value: bool | float) -> bool | int | float:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int) or value == 0:
        return value + 1
    return value if value < _GUARD else value * 1.1


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
