#!/bin/sh
# debian.sh PACKAGE...: these Debian packages are there, or are installed (as root), or are asked for.
set -eu
missing=$(for package in "$@"; do
    command -v "$package" >/dev/null || dpkg -s "$package" >/dev/null 2>&1 || echo "$package"
done)
[ -z "$missing" ] && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "Please install:" $missing >&2
    exit 1
fi
echo "Installing Debian packages:" $missing
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update
apt-get -qq install --yes --no-install-recommends $missing >/dev/null
