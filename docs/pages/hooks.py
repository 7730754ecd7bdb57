"""The hook reference, from the docstrings of the hookspecs."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import NamedTuple

import griffe
import msgspec
from toolkeel import hookspecs

from .markdown import cell, inline, line
from .shipped import shipped

_FAMILY = re.compile(r"^# (.+?) -{10,}$")
_SINCE = re.compile(r"^Since (\d+)\.$", re.MULTILINE)


class Hook(NamedTuple):
    """One hookspec as its source says it."""

    family: str
    name: str
    verb: str
    exclusive: str
    asynchronous: bool
    signature: str
    docstring: str

    @property
    def colour(self) -> str:
        """What an implementation must be."""
        return "async" if self.asynchronous else "sync"

    @property
    def summary(self) -> str:
        """The first sentence of the docstring."""
        return inline(self.docstring).split(". ")[0].split("\n")[0].rstrip(".")


def hooks(module: ModuleType) -> list[Hook]:
    """The hookspecs of a module in the order of its source; a comment with a rule begins a family."""
    source = inspect.getsource(module)
    lines = enumerate(source.splitlines(), 1)
    families = [(number, title[1]) for number, line in lines if (title := _FAMILY.match(line))]
    found: list[Hook] = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            mark = next((mark for mark in node.decorator_list if _is_mark(mark)), None)
            if isinstance(mark, ast.Call):
                family = next((name for number, name in reversed(families) if number < node.lineno), "")
                options = {word.arg: ast.literal_eval(word.value) for word in mark.keywords}
                found.append(
                    Hook(
                        family=family,
                        name=node.name,
                        verb=ast.literal_eval(mark.args[0]),
                        exclusive=options.get("exclusive", ""),
                        asynchronous=isinstance(node, ast.AsyncFunctionDef),
                        signature=_signature(node),
                        docstring=ast.get_docstring(node) or "",
                    )
                )
    return found


def _is_mark(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "hookspec"


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """The line ``def …`` as written, one parameter a line where it is long."""
    word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    answer = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    line = f"{word} {node.name}({ast.unparse(node.args)}){answer}"
    if len(line) <= 88:
        return line
    parameters = "".join(f"    {ast.unparse(argument)},\n" for argument in node.args.args)
    return f"{word} {node.name}(\n{parameters}){answer}"


def page() -> Iterator[str]:
    """Every hook of the kernel and of the plugins that ship with it."""
    kernel = hooks(hookspecs)
    yield "# Hooks\n"
    yield (
        "Every hook that a plugin may implement, as its docstring says it. "
        "[Writing hooks](../write/hooks.md) tells what the verbs mean and how order and failure work.\n"
    )
    yield f"This is version {hookspecs.API_VERSION} of the contract.\n"
    yield "| hook | verb | colour | for |\n|---|---|---|---|"
    for hook in kernel:
        yield f"| [`{hook.name}`](#{hook.name}) | {hook.verb} | {hook.colour} | {cell(hook.summary)} |"
    for family in dict.fromkeys(hook.family for hook in kernel):
        yield f"\n## {family}\n"
        for hook in kernel:
            if hook.family == family:
                yield from _hook(hook)
    for plugin in shipped():
        if plugin.hookspecs is not None:
            yield f"\n## Declared by the plugin `{plugin.name}`\n"
            for hook in hooks(plugin.hookspecs):
                yield from _hook(hook)
            yield from _structs(plugin.hookspecs)


def _structs(module: ModuleType) -> Iterator[str]:
    """What the hooks of a plugin give and take that the kernel does not have."""
    for name, struct in inspect.getmembers(module, inspect.isclass):
        if struct.__module__ == module.__name__ and issubclass(struct, msgspec.Struct):
            fields = ", ".join(f"`{field}`" for field in struct.__struct_fields__)
            yield f"### {name}\n"
            yield f"Imported from `{module.__name__.partition('.')[0]}`; fields: {fields}.\n"
            yield f"{inline(inspect.getdoc(struct) or '')}\n"


def _hook(hook: Hook) -> Iterator[str]:
    yield f"### {hook.name}\n"
    exclusive = f" · exclusive: the setting `{hook.exclusive}` names the one plugin" if hook.exclusive else ""
    yield f"**{hook.verb}** · {hook.colour}{exclusive}\n"
    yield f"```python\n{hook.signature}\n```\n"
    docstring = griffe.Docstring(hook.docstring)
    for section in docstring.parse("google", warnings=False, returns_named_value=False, returns_multiple_items=False):
        if section.kind is griffe.DocstringSectionKind.text:
            since = _SINCE.sub(r"*Since version \1 of the contract.*", inline(section.value))
            yield f"{since}\n"
        elif section.kind is griffe.DocstringSectionKind.parameters:
            for parameter in section.value:
                yield f"- `{parameter.name}`: {line(parameter.description)}"
            yield ""
        elif section.kind is griffe.DocstringSectionKind.returns:
            (returned,) = section.value  # what stands before a colon was taken for its type
            words = [str(returned.annotation), returned.description] if returned.annotation else [returned.description]
            yield f"**Returns** {line(': '.join(words))}\n"
        else:
            raise ValueError(f"{hook.name}: a docstring section of kind {section.kind.value} has no place here")
