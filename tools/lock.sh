#!/bin/sh
# lock.sh: the newest versions that pyproject.toml allows, with hashes, for every Python and platform, naming no index.
set -eu
lock() {
    .venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --custom-compile-command "make lock" "$@"
}
lock pyproject.toml --extra all --group pyproject.toml:build --output-file requirements.txt
lock --no-deps --group pyproject.toml:models --output-file requirements-models.txt
lock --group pyproject.toml:setup --output-file requirements-setup.txt
lock --group pyproject.toml:s3 --output-file requirements-s3.txt
lock --group pyproject.toml:clients --output-file requirements-clients.txt
lock --group pyproject.toml:dev --constraints requirements.txt --output-file requirements-dev.txt
