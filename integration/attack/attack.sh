#!/usr/bin/env bash
# Attacks every route of `logquery serve`, and compares each answer that claims to be complete with
# what was acknowledged. It starts all processes itself, on free ports of 127.0.0.1.
#
#   BIN=directory of ingest, logquery and retention ./attack.sh
#
# PHASES=tokens,odd runs only these; SEED=n; N=requests of a sweep; TMPDIR is where it works.
# Needs python3. Each line: right, refused, incomplete or WRONG, and the request. Exit 0: no WRONG.
set -u
: "${BIN:?directory of ingest, logquery and retention}"
BIN=$(cd "$BIN" && pwd) || exit 2
export BIN
WORKDIR=$(mktemp -d "${TMPDIR:-/tmp}/attack.XXXXXX") || exit 2
export WORKDIR
unset TMPDIR
pid=
end() { [ -n "$pid" ] && kill "$pid" 2>/dev/null && wait "$pid"; rm -rf "$WORKDIR"; }
trap end EXIT
trap 'exit 130' INT TERM
python3 "$(dirname "$0")/attack.py" &
pid=$!
wait "$pid"
code=$?
pid=
exit "$code"
