#!/usr/bin/env bash
# picture.sh FILE: a picture of a terminal session, from a real ingester with
# generated logs. `make picture` builds the binaries first.
#
# Needs Go, curl and a pseudo-terminal.
set -euo pipefail
cd "$(dirname "$0")/../../.."
out=$PWD/$1 root=$PWD

work=$(mktemp -d)
clean_up() {
	kill -9 $(jobs -p) 2>/dev/null || true
	wait 2>/dev/null || true
	rm -rf "$work"
}
trap clean_up EXIT
for name in $(compgen -e BLOBTAIL_ || true); do unset "$name"; done
export TZ=UTC PATH=$root/bin:$PATH
go build -o "$work/demo" ./internal/dev/demo
go build -o "$work/termshot" ./internal/dev/termshot
cd "$work"

ingest --listen 127.0.0.1:0 --admin 127.0.0.1:0 2>ingest.log &
for _ in $(seq 100); do
	address=$(sed -n 's/.*"listen":"\([^"]*\)".*"message":"ready".*/\1/p' ingest.log)
	[ -z "$address" ] || break
	sleep 0.1
done
[ -n "$address" ] || { cat ingest.log >&2; exit 1; }

# Two minutes of logs up to now, and some that come while we look. Without the
# fields that make lines too long for a page.
./demo -n 270 -from "$(date -u -d '-2 minutes' +%Y-%m-%dT%H:%M:%SZ)" -span 2m
sed -E 's/"(service|request)":"[^"]*",//g; s/"trace":"[^"]*",//; s/"labels":\{[^}]*\},//; s/"host":"[^"]*",//' body-000.ndjson >lines
head -n 200 lines | curl -sS --fail --data-binary @- "http://$address/ingest/web" >/dev/null 2>&1
(
	sleep 2.5
	tail -n 70 lines | sed -E 's/"ts":[^,]*,//' | while read -r line; do
		curl -sS --data-binary "$line" -H 'Content-Type: application/json' "http://$address/ingest/web" >/dev/null 2>&1
		sleep 0.03
	done
) &
./termshot -o "$out" -columns 126 -title 'logquery: newest records, then follow' \
	'logquery tail web -n 8' '6.5s|logquery tail -f web -n 3 --level warn+'
