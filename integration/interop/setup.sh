#!/usr/bin/env bash
# Fetches the programs for the tests here: setup.sh npm|npm-all|debian|collector... npm leaves out
# the client of Datadog, which is as large as all others.
#
# Debian's packages are unpacked into bin/interop/debian and not installed: rsyslog and
# syslog-ng exclude each other, and neither shall become the logger of this machine.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tools=$here/../../bin/interop
mkdir -p "$tools"
tools=$(cd "$tools" && pwd)

# npm_packages installs the packages of the lockfile, unless they are there and so is the
# one that is named.
npm_packages() {
	local there=$here/clients/node_modules
	if [ "$there/.package-lock.json" -nt "$here/clients/package-lock.json" ] && [ -d "$there/$1" ]; then
		return
	fi
	(cd "$here/clients" && npm ci --ignore-scripts --no-audit --no-fund "${@:2}" </dev/null)
	touch "$there/.package-lock.json"
}

# needed prints the packages that an installation of some would fetch.
needed() {
	apt-get install -s --no-install-recommends "$@" </dev/null 2>/dev/null | awk '$1 == "Inst" { print $2 }'
	printf '%s\n' "$@"
}

debian() {
	[ ! -e "$tools/debian/done" ] || return 0
	local root=()
	[ "$(id -u)" = 0 ] || root=(sudo)
	"${root[@]}" apt-get update -q
	rm -rf "$tools/debs" "$tools/debian"
	mkdir -p "$tools/debs" "$tools/debian"
	{
		needed rsyslog rsyslog-elasticsearch
		needed syslog-ng-core syslog-ng-mod-http
		needed systemd-journal-remote
	} | sort -u >"$tools/debs/list"
	(cd "$tools/debs" && xargs apt-get download -q <list)
	for deb in "$tools"/debs/*.deb; do
		dpkg-deb -x "$deb" "$tools/debian"
	done
	touch "$tools/debian/done"
}

collector() {
	[ ! -x "$tools/collector/collector" ] || return 0
	(cd "$tools" && GOFLAGS='' CGO_ENABLED=0 go run go.opentelemetry.io/collector/cmd/builder@v0.150.0 --config "$here/configs/builder.yaml")
}

for part; do
	case $part in
	npm) npm_packages pino-loki --omit=dev ;;
	npm-all) npm_packages pino-datadog-transport ;;
	debian) debian ;;
	collector) collector ;;
	*) echo "setup.sh: no part $part" >&2; exit 2 ;;
	esac
done
