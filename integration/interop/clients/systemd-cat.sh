#!/usr/bin/env bash
# Two programs print into a journal of their own, which is uploaded: systemd-cat.sh URL JOURNALD
# UPLOAD... Run it in a mount namespace of its own: /run is another one here. JOURNALD is the path of
# systemd-journald, and UPLOAD the command of systemd-journal-upload.
set -euo pipefail
url=$1 journald=$2
shift 2
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/journal /run/log/journal
"$journald" &
started=$!
trap 'kill "$started"; wait "$started" || true' EXIT
until [ -S /run/systemd/journal/stdout ]; do sleep 0.1; done
(echo 'ERROR first'; sleep 1; echo second) | systemd-cat -t nightly -p info
systemd-cat -t job sh -c 'echo out; echo err >&2'
for _ in $(seq 50); do # the lines reach the journal a moment later
	[ "$(journalctl -q -o cat -t job | wc -l)" != 2 ] || break
	sleep 0.1
done
"$@" --url="$url" --follow=no --save-state=/run/state
