#!/usr/bin/env bash
# Runs real loggers and renews the bytes of their rows in the table of loggers
# (../testdata): run.sh [ROW...], all rows if none is named.
#
# Each folder here that has a program `run` is a group. Called as `run OUT`, it writes for
# each of its rows OUT/NAME.bytes (what the logger wrote), OUT/NAME.ran (the clock before the
# start, rounded down to the second, and after the end, rounded up; RFC 3339 in UTC) and
# OUT/NAME.version (one line). A row's file must be there: about and records are written by
# hand, before the logger runs. A group may use /srv/shop for its programs, so that no
# path of the machine gets into the bytes.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cd "$here"
go build -o "$out/put" ./put

failed=0
for run in "$here"/*/run; do
	group=$(basename "$(dirname "$run")")
	mkdir "$out/$group"
	if ! "$run" "$out/$group"; then
		echo "run.sh: group $group failed; its other rows are renewed" >&2
		failed=1
	fi
	"$out/put" "$out/$group" ../testdata "$@" || failed=1
done
for row; do
	if ! compgen -G "$out/*/$row.bytes" >/dev/null; then
		echo "run.sh: no group has run a row $row" >&2
		failed=1
	fi
done
exit "$failed"
