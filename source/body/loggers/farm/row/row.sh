# The run scripts of the groups source this file. They need root and the packages of Debian
# that they name.
set -euo pipefail
# A host name and mounts of its own, which end with the script.
if [ -z "${apart:-}" ]; then
	apart=yes exec unshare --mount --uts "$0" "$@"
fi
hostname web1
export TZ=UTC LC_ALL=C.UTF-8 HOME=/srv/orders PATH=/usr/sbin:/usr/bin:/sbin:/bin # the programs of Debian
OUT=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
shop=/srv/orders # the programs run here, so that their traces name no other directory
mkdir "$shop"
pids=()

# tidy ends the servers that still run, and removes the directory.
tidy() {
	for pid in "${pids[@]}"; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	cd /
	rm -rf "$shop"
}
trap tidy EXIT
cp -r "$here"/. "$shop"
cd "$shop"

# begin NAME: the clock before a row's program starts, which writes to the file $log.
begin() {
	name=$1
	log=$shop/$name.log
	skip=0
	from=$(date -u +%Y-%m-%dT%H:%M:%SZ)
	: >"$log"
}

# mark: the row begins behind what the program has written so far.
mark() {
	sleep 0.2
	from=$(date -u +%Y-%m-%dT%H:%M:%SZ)
	skip=$(stat -c %s "$log")
}

# last N: the row begins with the last N lines of what the program has written so far.
last() {
	sleep 0.2
	skip=$(($(stat -c %s "$log") - $(tail -n "$1" "$log" | wc -c)))
}

# end VERSION...: takes the bytes and the clock after the program has written.
end() {
	sleep 0.2
	tail -c +$((skip + 1)) "$log" >"$OUT/$name.bytes"
	echo "$from $(date -u -d "@$(($(date +%s) + 1))" +%Y-%m-%dT%H:%M:%SZ)" >"$OUT/$name.ran"
	echo "$*" >"$OUT/$name.version"
}

# package PROGRAM PACKAGE: the version of a Debian package, without Debian's own part.
package() {
	local v
	v=$(dpkg-query -W -f '${Version}' "$2")
	v=${v#*:}
	v=${v%-*}
	echo "$1 ${v%%[+~]*}"
}

# serve PORT COMMAND...: starts a server in the background, and waits for its port.
serve() {
	local port=$1
	shift
	"$@" &
	pids+=($!)
	for _ in $(seq 300); do
		(exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && return
		sleep 0.1
	done
	echo "$name: nothing listens on $port" >&2
	return 1
}

# stop: ends the server that was started last.
stop() {
	local pid=${pids[-1]}
	unset 'pids[-1]'
	kill "$pid" 2>/dev/null || true
	wait "$pid" 2>/dev/null || true
}

# port: a free port.
port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# get URL: asks a server, and drops the answer.
get() {
	curl -s -o /dev/null -m 10 -A shop/1.0 "$@" || true
}
