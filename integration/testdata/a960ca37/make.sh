#!/bin/bash
# Makes store.tar.gz and expected.json here with the commands of commit a960ca37:
#
#   git worktree add /tmp/base a960ca37 && (cd /tmp/base && make build)
#   ./make.sh /tmp/base/bin
#
# It needs curl, jq and GNU tar, and takes about a minute. README.md says what is in them.
set -euo pipefail
bin=$(cd "${1:?the directory of the binaries of a960ca37}" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
pids=()
trap 'for p in "${pids[@]}"; do kill -9 "$p" 2>/dev/null || true; done; rm -rf "$work"' EXIT
cd "$work"
listen=127.0.0.1:28514 admin=127.0.0.1:28515

cat >config.yaml <<'Y'
flush: {size: 2MiB, age: 2h, min: 1MiB, max-age: 4h}
log: {segment: 1MiB, soft: 1MiB}
retention: {default: keep, rules: [{service: old, age: 24h}]}
Y

run() { # store, log, lane
	"$bin/ingest" --config config.yaml --store "dir:$1" --wal "$2" --lane "$3" --listen $listen --admin $admin 2>>"$work/ingest.log" &
	pid=$!
	pids+=($pid)
	for _ in $(seq 100); do
		curl -sf http://$admin/readyz >/dev/null && return
		sleep 0.1
	done
	echo "the ingester is not ready" >&2
	exit 1
}
end() { kill -TERM "$pid" && wait "$pid"; }
metric() { curl -s http://$admin/metrics | awk -v m="$1" '$1 == m {print $2}'; }
flush() { curl -s -X POST "http://$admin/flush?timeout=$1" >/dev/null; }
post() { # service, then curl's arguments
	local service=$1
	shift
	curl -sf --data-binary @body -H 'Content-Type: application/x-ndjson' "$@" "http://$listen/ingest/$service" >/dev/null
}
# records SERVICE MINUTE COUNT WORD writes a body: one record every 100 ms.
records() {
	for ((i = 0; i < $3; i++)); do
		level=info
		((i % 10 == 9)) && level=error
		printf '{"ts":"%s:%02d.%d00Z","level":"%s","msg":"%s %d %s","n":%d}\n' "$2" $((i / 10)) $((i % 10)) $level "$1" "$i" "$4" "$i"
	done >body
}

# An ingester that ends in order. Every hour gets three blobs.
run store log-a 3
for part in 1 2 3; do
	for hour in 2026-10-01T09 2026-10-02T10 2026-10-03T11; do
		for service in web db; do
			records $service "$hour:0$part" 200 "first $part"
			post $service
		done
	done
	flush 30s
done
for hour in 2026-09-20T12 2026-10-09T12; do
	records old "$hour:00" 30 aging
	post old
done
flush 30s
end

# Another one, which is killed. A file where the directory of a service has to be
# keeps the store from taking blobs of that service.
run store log 5
touch store/stuck store/cut
records stuck 2026-10-03T12:00 60 parked
post stuck
flush 2s
noise=$(printf '%04000d' 0)
for part in 1 2; do
	records web "2026-10-03T13:0$part" 200 "noise $noise"
	post web
done
flush 2s
for _ in $(seq 100); do
	[ "$(metric blobtail_buffer_batches_parked_total)" = 1 ] && break
	sleep 0.1
done
[ "$(metric blobtail_buffer_batches_parked_total)" = 1 ] || { echo "nothing was parked" >&2; exit 1; }
records cut 2026-10-03T12:30 40 "in a batch"
post cut
flush 2s
# In open runs from here on: of old and of present time, of a key, rejected, and of a
# day that is dropped before they are stored.
records web 2026-10-03T14:00 70 open
post web
records db 2026-10-03T14:30 30 "with a key"
cp body keyed
post db -H 'Idempotency-Key: a960ca37-1'
printf '{"level":"warn","msg":"new %d"}\n' 1 2 3 4 5 >body
post new -H 'Idempotency-Key: a960ca37-2'
printf 'no json {\n{"msg":"whole"}\n' >body
post odd
records db 2026-10-01T15:00 20 "of a day that is dropped"
post db
sleep 3 # the tail is written once a second
kill -9 "$pid"
wait "$pid" 2>/dev/null || true
rm store/stuck store/cut

"$bin/retention" compact --config config.yaml --store dir:store --service web 2>>"$work/ingest.log"
plan=$("$bin/retention" drop --config config.yaml --store dir:store --day 2026-10-01 --keep-tail db 2>/dev/null || true)
confirm=$(awk '/^plan/ {print $2}' <<<"$plan")
"$bin/retention" drop --config config.yaml --store dir:store --day 2026-10-01 --keep-tail --confirm "$confirm" db 2>>"$work/ingest.log"

# Hidden, and not deleted: that is a run's a grace later.
apply() { "$bin/retention" apply --config config.yaml --store dir:store --now 2026-10-10T12:00:00Z "$@" 2>>"$work/ingest.log" || true; }
apply --confirm "$(apply | awk '/^plan/ {print $2}')"
[ -e store/_horizon/old/20261009 ] || { echo "no day of old is hidden" >&2; exit 1; }

rm -f log/lock log/ballast
tar --sort=name --owner=0 --group=0 --numeric-owner -cf - store log | gzip -9n >"$here/store.tar.gz"

# What the commands of a960ca37 make of it, on a copy: the lines of each service in blobs
# before the log is read, and after.
sums() {
	for service in web db old stuck cut new odd _rejected; do
		"$bin/logquery" read "$service" --store dir:copy/store --live off --from 2020-01-01 -q -o json >lines 2>/dev/null || true
		jq -n --arg service $service --arg sum "$(sha256sum <lines | cut -d' ' -f1)" --argjson lines "$(wc -l <lines)" '{($service): {lines: $lines, sha256: $sum}}'
	done | jq -s add
}
mkdir copy
cp -a store log copy/
before=$(sums)
run copy/store copy/log 5
flush 30s
end
after=$(sums)
jq -n --argjson before "$before" --argjson after "$after" --arg made "$(date -u +%FT%TZ)" '{made: $made, blobs: $before, all: $after}' >"$here/expected.json"
cp keyed "$here/keyed.ndjson"
