#!/bin/sh
# Makes requirements.txt and requirements-dev.txt: one lock for Python 3.11 to 3.13, GPU and CPU machines alike.
set -eu
cd "$(dirname "$0")/.."

lock() {
    input=$1 output=$2
    shift 2
    .venv/bin/uv pip compile "$input" --override overrides.txt --universal --python-version 3.11 \
        --fork-strategy fewest --generate-hashes --no-emit-index-url --no-header --quiet "$@" -o "$output.new"
    # A package that is overridden away leaves a line that no machine installs: drop it with its hashes.
    awk '/^[a-z0-9]/ { dropped = /sys_platform == .never./ } !dropped' "$output.new" > "$output"
    rm "$output.new"
}

lock requirements.in requirements.txt
lock requirements-dev.in requirements-dev.txt -c requirements.txt
