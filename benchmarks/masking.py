"""How much of what must go masking hides, and how little of the rest.

python benchmarks/masking.py gitleaks.toml [--show] [--folder FOLDER]...

The rule file is that of gitleaks (github.com/gitleaks/gitleaks, config/gitleaks.toml). Three
secrets are made from each rule, with what the rule wants around them. The texts to leave alone
are 1,000 documents of installed packages: descriptions, documentation files and docstrings.
"""

import argparse
import ast
import hashlib
import math
import random
import re
import string
import sysconfig
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path
from re import _constants as sre, _parser as sre_parser  # type: ignore[attr-defined]
from typing import Any

from commonplace.text.secret_masking import mask_secrets

EACH, DOCUMENTS, TRIES = 3, 1000, 200
LEFT = 8  # characters of a secret in a row that must not be left of it
MARKS = re.compile(r"\[(?:secret|key|card|iban|phone)\]")
LETTERS = [c for c in string.printable if c.isprintable()]
WORD = {*string.ascii_letters, *string.digits, "_"}
CLASSES = {
    sre.CATEGORY_DIGIT: {*string.digits},
    sre.CATEGORY_SPACE: {" "},
    sre.CATEGORY_WORD: WORD,
    sre.CATEGORY_NOT_DIGIT: {*LETTERS} - {*string.digits},
    sre.CATEGORY_NOT_SPACE: {*LETTERS} - {" "},
    sre.CATEGORY_NOT_WORD: {*LETTERS} - WORD,
}


# -- secrets


def python_pattern(pattern: str) -> str:
    """Return a pattern of Go as one of Python, in which flags stand at the start of a group."""
    pattern = pattern.replace(r"\z", r"\Z").replace("[[:alnum:]]", "[a-zA-Z0-9]")
    open_flags, depth, out, inside, at = [0], 0, "", False, 0
    while at < len(pattern):
        char = pattern[at]
        flag = re.match(r"\(\?([a-z]+)\)", pattern[at:])
        if char == "\\":
            out, at = out + pattern[at : at + 2], at + 2
            continue
        if flag and not inside:
            out, at = f"{out}(?{flag[1]}:", at + len(flag[0])
            open_flags[depth] += 1
            continue
        if char == "[" and not inside:
            inside = True
        elif char == "]" and inside and pattern[at - 1] != "[":
            inside = False
        elif char == "(" and not inside:
            depth += 1
            open_flags[depth:] = [0]
        elif char == ")" and not inside:
            out += ")" * open_flags[depth]
            depth -= 1
        out, at = out + char, at + 1
    return out + ")" * open_flags[0]


def characters(parts: list[Any]) -> set[str]:
    found: set[str] = set()
    for kind, value in parts:
        if kind is sre.LITERAL:
            found.add(chr(value))
        elif kind is sre.RANGE:
            found.update(map(chr, range(value[0], value[1] + 1)))
        elif kind is sre.CATEGORY:
            found |= CLASSES[value]
    return {*LETTERS} - found if parts[0][0] is sre.NEGATE else found & {*LETTERS} or found


def made(tree: Any, dice: random.Random, ignoring: bool, groups: dict[int, str]) -> str:
    """Return a text that a pattern matches, and what its groups match in `groups`."""
    text = ""
    for kind, value in tree:
        if kind is sre.LITERAL:
            text += dice.choice(
                [chr(value).lower(), chr(value).upper()] if ignoring else chr(value)
            )
        elif kind is sre.NOT_LITERAL:
            text += dice.choice([c for c in LETTERS if ord(c) != value])
        elif kind is sre.ANY:
            text += dice.choice(LETTERS)
        elif kind is sre.IN:
            text += dice.choice(sorted(characters(value)))
        elif kind is sre.BRANCH:
            text += made(dice.choice(value[1]), dice, ignoring, groups)
        elif kind is sre.SUBPATTERN:
            group, on, off, inner = value
            flagged = (ignoring or bool(on & re.IGNORECASE)) and not off & re.IGNORECASE
            inside = made(inner, dice, flagged, groups)
            if group is not None:
                groups[group] = inside
            text += inside
        elif kind in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            least, most, inner = value
            most = least if kind is sre.MIN_REPEAT else min(most, max(least + 10, 100))
            for _ in range(dice.randint(least, int(most))):
                text += made(inner, dice, ignoring, groups)
        elif kind is not sre.AT:
            raise ValueError(kind)
    return text


def entropy(text: str) -> float:
    counts = Counter(text).values()
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts)


