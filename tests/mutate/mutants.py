"""Single faults that can be put into a module: one node of its syntax tree becomes another."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Mutant:
    """A fault: where it is, what it does, and the module that has it."""

    line: int
    change: str
    source: str


def mutants(source: str) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Every node that is part of what a module does, with what may stand in its place."""
    yield from _within(ast.parse(source))


def mutated(source: str, number: int) -> Mutant:
    """The module with the fault of that number."""
    tree = ast.parse(source)
    old, new = list(_within(tree))[number]
    before, line = ast.unparse(old), getattr(old, "lineno", 0)
    after = ast.unparse(new)
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, new)
            elif isinstance(value, list):
                setattr(parent, name, [new if item is old else item for item in value])
    return Mutant(line, f"{_short(before)} -> {_short(after)}", ast.unparse(ast.fix_missing_locations(tree)))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) < 90 else f"{line[:87]}..."


def _within(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
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
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return True
    return isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(base) for base in node.bases)


def _instead(node: ast.AST) -> Iterator[ast.AST]:
    new = copy.deepcopy(node)
    if isinstance(new, ast.Compare):
        new.ops[0] = _COMPARISONS[type(new.ops[0])]()
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
        value = new.value
        new.value = not value if isinstance(value, bool) else value + 1 if isinstance(value, int) else value * 1.1
        yield new
    elif isinstance(new, ast.Attribute) and new.attr in _NAMES and isinstance(new.ctx, ast.Load):
        new.attr = _NAMES[new.attr]
        yield new
    elif isinstance(new, ast.Name) and new.id in _NAMES and isinstance(new.ctx, ast.Load):
        new.id = _NAMES[new.id]
        yield new
    elif isinstance(new, ast.Call) and new.keywords:
        del new.keywords[-1]
        yield new
    elif isinstance(new, ast.Expr) and isinstance(new.value, ast.Call):
        yield ast.Pass()
    elif isinstance(new, ast.IfExp):
        new.body, new.orelse = new.orelse, new.body
        yield new
    elif isinstance(new, ast.If):
        new.test = ast.Constant(value=False)
        yield new
    elif isinstance(new, ast.Continue | ast.Break):
        yield ast.Pass()


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
