#!/usr/bin/env bash
# ingest.sh TOOLS: what it costs to take a corpus over HTTP and to put it into
# blobs, and how long a read of two minutes of it takes.
#
# TOOLS is the directory of the generator and the sender. The server's CPU time
# and memory are read after /flush has returned, so that nothing is left to do.
#
#   N=2000000 SEED=42 CONNS=8 BATCH=1000 internal/bench/ingest.sh ../shared/bench
#   PROFILE=cpu.pprof      also keep a CPU profile of the server
set -euo pipefail
tools=$(cd "${1:?usage: internal/bench/ingest.sh TOOLS}" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
n=${N:-2000000} seed=${SEED:-42} conns=${CONNS:-8} batch=${BATCH:-1000}

work=$(mktemp -d)
server='' profiler=''
clean_up() {
	for p in $profiler $server; do kill -9 "$p" 2>/dev/null || true; done
	wait 2>/dev/null || true
	rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

mkdir "$work/bin"
(cd "$tools" && go build -o "$work/bin/" ./gen ./send)
"$work/bin/gen" -n "$n" -seed "$seed" -answers "$work/answers" >"$work/corpus"

unset "${!BLOBTAIL_@}"
"$root/bin/ingest" --store "dir:$work/store" --listen 127.0.0.1:0 --admin 127.0.0.1:0 2>"$work/log" &
server=$!
address() { sed -n 's/.*"'"$1"'":"\([^"]*\)".*"message":"ready".*/\1/p' "$work/log"; }
for _ in $(seq 100); do
	[ -z "$(address admin)" ] || break
	sleep 0.1
done
[ -n "$(address admin)" ] || { cat "$work/log" >&2; exit 1; }

if [ -n "${PROFILE:-}" ]; then
	curl -s "http://$(address admin)/debug/pprof/profile?seconds=10" >"$PROFILE" &
	profiler=$!
fi
"$work/bin/send" -url "http://$(address listen)/ingest" -file "$work/corpus" -c "$conns" -b "$batch" -pid "$server"
curl -sS --fail-with-body -X POST "http://$(address admin)/flush"

# Fields 14 and 15 of stat, user and system time in ticks; the name of the
# process, which may hold spaces, ends with the last parenthesis.
ticks=$(sed 's/.*) //' "/proc/$server/stat" | awk '{ print $12 + $13 }')
awk -v t="$ticks" -v hz="$(getconf CLK_TCK)" -v n="$n" \
	'BEGIN { printf "server CPU: %.2f s, %.2f s per million records\n", t / hz, t / hz / n * 1e6 }'
awk '/^VmHWM/ { printf "server peak RSS: %.0f MB\n", $2 / 1024 }' "/proc/$server/status"
kill -TERM "$server"
wait "$server" || { echo "the server ended with $?" >&2; exit 1; }
server=''

# The store alone: the log is another directory in it, empty but for its last segment.
du -sb --exclude=.wal "$work/store" | awk -v raw="$(stat -c %s "$work/corpus")" \
	'{ printf "stored: %.1f MB, %.2f times smaller than the corpus\n", $1 / 1e6, raw / $1 }'

# The answers are one value a line; from and to follow the name of the window.
field() { sed -n '/"name": "2m"/,/counts/ s/.*"'"$1"'": "\([^"]*\)".*/\1/p' "$work/answers"; }
from=$(field from) to=$(field to)
[ -n "$from" ] && [ -n "$to" ] || { echo "no two-minute window in the answers of the generator" >&2; exit 1; }
echo "logquery api-gateway --from $from --to $to, 9 runs:"
for _ in $(seq 9); do
	begun=$(date +%s%N)
	"$root/bin/logquery" --store "dir:$work/store" api-gateway --from "$from" --to "$to" --quiet >"$work/out" || true
	echo $((($(date +%s%N) - begun) / 10000)) "$(wc -l <"$work/out")"
done | sort -n | awk '{ ms[NR] = $1 / 100; lines = $2 } END { printf "  median %.1f ms, fastest %.1f, slowest %.1f; %d records\n", ms[int((NR + 1) / 2)], ms[1], ms[NR], lines }'
