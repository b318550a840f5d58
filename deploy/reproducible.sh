#!/usr/bin/env bash
# Builds the release twice, checks it and compares the sums: here, and from a copy of the sources in
# another folder, with other caches, another umask, home, time zone and language, and no
# git. `make reproducible` calls it.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${RELEASE_GO:?}" "${RELEASE:?}" "${COMMIT?}"

tmp=$(mktemp -d)
# The modules of Go are read-only.
trap 'chmod -R u+w "$tmp" && rm -rf "$tmp"' EXIT
release=(make --no-print-directory dist "RELEASE_GO=$RELEASE_GO" "RELEASE=$RELEASE" "COMMIT=$COMMIT")

echo "first build: here"
(umask 022 && "${release[@]}" "DIST=$tmp/the first")

fail() { echo "reproducible: $*" >&2; exit 1; }
# All files have their sums. Each binary has its modules beside it, and says its version where it runs.
cd "$tmp/the first"
sha256sum --quiet --check SHA256SUMS
host=$(go env GOHOSTOS)/$(go env GOHOSTARCH)
for target in $RELEASE; do
	name=${target##*/} system=${target%/*}
	file=$(echo "$name-${system/\//-}"*.cdx.json)
	grep -q -F "  $file" SHA256SUMS || fail "SHA256SUMS has no $file"
	[ "$system" != "$host" ] || [[ $("./${file%.cdx.json}" --version) == "$name $VERSION, commit $COMMIT, go"* ]] ||
		fail "${file%.cdx.json} says another version than $VERSION"
done
cd - >/dev/null

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

if ! diff "$tmp/the first/SHA256SUMS" "$tmp/second/SHA256SUMS"; then
	fail "the two builds differ"
fi
echo "reproducible: $(wc -l <"$tmp/the first/SHA256SUMS") files, the same bytes in both builds"
