#!/bin/sh
# install.sh REQUIREMENTS...: exactly these pinned wheels into .venv.
# The files list everything, so nothing is resolved (--no-deps). uv takes a fifth of pip's time, but does not read
# pip's configuration: where it cannot reach the index, pip still may. On a terminal, both show their progress.
set -eu
options="--no-deps --require-hashes"
[ -t 2 ] || options="$options --quiet"
for file in "$@"; do options="$options --requirement $file"; done
.venv/bin/uv pip install --system-certs --python .venv/bin/python --compile-bytecode $options || .venv/bin/pip install $options
