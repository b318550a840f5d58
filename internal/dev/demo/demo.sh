#!/usr/bin/env bash
# demo.sh: blobtail from one end to the other, in a temporary directory.
#
# Starts an ingester on the embedded store, ships two hours of generated logs
# over HTTP, reads them back in several ways and holds the counts against what
# was sent. Leaves nothing behind. `make demo` builds the binaries first.
#
# Needs Go, and curl or Node to speak HTTP; zstd, where there is one, shows that
# the blobs need none of our tools.
set -euo pipefail
cd "$(dirname "$0")/../../.."
root=$PWD

work=$(mktemp -d)
ingester=
clean_up() {
	if [ -n "$ingester" ] && kill -9 "$ingester" 2>/dev/null; then wait "$ingester" 2>/dev/null || true; fi
	rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

bold='' dim='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'; fi
say() { printf '\n%s# %s%s\n' "$bold" "$*" "$plain"; }
show() { printf '%s$ %s%s\n' "$dim" "$*" "$plain"; }
fail() {
	printf 'demo: %s\n' "$*" >&2
	[ ! -s "$work/ingest.log" ] || tail -n 20 "$work/ingest.log" >&2
	exit 1
}

# Only this shell's environment: the settings of a real installation stay out.
unset BLOBTAIL_CONFIG BLOBTAIL_STORE BLOBTAIL_LIVE BLOBTAIL_LISTEN BLOBTAIL_ADMIN BLOBTAIL_WAL BLOBTAIL_LANE BLOBTAIL_PERIOD
unset BLOBTAIL_TOKENS BLOBTAIL_TOKEN BLOBTAIL_TOKEN_FILE BLOBTAIL_PEER_TOKEN BLOBTAIL_TLS_CERT BLOBTAIL_TLS_KEY BLOBTAIL_TLS_CLIENT_CA
unset BLOBTAIL_DEDUPE BLOBTAIL_GRACE BLOBTAIL_FLUSH_SIZE BLOBTAIL_FLUSH_AGE BLOBTAIL_FLUSH_MIN BLOBTAIL_FLUSH_MAX_AGE
export BLOBTAIL_STORE="dir:$work/store"
export TZ=UTC # so that all the times below are of one zone
logquery() { "$root/bin/logquery" "$@"; }

# post URL [FILE]: sends a file, or nothing, and prints the answer.
post() {
	if command -v curl >/dev/null; then
		curl -sS --fail-with-body --max-time 60 -X POST ${2:+--data-binary "@$2"} "$1"
	else
		node -e 'const [u, f] = process.argv.slice(1);
			fetch(u, {method: "POST", body: f ? require("fs").readFileSync(f) : undefined})
				.then(async r => { process.stdout.write(await r.text()); process.exit(r.ok ? 0 : 1); })' "$@"
	fi
}

# expected NAME: how many records of that name were sent.
expected() { awk -v name="$1" '$1 == name { print $2 }' "$work/corpus/expect"; }

# counted NAME ARGS...: counts with logquery and compares.
counted() {
	local name=$1 n
	shift
	n=$(logquery "$@" --count --quiet) || true
	[ "$n" = "$(expected "$name")" ] || fail "$name: sent $(expected "$name"), found $n"
	printf '%10s  %s\n' "$n" "$name"
}

say "Start an ingester: a directory as the store, free ports"
show "ingest --store dir:STORE --listen 127.0.0.1:0 --admin 127.0.0.1:0"
"$root/bin/ingest" --listen 127.0.0.1:0 --admin 127.0.0.1:0 2>"$work/ingest.log" &
ingester=$!
address() { sed -n 's/.*"'"$1"'":"\([^"]*\)".*"message":"ready".*/\1/p' "$work/ingest.log"; }
for _ in $(seq 100); do
	[ -z "$(address admin)" ] || break
	kill -0 "$ingester" 2>/dev/null || fail "the ingester did not start"
	sleep 0.1
done
ingest=$(address listen) admin=$(address admin)
[ -n "$admin" ] || fail "the ingester is not ready after 10 s"
echo "records go to http://$ingest/ingest, operators ask http://$admin/metrics"

say "Ship 100,000 records of 8 services over HTTP, 5,000 a request"
now=$(date +%s)
start=$((now - now % 60 - 7200)) # two hours ago, at a full minute
# Seconds since 1970 as RFC 3339, with any awk.
rfc3339() {
	awk -v t="$1" 'BEGIN {
		z = int(t / 86400) + 719468; s = t % 86400
		era = int(z / 146097); d = z - era * 146097
		y = int((d - int(d / 1460) + int(d / 36524) - int(d / 146096)) / 365)
		n = d - (365 * y + int(y / 4) - int(y / 100)); mp = int((5 * n + 2) / 153)
		m = mp < 10 ? mp + 3 : mp - 9
		printf "%04d-%02d-%02dT%02d:%02d:%02dZ\n", y + era * 400 + (m <= 2), m, n - int((153 * mp + 2) / 5) + 1, int(s / 3600), int(s / 60) % 60, s % 60
	}'
}
mkdir "$work/corpus"
go build -o "$work/demo" ./internal/dev/demo
"$work/demo" -n 100000 -dir "$work/corpus" -from "$(rfc3339 $start)" -span 2h -window 30m
head -n 1 "$work/corpus/body-000.ndjson" | cut -c 1-160
show "curl --data-binary @body-000.ndjson http://$ingest/ingest      (and 19 more)"
for body in "$work"/corpus/body-*.ndjson; do
	answer=$(post "http://$ingest/ingest" "$body") || fail "$answer"
	case $answer in *'"accepted":5000'*'"rejected":0'*) ;; *) fail "unexpected answer: $answer" ;; esac
done
echo "$answer"
echo "Each answer came after the records were on disk (fsync)."

say "Send one body again: it is known by what is in it"
post "http://$ingest/ingest" "$work/corpus/body-000.ndjson"

say "Read before there are blobs: logquery asks the ingester"
show "logquery tail checkout -n 5 -o pretty"
logquery tail checkout -n 5 -o pretty --quiet | cut -c 1-200
counted all '*'

say "Ask for blobs now; without this they come by size (32 MiB) and age (1 to 10 minutes)"
show "curl -X POST http://$admin/flush"
post "http://$admin/flush"

say "The newest 10 records of one service, from blobs now"
show "logquery tail checkout -n 10 -o pretty"
logquery tail checkout -n 10 -o pretty --quiet >"$work/tail"
cut -c 1-200 "$work/tail"
logquery checkout -n 10 -o pretty --quiet --live off | cmp -s - "$work/tail" || fail "tail and read differ"

from=$((start + 1800)) to=$((start + 1920))
say "Errors of all services within two minutes; the index says which blocks to fetch"
show "logquery '*' --from $(rfc3339 $from) --to $(rfc3339 $to) --level error,critical --stats"
logquery '*' --from "$(rfc3339 $from)" --to "$(rfc3339 $to)" --level error,critical -o pretty --stats >"$work/window" 2>"$work/stats"
head -n 5 "$work/window" | cut -c 1-200
echo "..."
cat "$work/stats"
! grep -q "without its index" "$work/stats" || fail "a fresh blob was not read by its index"
n=$(logquery '*' --from $from --to $to --level error,critical --count --quiet)
[ "$n" = "$(expected window)" ] || fail "the window: sent $(expected window), found $n"
echo "$n records, as many as were sent."

say "A histogram of the same service; -o json is for programs"
show "logquery hist checkout --by 10m"
logquery hist checkout --by 10m -o text --quiet
n=$(logquery hist '*' --by 10m -o csv --quiet | awk -F, 'NR > 1 { n += $2; split("trace debug info warn error critical other", name, " "); for (l in name) levels[name[l]] += $(l + 2) }
	END { printf "all %d\n", n; for (l in levels) printf "%s %d\n", l, levels[l] }' | sort)
[ "$n" = "$(grep -v '^window' "$work/corpus/expect" | sort)" ] || fail "the histogram: $n"
echo "Over all services its sums, in all and of each level, are what was sent."

say "Counts per level, each held against what was sent"
show "logquery '*' --level LEVEL --count"
for level in debug info warn error critical; do
	counted $level '*' --level $level
done
counted all '*'

say "What is stored: days of a service, and a blob"
show "logquery ls; logquery ls checkout"
logquery ls | awk -F'\t' 'BEGIN { printf "%10s %6s %9s %12s %12s\n", "service", "blobs", "records", "bytes", "stored" }
	{ printf "%10s %6d %9d %12d %12d\n", $1, $2, $3, $4, $5 }'
logquery ls checkout --quiet | tr '\t' ' '
blob=$(cd "$work/store" && find checkout -name '*.log' | sort | head -n 1)
if command -v zstd >/dev/null; then
	show "zstd -dc STORE/$blob | head -n 1      (any zstd, no tool of ours)"
	{ zstd -dc <"$work/store/$blob" 2>/dev/null || true; } | sed -n '1{p;q;}' | cut -c 1-200
else
	show "logquery cat $blob | head -n 1"
	logquery cat "$blob" | sed -n '1{p;q;}' | cut -c 1-200
fi

say "Check every blob: checksums, order, metadata, name"
show "logquery verify"
logquery verify 2>&1

say "One more record, sent by hand; it can be read at once"
printf 'the lights are on' >"$work/line"
show "curl -d 'the lights are on' http://$ingest/ingest/hello"
post "http://$ingest/ingest/hello" "$work/line"
echo
show "logquery hello"
logquery hello -o json --quiet | tee "$work/hello"
grep -q '"service":"hello","msg":"the lights are on"' "$work/hello" || fail "the record did not come back"

say "Stop: SIGTERM"
kill -TERM "$ingester"
code=0
wait "$ingester" || code=$?
ingester=
[ "$code" = 0 ] || fail "the ingester ended with $code"
sed -n 's/.*"message":"\(all is in blobs\)".*/the ingester said: \1/p' "$work/ingest.log"
echo
echo "All counts were right, nothing is left running."

# The commands are those that make try prints.
go build -o "$work/try" ./internal/dev/try
printf '\nTo look round: make try, which keeps a shop with an incident at http://127.0.0.1:8516/, and then\n'
"$work/try" -commands