def secrets(rule: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield texts that a rule finds, and the secrets in them."""
    pattern = python_pattern(rule["regex"])
    compiled, tree = re.compile(pattern), sre_parser.parse(pattern)
    allowed = [
        re.compile(python_pattern(each))
        for allow in rule.get("allowlists", [])
        for each in allow.get("regexes", [])
    ]
    stops = [word for allow in rule.get("allowlists", []) for word in allow.get("stopwords", [])]
    dice, found = random.Random(rule["id"]), 0
    for _ in range(TRIES):
        text = made(tree, dice, False, {})
        match = compiled.search(text)
        if match is None:
            continue
        wanted = rule.get("secretGroup", 0)
        groups = [match[wanted]] if wanted else [each for each in match.groups() if each]
        secret = (groups[0] if groups else match[0]).strip()
        if entropy(secret) < rule.get("entropy", 0) or any(each.search(secret) for each in allowed):
            continue
        if any(stop in secret.lower() for stop in stops):
            continue
        yield match[0], secret
        found += 1
        if found == EACH:
            return


def hides(text: str, secret: str) -> bool:
    masked = mask_secrets(f"See below.\n{text}\nThat was it.")
    size = min(LEFT, len(secret))
    return not any(secret[n : n + size] in masked for n in range(len(secret) - size + 1))


def measure_secrets(path: Path, show: bool) -> None:
    rules = [each for each in tomllib.loads(path.read_text())["rules"] if "regex" in each]
    hidden = total = never = 0
    for rule in rules:
        texts = [*secrets(rule)]
        results = [hides(*each) for each in texts]
        hidden, total = hidden + sum(results), total + len(results)
        never += not any(results)
        if show and not all(results):
            missed = next(text for text, ok in zip(texts, results, strict=True) if not ok)
            print(f"  {sum(results)}/{len(results)} {rule['id']}: {missed[0]!r:.150}")
    print(
        f"secrets of {len(rules)} rules: {hidden} of {total} masked ({hidden / total:.3f});",
        end=" ",
    )
    print(f"{never} rules without any")


# -- documents


def documents(folders: list[Path]) -> list[tuple[str, str]]:
    """Return documents of installed packages, always the same: those whose names hash lowest."""
    found: dict[str, str] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            name = str(path.relative_to(folder))
            if path.name == "METADATA" or path.suffix in (".md", ".rst"):
                text = path.read_text(errors="replace")
            elif path.suffix == ".py":
                text = docstrings(path)
            else:
                continue
            if len(text) > 500:
                found[name] = text
    chosen = sorted(found, key=lambda name: hashlib.sha256(name.encode()).digest())
    # Descriptions and documentation files first: there are fewer of them.
    chosen.sort(key=lambda name: name.endswith(".py"))
    return [(name, found[name]) for name in chosen[:DOCUMENTS]]


def docstrings(path: Path) -> str:
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, RecursionError):
        return ""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(tree) if isinstance(node, kinds)]
    return "\n\n".join(filter(None, map(ast.get_docstring, nodes)))


def changes(text: str) -> Iterator[str]:
    """Yield what masking does to a text: each line in which it hides something but addresses."""
    masked = mask_secrets(text)
    if not MARKS.search(masked):
        return
    before, after = text.split("\n"), masked.split("\n")
    for code, a, b, c, d in SequenceMatcher(None, before, after, False).get_opcodes():
        if code != "equal" and (count := len(MARKS.findall("\n".join(after[c:d])))):
            yield from [
                f"{' / '.join(before[a:b])[:160]}\n      {' / '.join(after[c:d])[:160]}"
            ] * count


def measure_documents(folders: list[Path], show: bool) -> None:
    texts = documents(folders)
    began = time.process_time()
    found = [(name, each) for name, text in texts for each in changes(text)]
    seconds = time.process_time() - began
    if show:
        for name, each in found:
            print(f"  {name}\n      {each}")
    length = sum(len(text) for _, text in texts)
    print(
        f"documents: {len(texts)} of {length:,} characters; {len(found)} maskings in "
        f"{len({name for name, _ in found})} of them, {seconds:.1f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rules", type=Path)
    parser.add_argument("--show", action="store_true", help="show what is missed and masked")
    parser.add_argument("--folder", type=Path, action="append", help="of packages")
    options = parser.parse_args()
    measure_secrets(options.rules, options.show)
    measure_documents(options.folder or [Path(sysconfig.get_paths()["purelib"])], options.show)


if __name__ == "__main__":
    main()
