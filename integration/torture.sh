#!/usr/bin/env bash
# The tests that find rare faults, for an hour and more rather than moments, and
# their figures at the end. `make torture` calls it.
#
#   integration/torture.sh [PART...]     all parts, or those named
#
# Two lanes of parts run at the same time: in one the parts with real processes, which
# wait much, in the other those that only compute. The second takes the processor time
# that the first leaves: an Azurite that gets too little falls behind for minutes.
#
# TORTURE_MINUTES is the time for all of it, about: what can take any time takes
# its share. TORTURE_KILLS, TORTURE_STATES, TORTURE_CORRUPTIONS, TORTURE_RACES
# and TORTURE_WORLDS are counts.
set -uo pipefail
cd "$(dirname "$0")/.."

minutes=${TORTURE_MINUTES:-70}
kills=${TORTURE_KILLS:-10000}
states=${TORTURE_STATES:-300000}
corruptions=${TORTURE_CORRUPTIONS:-100000}
races=${TORTURE_RACES:-4000}
worlds=${TORTURE_WORLDS:-50000}
share=$(awk -v m="$minutes" 'BEGIN { printf "%.2f", m / 12 }')
work=$(mktemp -d)
logs=$work/logs failed=$work/failed
mkdir "$logs" && : >"$failed"

# run NAME COMMAND...: one test run. Its log is kept.
run() {
	local name=$1 begun=$SECONDS
	shift
	if "$@" >>"$logs/$name" 2>&1 </dev/null; then
		echo "$name: passed in $((SECONDS - begun)) s"
	else
		echo "$name: FAILED after $((SECONDS - begun)) s; $logs/$name"
		echo "$name" >>"$failed"
	fi
}

tests() { # PACKAGE PATTERN [NAME=VALUE...]
	local package=$1 pattern=$2
	shift 2
	env "$@" go test -count=1 -v -timeout 24h -run "$pattern" "$package"
}

kills() { run kills tests ./integration '^TestKills$' BLOBTAIL_KILLS="$kills"; }
azure() { run azure tests ./integration '^TestKillsAzure$' BLOBTAIL_KILLS=300; }
faults() { run faults tests ./integration '^TestFaultyStore$' BLOBTAIL_TORTURE="$share"; }
outage() { run outage tests ./integration '^TestLongOutage$' BLOBTAIL_TORTURE="$share"; }
stuck() { run stuck tests ./integration '^(TestOneServiceFails|TestPartitionsOfCluster)$' BLOBTAIL_TORTURE="$share"; }
disk() { run disk tests ./integration '^(TestFullDisk|TestFsyncFails)$' BLOBTAIL_TORTURE=1; }
states() {
	run states tests ./integration/sim '^TestStates$' BLOBTAIL_CRASH_STATES="$states"
	run partitions tests ./integration/sim '^TestPartitionsCost$' BLOBTAIL_TORTURE=1
}
mutants() { run mutants tests ./integration/sim '^TestMutants$'; }
complete() {
	run complete tests ./integration/complete '^TestComplete$' BLOBTAIL_COMPLETE_FIRST=1000000 BLOBTAIL_COMPLETE_SEEDS="$worlds"
	run complete-servers tests ./integration/complete '^TestServers$' BLOBTAIL_COMPLETE_FIRST=1000000 BLOBTAIL_COMPLETE_SEEDS="$worlds"
	run complete-thief tests ./integration/complete '^TestThief$' BLOBTAIL_COMPLETE_FIRST=1000000 BLOBTAIL_COMPLETE_SEEDS="$((worlds * 2 / 5))"
	run complete-mutants tests ./integration/complete '^TestMutants$'
}
closing() {
	run closing tests ./integration/closing '^(TestClosing|TestKilled)$' BLOBTAIL_CLOSING_FIRST=1000000 BLOBTAIL_CLOSING_SEEDS="$((worlds * 2 / 5))"
	run closing-mutants tests ./integration/closing '^TestMutants$'
}
reads() { run reads tests ./integration '^(TestComplete|TestOldestUnflushed)' BLOBTAIL_TORTURE=1; }
shipped() { run shipped tests ./integration '^TestShippedFleet$' BLOBTAIL_TORTURE="$share"; }
newest() { run newest tests ./integration '^(TestFresh|TestFollow|TestUnion$|TestTablesAway)' BLOBTAIL_TORTURE=2; }
retention() {
	run retention tests ./integration '^(TestRetention(|Guard|Refuses|Refused|Held|Killed|TwiceAtOnce)|TestDrop.*|TestExpired.*|TestBacklogExpires|TestHorizon.*|TestCompaction(|Killed))$' BLOBTAIL_KILLS=200 BLOBTAIL_TORTURE=1
	run retention-faults tests ./integration '^(TestRetentionFaulty|TestCompactionFaulty|TestReadersBesideRetention)$' BLOBTAIL_TORTURE=1
}
policies() {
	run policies tests ./retention '^(TestRandom|TestClockWorlds|TestKilledAnywhere|TestDropKilledAnywhere|TestTwoAtOnce)$' BLOBTAIL_TORTURE=1
	run policies-races tests ./reading/blobs '^TestRaces$' BLOBTAIL_RACES_FIRST=1000000 BLOBTAIL_RACES="$races"
	run policies-compactors tests ./retention/compact '^(TestTwoAtOnce|TestAnyHour|TestKilled|TestOverlapHangsTogether|TestLateBeforeEachRun|TestReferenceCorpus)$' BLOBTAIL_TORTURE=1 BLOBTAIL_RACES="$((races / 20))"
	run policies-simulation tests ./integration/sim '^TestSimulation$' BLOBTAIL_SIM_FIRST=2000000 BLOBTAIL_SIM_SEEDS="$((races / 4))"
}
imports() { run imports tests ./integration '^(TestImport|TestAzureLogs(Hour|Malformed)$)' BLOBTAIL_IMPORT_LINES=1000000 BLOBTAIL_KILLS=20 BLOBTAIL_AZURE_LINES=100000 BLOBTAIL_AZURE_SEEDS=5; }
send() { run send tests ./integration '^TestSend' BLOBTAIL_SEND_LINES=1000000; }
# In full, or at all, only here: the daily run has less of them.
others() { run others tests ./integration '^(TestCorpus|TestLiveOfAnotherStore|TestLoghubNATS|TestServeIncomplete|TestServeTail.*|TestSilentPeers)$' BLOBTAIL_TORTURE=1; }
# Needs python3: every route of serve is asked beside kills and hangs, and each answer compared.
attack() {
	local bin=$work/bin
	CGO_ENABLED=0 go build -o "$bin/" ./cmd/ingest ./cmd/query ./cmd/retention && mv "$bin/query" "$bin/logquery" &&
		run attack env BIN="$bin" integration/attack/attack.sh
}
hostile() { run hostile tests ./integration '^TestHostile$' BLOBTAIL_TORTURE=1; }
filters() {
	run filters tests ./reading/blobs '^(TestFilters|TestOracle)$' BLOBTAIL_FILTER_QUERIES=100000 BLOBTAIL_TORTURE=1
	run filters-metric tests ./logql/metric . BLOBTAIL_TORTURE=1
}
log() { run log tests ./buffer/wal . BLOBTAIL_TORTURE=1; }
blobs() { run blobs tests ./reading/blobs '^(TestFlippedBits|TestFlippedBitsOfFiles|TestTruncated)$' BLOBTAIL_CORRUPTIONS="$corruptions" BLOBTAIL_TORTURE=1; }

