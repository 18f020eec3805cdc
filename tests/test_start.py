"""What is imported before it is needed makes every command and every start slower."""

import subprocess
import sys

import pytest

RARE = ("av", "faster_whisper", "jwt", "limits", "onnxruntime", "psycopg", "redis", "tokenizers", "trafilatura", "webauthn")


@pytest.mark.parametrize(("imported", "unneeded"), [
    ("commonplace.faces.cli.main", ("numpy", "pydantic", "httpx", "commonplace.app", *RARE)),
    ("commonplace.app", ("fastapi", "mcp", "commonplace.faces", *RARE)),
])
def test_a_start_brings_in_only_what_it_needs(imported: str, unneeded: tuple[str, ...]) -> None:
    code = f"import sys, {imported}; print(*(set({unneeded!r}) & sys.modules.keys()))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == []
