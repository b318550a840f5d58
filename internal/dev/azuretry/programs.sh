#!/usr/bin/env bash
# Runs the three programs in BIN on the store of a try, for TestTry, in an empty folder. SAS_ingest,
# SAS_logquery and SAS_retention are those of their roles. Each step prints a line: its name, a tab,
# and what was seen. The script ends at the first step that fails.
set -euo pipefail
exec 3>&2 2>errors
logquery() { AZURE_STORAGE_SAS_TOKEN=$SAS_logquery "$BIN/logquery" "$@"; }
retention() { AZURE_STORAGE_SAS_TOKEN=$SAS_retention "$BIN/retention" "$@"; }
ingest() { AZURE_STORAGE_SAS_TOKEN=$SAS_ingest exec "$BIN/ingest" --wal wal --listen 127.0.0.1:0 --admin 127.0.0.1:0 "$@"; }
pid=
trap 'status=$?; [ -z "$pid" ] || kill -9 "$pid"; [ $status = 0 ] || tail -n 5 errors >&3' EXIT

# start starts the ingester, and waits until it is ready.
start() {
	: >ingest.log
	ingest --flush-age 1s --flush-max-age 1s >ingest.log 2>&1 &
	pid=$!
	until grep -q '"message":"ready"' ingest.log; do
		kill -0 "$pid" 2>/dev/null || { pid=; tail -n 1 ingest.log >&2; exit 1; }
		sleep 0.1
	done
	listen=$(sed -n 's/.*"listen":"\([^"]*\)".*"message":"ready".*/\1/p' ingest.log)
	admin=$(sed -n 's/.*"admin":"\([^"]*\)".*"message":"ready".*/\1/p' ingest.log)
}

# send sends the records in body until they are acknowledged, to the next ingester if one is killed.
send() {
	local tries=0
	until curl -sf -o answer -H 'Content-Type: application/x-ndjson' --data-binary @body "http://$listen/ingest"; do
		((tries++ < 5)) || { cat answer >&2; exit 1; }
		kill -9 "$pid" || true
		wait "$pid" || true
		start
	done
}
flush() { curl -sf -o answer -X POST "http://$admin/flush"; }

# once is the number of the records of the kills, if each is there once.
once() {
	logquery try -o json -q | grep -o '"id":[0-9]*' | cut -d: -f2 | sort -n >ids
	seq 0 1999 | cmp - ids >&2 && echo "2000 records, and each is there once"
}

(ingest check) >check
printf 'check\t%s lines of ok\n' "$(grep -c '^ok' check)"

# Some of the kills come amid an upload. A request without an answer is sent again.
start
now=$(date -u +%Y-%m-%dT%H:%M:%S)
for n in $(seq 0 39); do
	((n % 10 != 5)) || (flush & sleep "0.0$((RANDOM % 10))"; kill -9 "$pid") &
	seq $((n * 50)) $((n * 50 + 49)) | sed "s/.*/{\"time\":\"$now.&Z\",\"service\":\"try\",\"msg\":\"record & of a try\",\"id\":&}/" >body
	send
done
flush
seen=$(once)
printf 'kills\t%s after 4 times kill -9\n' "$seen"

begun=$(date +%s%N)
echo '{"service":"tailed","msg":"the newest record"}' >body
send
until [ "$(logquery tailed --live off -q -o raw)" = 'the newest record' ]; do
	((SECONDS < 600)) || exit 1
done
printf 'tail\ta reader has a record from the tail %d ms after it was sent\n' $((($(date +%s%N) - begun) / 1000000))

# The plan names three old days, the first run hides them, and the second one deletes them.
for days in 40 41 42; do
	echo "{\"time\":\"$(date -u -d "-$days days" +%Y-%m-%dT%H:%M:%SZ)\",\"service\":\"expired\",\"msg\":\"old\"}"
done >body
send
flush
echo 'retention: {default: 7d, grace: 0s}' >>"$BLOBTAIL_CONFIG"
retention plan >plan
[ "$(grep -c hides plan)" = 3 ]
retention apply --confirm "$(sed -n 's/^plan \([0-9a-f]\{64\}\)$/\1/p' plan)" >applied
retention apply >applied
seen=$(once)
printf 'retention\tthree old days are gone; %s\n' "$seen"

printf 'grant\t%s\n' "$(logquery grant try --for 1h 2>&1 | tail -n 1 || true)"
printf 'logs\t%s\n' "$(logquery '*' --store "azurelogs:$AZURE_STORAGE_ACCOUNT/\$logs" --since 3h --count -q 2>&1 | tail -n 1 || true)"
