"""Jupyter notebooks: prose as it is, code in its language, outputs that are text."""

from typing import Any

from commonplace.adapters.exports.parts import Found, clean
from commonplace.model import Saved
from commonplace.text.front_matter import heading

_LONGEST_OUTPUT = 2_000  # characters


def read(loaded: Any, name: str) -> Found:
    match loaded:
        case {"cells": list(cells), "nbformat": int()}:
            about = loaded.get("metadata")
        case _:
            return
    parts = [part for cell in cells for part in _cell(cell, _language(about))]
    first = next((title for part in parts if (title := heading(part.partition("\n")[0]))), "")
    stem = name.rpartition(".")[0] or name
    if not parts:
        yield Saved(stem, lost="The notebook is empty.")
        return
    yield Saved(first or stem, text="\n\n".join(parts))


def _language(about: Any) -> str:
    match about:
        case {"language_info": {"name": str(name)}} | {"kernelspec": {"language": str(name)}}:
            return name if name.isalnum() else ""
    return ""


def _cell(cell: Any, language: str) -> list[str]:
    if not isinstance(cell, dict):
        return []
    source = _joined(cell.get("source")).strip("\n")
    if cell.get("cell_type") != "code":
        return [source] if source.strip() else []
    outputs = cell.get("outputs")
    parts = [_fenced(source, language)] if source.strip() else []
    for output in outputs if isinstance(outputs, list) else ():
        match output:
            case {"text": text} | {"data": {"text/markdown": text} | {"text/plain": text}}:
                said = _joined(text).strip("\n")
                if len(said) > _LONGEST_OUTPUT:
                    said = said[:_LONGEST_OUTPUT] + "\n…"
                parts += [_fenced(said, "")] if said.strip() else []
    return parts


def _joined(source: Any) -> str:
    if isinstance(source, list):
        source = "".join(part for part in source if isinstance(part, str))
    return clean(source) if isinstance(source, str) else ""


def _fenced(text: str, language: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"
