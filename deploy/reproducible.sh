#!/usr/bin/env bash
# Builds the release twice and compares the sums: here, and from a copy of the sources in
# another folder, with other caches, another umask, home, time zone and language, and no
# git. `make reproducible` calls it.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${RELEASE_GO:?}" "${RELEASE:?}" "${COMMIT?}"

tmp=$(mktemp -d)
# The modules of Go are read-only.
trap 'chmod -R u+w "$tmp" && rm -rf "$tmp"' EXIT
release=(make --no-print-directory release "RELEASE_GO=$RELEASE_GO" "RELEASE=$RELEASE" "COMMIT=$COMMIT")

echo "first build: here"
(umask 022 && "${release[@]}" "DIST=$tmp/first")

copy="$tmp/a copy"
mkdir "$copy" "$tmp/home"
git ls-files -z --cached --others --exclude-standard -- ':!node_modules' | tar --null -T - -c | tar -x -C "$copy"
echo "second build: in $copy"
# The modules are extracted again, and everything is compiled again.
modules=$(go env GOMODCACHE)/cache/download
(
	cd "$copy"
	umask 077
	env HOME="$tmp/home" TZ=Pacific/Chatham LC_ALL=C LANG=C GOENV=off \
		GOCACHE="$tmp/cache" GOPATH="$tmp/gopath" GOMODCACHE="$tmp/gopath/pkg/mod" \
		GOPROXY="file://$modules,$(go env GOPROXY)" \
		"${release[@]}" "DIST=$tmp/second"
)

if ! diff "$tmp/first/SHA256SUMS" "$tmp/second/SHA256SUMS"; then
	echo "reproducible: the two builds differ" >&2
	exit 1
fi
echo "reproducible: $(wc -l <"$tmp/first/SHA256SUMS") files, the same bytes in both builds"