# simulation runs seeds that no day's tests run, until its share is over.
simulation() {
	local begun=$SECONDS first=1000000
	while ((SECONDS - begun < $(awk -v s="$share" 'BEGIN { printf "%d", s * 60 }'))); do
		run simulation tests ./integration/sim '^TestSimulation$' BLOBTAIL_SIM_FIRST="$first" BLOBTAIL_SIM_SEEDS=2500
		! grep -qx simulation "$failed" || return
		((first += 2500))
	done
}

# The longest part is last, so that the others report early.
processes=(hostile attack faults outage stuck disk azure reads shipped newest imports send others retention kills)
computed=(complete closing simulation states mutants policies log blobs filters)
for part in "$@"; do
	if [[ " ${processes[*]} ${computed[*]} " != *" $part "* ]]; then
		echo "torture: no part $part; there are: ${processes[*]} ${computed[*]}" >&2
		exit 2
	fi
done
wanted=" ${*:-${processes[*]} ${computed[*]}} "

# lane PART...: those of the parts that are wanted, one after the other.
lane() {
	for part in "$@"; do
		[[ $wanted != *" $part "* ]] || "$part"
	done
}
begun=$SECONDS
lane "${processes[@]}" &
(renice -n 5 -p "$BASHPID" >/dev/null; lane "${computed[@]}") &
wait

echo
echo "== figures, after $(((SECONDS - begun) / 60)) minutes"
for file in "$logs"/*; do
	echo "-- ${file##*/}"
	# What tests have to say of themselves, which begins with a file and a line.
	sed -nE 's/^ +[a-z_]+_test\.go:[0-9]+: //p' "$file" | grep -vE '^(log of ingester|seed [0-9]+$)' | sort | uniq -c | sed -E 's/^ +1 /   /' | head -n 60
done
if [[ -f $logs/kills ]]; then
	sed -nE 's/^ +[a-z_]+_test\.go:[0-9]+: ([0-9]+) sent, ([0-9]+) acknowledged.* ([0-9]+) found.*/\1 \2 \3/p' "$logs/kills" |
		awk '{ s += $1; a += $2; f += $3 } END { printf "kills in all: %d records sent, %d acknowledged, %d read\n", s, a, f }'
fi
if [[ -s $failed ]]; then
	echo "torture: FAILED: $(xargs <"$failed"); logs in $logs" >&2
	exit 1
fi
rm -rf "$work"
echo "torture: all passed: nothing acknowledged was lost, nothing was shown twice"
