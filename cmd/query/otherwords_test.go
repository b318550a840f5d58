package main

import (
	"strings"
	"testing"
	"time"

	"blobtail/internal/cli"
)

// complaint runs a command line without a store, and returns its message and exit code.
func complaint(t *testing.T, args ...string) (message string, code int) {
	t.Helper()
	var out, errs strings.Builder
	code = run(t.Context(), environment{
		args: args, stdout: &out, stderr: &errs, getenv: func(string) string { return "" }, isFile: func(string) bool { return false },
		now: time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC), local: time.UTC,
	})
	return strings.TrimPrefix(strings.TrimSpace(errs.String()), "logquery: "), code
}

// A mistake that users of other programs make is answered in one line with what to type, and with
// exit code 2. Arguments are parted by blanks; a _ is a blank in one.
func TestWordsOfOtherPrograms(t *testing.T) {
	for line, want := range map[string]string{
		// grep
		"web -c":                  "unknown flag -c; to count records: --count; a container is a service here, and services are arguments: logquery web",
		"web -V":                  "unknown flag -V; for the version: --version",
		"-V":                      "unknown flag -V; for the version: --version",
		"web --context-lines 3":   "unknown flag --context-lines; for records around each match: -C 3",
		"web --context-lines":     "unknown flag --context-lines; for records around each match: -C 3",
		"web --context 3":         "--context is a store by a name of yours; for records around each match: -C 3",
		"web -F a --context=12":   "--context is a store by a name of yours; for records around each match: -C 12",
		"web -e timeout":          "unknown flag -e; to search text: -F timeout, or -g REGEX",
		"web --grep time_out":     "unknown flag --grep; to search text: -F 'time out', or -g REGEX",
		"web -E a|b":              "unknown flag -E; for a regular expression: -g 'a|b'",
		"web -P \\d+":             "unknown flag -P; for a regular expression: -g '\\d+'",
		"web --invert-match -F a": "unknown flag --invert-match; for records that do not match: -v",
		"web --max-count=5 -F a":  "unknown flag --max-count; for so many of the newest: -n 5; of the oldest: --first N",
		"web -m 5":                "unknown flag -m; for so many of the newest: -n 5; of the oldest: --first N",
		"web -m5":                 "unknown flag -m; for so many of the newest: -n 5; of the oldest: --first N",
		"web --exclude health":    "unknown flag --exclude; for records without a text: --without health",
		"web --fixed-strings":     "unknown flag --fixed-strings; for a text as it is: -F TEXT",
		"web --only-matching":     "unknown flag --only-matching; records are printed whole; for some fields: --fields A,B",
		"web -v":                  "-v inverts text filters: add -F, -w or -g",
		"web --silent":            "unknown flag --silent; for no notes: -q",
		"web --line-buffered":     "unknown flag --line-buffered; it is so always; leave it out",
		"web -count":              "unknown flag -count; with two dashes: --count",
		"web -csv":                "unknown flag -csv; for that form: -o csv",
		"web --colour=always":     "unknown flag --colour; for colours: --color always",
		"web --color":             "--color needs a value, such as --color auto",
		"web --count=5":           "--count takes no value; for so many of the newest: -n 5",
		"web --quiet=maybe":       "--quiet takes no value",
		"web -z":                  "unknown flag -z; see logquery read --help",
		"web -ü":                  "unknown flag -ü; see logquery read --help",
		"web --level a --level b": "-l (--level) is given twice; several levels are one list, as in --level error,warn",
		"web --levels error,warn": "unknown flag --levels; for some levels: --level error,warn",
		"web --no-such":           "unknown flag --no-such; see logquery read --help",
		"--help-me":               "unknown flag --help-me; see logquery read --help",
		"web --where request=GET": "--where: column 8: \"=\" has no place here; as a search: --search request=GET",
		// tail
		"web -f":                    "logquery read has no -f (--follow); these have: tail; to follow: logquery tail web -f",
		"web db --follow":           "logquery read has no -f (--follow); these have: tail; to follow: logquery tail web db -f",
		"tail -F web":               "-F searches a text here, and took web for it; to follow: logquery tail web -f",
		"tail --retry web":          "unknown flag --retry; a follow survives outages by itself; leave it out",
		"tail web --bytes 5":        "logquery tail has no --bytes; these have: verify; for so many of the newest: -n 5; of the oldest: --first N",
		"tail -10 web":              "there is no -10; for so many of the newest: -n 10",
		"web --watch":               "unknown flag --watch; to follow: logquery tail web -f",
		"tail web --from yesterday": "logquery tail has no --from; these have: read, hist, top, fields, patterns, new, ls, verify, bill, duckdb; for a range leave out tail: logquery web --from T",
		// journalctl
		"web -p err":                "unknown flag -p; for a level and those above it: --level error+",
		"web -p3":                   "unknown flag -p; for a level and those above it: --level error+",
		"web --priority=warning":    "unknown flag --priority; for a level and those above it: --level warn+",
		"web --priority":            "unknown flag --priority; for a level and those above it: --level warn+",
		"--unit web":                "unknown flag --unit; services are arguments: logquery web",
		"--unit=nginx.service":      "unknown flag --unit; services are arguments: logquery nginx",
		"-S yesterday":              "unknown flag -S; for the oldest time: --since yesterday",
		"web -S 2026-11-25 -U now":  "unknown flag -S; for the oldest time: --since 2026-11-25",
		"web -U now":                "unknown flag -U; for the newest time: --to now",
		"web -k":                    "unknown flag -k; certificates are always checked; an authority of your own: --ca FILE",
		"web -b":                    "unknown flag -b; for the last day: --since 1d",
		"web -x":                    "unknown flag -x; there is no catalog of messages; leave it out",
		"web -o short":              "-o short: it must be pretty, json, raw, csv or logfmt; for that: -o pretty",
		"web -o json-pretty":        "-o json-pretty: it must be pretty, json, raw, csv or logfmt; for that: -o json",
		"web -o cat":                "-o cat: it must be pretty, json, raw, csv or logfmt; for that: -o raw",
		"web -o yaml":               "-o yaml: it must be pretty, json, raw, csv or logfmt; for that: -o json",
		"web --cursor abc":          "unknown flag --cursor; to go on where a follow ended: logquery tail web -f --after abc",
		"web --since 2_days --from": "--from needs a value, such as --from T",
		"web --since 2 hours ago":   "put the time in quotes: --since '2 hours ago'",
		"web --since=2d ago":        "put the time in quotes: --since '2d ago'",
		"web -s 2h ago":             "put the time in quotes: -s '2h ago'",
		"web --disk-usage":          "unknown flag --disk-usage; logquery bill tells what is stored",
		// times
		"web --from 2026-11-25 15:04":                          "put the time in quotes: --from '2026-11-25 15:04'",
		"web --from 2026-11-25 15:04:05 --to 2026-11-25 15:06": "put the time in quotes: --from '2026-11-25 15:04:05'",
		"--to=2026-11-25 15:04 web":                            "put the time in quotes: --to '2026-11-25 15:04'",
		"hist web --until yesterday 15:04":                     "put the time in quotes: --until 'yesterday 15:04'",
		"web --day 2026-11-25 15:04":                           "put the time in quotes: --from '2026-11-25 15:04'",
		"web --tz UTC":                                         "unknown flag --tz; for a zone: --timezone UTC",
		"web --tz=Europe/Berlin":                               "unknown flag --tz; for a zone: --timezone Europe/Berlin",
		"web --gmt":                                            "unknown flag --gmt; for UTC: --utc",
		"web --start 15:04":                                    "unknown flag --start; for the oldest time: --from 15:04",
		"web --before 1h":                                      "unknown flag --before; for the newest time: --to 1h",
		"web --after 1h":                                       "logquery read has no --after; these have: tail; for the oldest time: --from",
		"web --last 2h":                                        "unknown flag --last; for the last hour: --since 2h",
		"web --hours 3":                                        "unknown flag --hours; for the last so long: --since 3h",
		"web --yesterday":                                      "unknown flag --yesterday; for yesterday: --day yesterday",
		// kubectl, docker, stern
		"--selector app=web":      "unknown flag --selector; services are arguments: logquery web",
		"web -l app=web":          "--level: no level \"app=web\"; levels are trace, debug, info, warn, error, critical, other: write error,critical or warn+; services are arguments: logquery web",
		"web --container nginx":   "unknown flag --container; services are arguments: logquery nginx",
		"--namespace prod web":    "unknown flag --namespace; services are arguments, also globs: logquery 'web-*'",
		"--all-containers":        "unknown flag --all-containers; for all services: '*'",
		"web --since-time 15:04":  "unknown flag --since-time; for the oldest time: --from 15:04",
		"web --timestamps":        "unknown flag --timestamps; each record has its time and all of its fields already; leave it out",
		"web -t":                  "unknown flag -t; each record has its time already; a service is an argument: logquery web",
		"web --previous":          "unknown flag --previous; it is so always; leave it out",
		"web --details":           "unknown flag --details; each record has its time and all of its fields already; leave it out",
		"web --all":               "unknown flag --all; for all records: -n 0",
		"web -n default":          "--number: \"default\" is no number; want one such as 100; see logquery read --help",
		"web --kubeconfig x":      "unknown flag --kubeconfig; for a store by a name of your own: --context x",
		"web --max-log-requests=": "unknown flag --max-log-requests; it is so always; leave it out",
		// logcli, jq, SQL, clients of databases
		"web --forward":             "unknown flag --forward; the oldest come first by default; leave it out",
		"web --backward":            "unknown flag --backward; for the newest first: -r",
		"web --batch 100":           "unknown flag --batch; for so many of the newest: -n 100; of the oldest: --first N",
		"web --addr http://x":       "unknown flag --addr; for a server (logquery serve): --server http://x",
		"web --host x":              "logquery read has no --host; these have: serve; for a server (logquery serve): --server x",
		"web --bearer-token s3cret": "unknown flag --bearer-token; for a token: --token-file FILE, or BLOBTAIL_TOKEN",
		"web --password s3cret":     "unknown flag --password; for a token: --token-file FILE, or BLOBTAIL_TOKEN",
		"web --insecure":            "unknown flag --insecure; certificates are always checked; an authority of your own: --ca FILE",
		"web --org-id 1":            "unknown flag --org-id; there are no tenants; what may be read is decided by the token",
		"web --query {app=_x_}":     "unknown flag --query; for LogQL: --logql '{app= x }'",
		"web --jq .status":          "unknown flag --jq; for a search: --search 'status>=500'; for jq: -o json | jq .status",
		"web --group-by status":     "unknown flag --group-by; to count the values of a field: logquery top status web",
		"web --by status":           "logquery read has no --by; these have: hist, bill; to count the values of a field: logquery top status web",
		"web --by 5m":               "logquery read has no --by; these have: hist, bill; to count by time: logquery hist web --by 5m",
		"web --columns a,b":         "unknown flag --columns; for some fields: --fields a,b",
		"web --order desc":          "unknown flag --order; records are in order of time; for the newest first: -r",
		"web --offset 10":           "unknown flag --offset; there are no pages: for the next records --from the time of the last one",
		"web --raw":                 "unknown flag --raw; for that form: -o raw",
		"web -j":                    "unknown flag -j; for that form: -o json",
		"web --file app.log":        "unknown flag --file; for a file: logquery cat app.log",
		"web --dir ./logs":          "unknown flag --dir; for a directory: --store dir:./logs",
		"web --offline":             "unknown flag --offline; for blobs alone: --live off",
		"web -n all":                "--number: \"all\" is no number; for all records it is 0; see logquery read --help",
		"tail -5f web":              "there is no -5f; for so many of the newest: -n 5 -f",
		"web -o JSON":               "-o JSON: it must be pretty, json, raw, csv or logfmt; for that: -o json",
		"web --JSON":                "unknown flag --JSON; for that form: -o json",
		"web --from 25 Nov 2026":    "put the time in quotes: --from '25 Nov 2026'",
		"web --from now - 1h":       "put the time in quotes: --from now-1h",
		"ls --all":                  "unknown flag --all; see logquery ls --help",
		"serve --token x":           "unknown flag --token; for the tokens of readers: --tokens FILE",
		"web --dry-run":             "unknown flag --dry-run; to see how it is read: --explain, or --stats",
		"web --verbose":             "unknown flag --verbose; to see how it is read: --explain, or --stats",
	} {
		args := strings.Fields(line)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "_", " ")
		}
		if got, code := complaint(t, args...); got != want || code != cli.Usage {
			t.Errorf("%s\n got %d, %s\nwant %s", line, code, got, want)
		}
	}
	if got, code := complaint(t, "web", ""); code != cli.Usage || !strings.Contains(got, "an argument is empty") {
		t.Errorf("an empty argument: %d, %s", code, got)
	}
}

// Values that are right stay so: no time is taken for the beginning of another one.
func TestTimesStayWhole(t *testing.T) {
	for _, line := range []string{"--from 2026-11-25 web", "--since 2h web", "--from yesterday --to today web", "--since 1d web-1", "--day monday 7zip", "web --context prod"} {
		if got, _ := complaint(t, strings.Fields(line)...); strings.Contains(got, "quotes") || strings.Contains(got, "-C") {
			t.Errorf("%s: %s", line, got)
		}
	}
}
