#!/bin/sh
# Sets up .venv with the locked packages and the embedded models; quick when all is there.
# usage: deploy/setup.sh run|dev
set -eu
cd "$(dirname "$0")/.."

case "${1:-run}" in
    run) lock=requirements.txt ;;
    dev) lock=requirements-dev.txt ;;
    *) echo "usage: $0 run|dev" >&2; exit 2 ;;
esac

is_fitting() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1
}

find_python() {
    for candidate in ${PYTHON:-} python3.12 python3.13 python3.11 python3 python \
        "${HOME:-}"/.local/share/uv/python/*/bin/python3.1[123]; do
        if command -v "$candidate" >/dev/null 2>&1 && is_fitting "$candidate"; then
            echo "$candidate"
            return
        fi
    done
}

# The newest fitting Python that Debian's or Ubuntu's lists offer.
apt_python() {
    for version in 3.12 3.13 3.11; do
        if apt-cache show "python$version-venv" >/dev/null 2>&1; then
            echo "python$version python$version-venv"
            return
        fi
    done
}

# The one line that adds what is missing, in the words of this machine's package manager.
advice() {
    if command -v apt-get >/dev/null 2>&1; then
        packages=${1:-$(apt_python)}
        if [ -n "$packages" ]; then echo "sudo apt-get install -y $packages"
        # Releases whose own Python is too old get one from a Python package.
        else echo "sudo apt-get install -y python3-pip && pip3 install --user uv && python3 -m uv python install 3.12"
        fi
    elif command -v dnf >/dev/null 2>&1; then echo "sudo dnf install -y $2"
    elif command -v zypper >/dev/null 2>&1; then echo "sudo zypper install -y $2"
    elif command -v pacman >/dev/null 2>&1; then echo "sudo pacman -S --needed python uv && uv python install 3.12"
    elif command -v brew >/dev/null 2>&1; then echo "brew install python@3.12"
    else echo "install Python 3.12 with its venv module, or set PYTHON=/path/to/python3.12"
    fi
}

fail() {
    printf 'FaceDock: %s Add it with:\n\n    %s\n\nthen run the same command again.\n' "$1" "$2" >&2
    exit 1
}

# Looked at, not run: starting Python only to see that it starts would cost every start.
if ! [ -x .venv/bin/python ] || ! ls .venv/lib/python3.*/site-packages/pip/__init__.py >/dev/null 2>&1; then
    python=$(find_python)
    [ -n "$python" ] || fail "no Python 3.11, 3.12 or 3.13 found." \
        "$(advice '' python3.12)"
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    "$python" -c 'import venv, ensurepip' >/dev/null 2>&1 || fail "Python $version here lacks venv and pip." \
        "$(advice "python$version-venv" "python$version")"
    echo "FaceDock: making .venv with Python $version"
    rm -rf .venv
    "$python" -m venv .venv
fi

# A copy of the lock marks a finished install; an interrupted one is simply done again.
if ! cmp -s "$lock" ".venv/installed-$lock"; then
    echo "FaceDock: installing the locked packages (about 350 MB, once)"
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r "$lock"
    cp "$lock" ".venv/installed-$lock"
    # The developer's lock holds the application's.
    [ "$lock" = requirements.txt ] || cp requirements.txt .venv/installed-requirements.txt
fi

.venv/bin/python -m app models pull embedded
