package main

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"blobtail/internal/cli"
	"blobtail/internal/guide"
	"blobtail/internal/when"
	"blobtail/internal/where"
	"blobtail/record"
)

// People write the flags and verbs of other programs: grep, tail, journalctl, kubectl, docker,
// stern, logcli, jq and SQL. Here are ours for them.

// otherVerbs are the words of other programs for a verb.
func otherVerbs() map[string]string {
	return map[string]string{
		"list": "ls", "services": "ls", "follow": "tail -f SERVICE", "count": "SERVICE --count", "export": "SERVICE -o csv",
		"grep": "SERVICE -F TEXT", "search": "SERVICE -F TEXT", "find": "SERVICE -F TEXT",
		"logs": "SERVICE", "log": "SERVICE", "show": "SERVICE", "get": "SERVICE", "less": "SERVICE", "journal": "SERVICE", "select": "SERVICE --where EXPR", "head": "SERVICE --first 10", "last": "tail SERVICE",
		"query": "--logql QUERY", "describe": "ls SERVICE", "stats": "fields SERVICE", "labels": "fields SERVICE", "days": "ls SERVICE", "histogram": "hist SERVICE", "du": "bill", "size": "bill",
	}
}

// otherFlags are the flags of other programs, each with what to write here. {NAME} is the value
// that was given, or NAME.
func otherFlags() map[string]string {
	return map[string]string{
		"--grep": findText, "--search": findText, "--text": findText, "--filter": findText, "-e": findText, "--pattern": findText, "--match": findText, "--contains": findText, "--find": findText,
		"--query": "for a query in LogQL: --logql {QUERY}; for a condition: --where EXPR", "--logsql": "for a condition: --where EXPR", "--kql": "for a condition: --where EXPR", "--sql": "for a condition: --where EXPR",
		"--expr": "for a condition: --where {EXPR}", "--condition": "for a condition: --where {EXPR}", "--jq": "for a condition: --where EXPR; for jq: -o json | jq {FILTER}",
		"-E": findRegex, "-P": findRegex, "--extended-regexp": findRegex, "--perl-regexp": findRegex, "--regex": findRegex, "--egrep": findRegex,
		"--fixed-strings": "for a text as it is: -F {TEXT}", "--include": "for a text as it is: -F {TEXT}", "--word-regexp": "for whole words: -w {WORDS}", "--word": "for whole words: -w {WORDS}",
		"--exclude": notText, "--invert-match": "for records that do not match: -v", "--not": notText, "--highlight": findText,
		"-V":              "for the version: --version",
		"-c":              "to count records: --count; a container is a service here, and services are arguments: logquery web",
		"--context-lines": aroundEach, "--before-lines": "for records before each match: -B {N}", "--after-lines": "for records after each match: -A {N}",
		"--max-count": newestOf, "-m": newestOf, "--max": newestOf, "--num": newestOf, "--number-of-lines": newestOf, "--entries": newestOf, "--top-n": newestOf, "--count-lines": "to count records: --count", "--total": "to count records: --count",
		"--head": "for the oldest ones: --first {N}", "--oldest": "for the oldest ones: --first {N}", "--skip": pages, "--offset": pages, "--page": pages, "--batch": "records come as they are read; for fewer: -n N",
		"--line-number": "records have no numbers; ts is their place", "--only-matching": "records are printed whole; for some fields: --fields A,B", "--files-with-matches": "for the services with matches: top service '*' -F TEXT", "-L": "for the services with matches: top service '*' -F TEXT",
		"--line-buffered": "it is so always; leave it out", "--retry": "a follow survives outages by itself; leave it out", "--pid": "to end a follow at a time: timeout 60 logquery tail SERVICE -f",
		"--watch": toFollow, "--stream": toFollow, "--wait": toFollow, "--poll": toFollow,

		"--service": asArgument, "--app": asArgument, "--unit": asArgument, "--user-unit": asArgument, "--identifier": asArgument, "--syslog-identifier": asArgument, "--container": asArgument, "--pod": asArgument, "--name": asArgument, "--job": asArgument, "--stream-name": asArgument, "--index": asArgument,
		"--selector": "services are arguments, also globs: logquery 'web-*'", "--label": labels, "--labels": labels, "--namespace": "services are arguments, also globs: logquery 'web-*'", "--exclude-container": "services are arguments, also globs: logquery 'web-*'", "--exclude-label": "for fields: --fields A,B", "--include-label": "for fields: --fields A,B",
		"--all-containers": allOfThem, "--all-namespaces": allOfThem, "--all-services": allOfThem, "--merge": allOfThem,
		"--all": "for all records: -n 0", "-a": "for all records: -n 0", "--no-tail": "for all records: -n 0", "--unlimited": "for all records: -n 0",
		"-t": "each record has its time already; a service is an argument: logquery web", "--timestamps": "each record has its time already; leave it out", "--timestamp": "each record has its time already; leave it out", "--details": "each record has all of its fields already; leave it out",
		"--previous": "records of former processes are there too; leave it out", "--prefix": "each record has its service already; leave it out", "--ignore-errors": "what can be read is printed, and the exit code is 3; leave it out", "--max-log-requests": "there is no such limit; leave it out", "--parallel-max-workers": "there is no such limit; leave it out", "--org-id": "there are no tenants; what may be read is decided by the token",
		"-b": "for the last day: --since 1d", "--boot": "for the last day: --since 1d", "-x": "there is no catalog of messages; leave it out", "--catalog": "there is no catalog of messages; leave it out", "-k": "the kernel's records are those of their service, as syslog sends them: logquery kernel; " + ofAuthority, "--dmesg": "the kernel's records are those of their service, as syslog sends them: logquery kernel", "--no-hostname": "for some fields: --fields ts,msg", "--facility": "for a field: --where 'facility == \"daemon\"'", "--system": allOfThem,
		"--cursor": "to go on where a follow ended: logquery tail SERVICE -f --after {CURSOR}", "--after-cursor": "to go on where a follow ended: logquery tail SERVICE -f --after {CURSOR}", "--show-cursor": "a follow prints its cursor at its end: logquery tail SERVICE -f", "--disk-usage": "logquery bill tells what is stored", "--list-boots": "logquery ls SERVICE lists days", "--vacuum-time": "retention plan and retention apply drop old days", "--vacuum-size": "retention plan and retention apply drop old days", "--field": "for the values of a field: logquery top {FIELD} SERVICE; for some fields: --fields A,B",

		"-p": levelMeant, "--priority": levelMeant, "--min-level": levelMeant, "--severity": levelMeant, "--loglevel": levelMeant, "--log-level": levelMeant, "--levels": "for some levels: --level {LEVELS}", "--lvl": levelMeant,
		"--error": "for a level: --level error+", "--errors": "for a level: --level error+", "--warn": "for a level: --level warn+", "--warning": "for a level: --level warn+", "--warnings": "for a level: --level warn+", "--info": "for a level: --level info", "--fatal": "for a level: --level critical", "--critical": "for a level: --level critical",

		"--start": fromTime, "--begin": fromTime, "--since-time": fromTime, "--from-time": fromTime, "--start-time": fromTime, "-S": "for the oldest time: --since {T}", "--newer-than": "for the last hour: --since {1h}", "--not-older-than": "for the last hour: --since {1h}",
		"--end": toTime, "--before": toTime, "--end-time": toTime, "--until-time": toTime, "--to-time": toTime, "-U": toTime, "--older-than": toTime,
		"--last": "for the last hour: --since {1h}", "--ago": "for the last hour: --since {1h}", "--today": "for today: --day today", "--yesterday": "for yesterday: --day yesterday", "--date": "for a day: --day {today}", "--on": "for a day: --day {today}", "--range": "for a range: --from T --to T", "--time": "for a range: --from T --to T",
		"--hours": "for the last hours: --since {2}h", "--minutes": "for the last minutes: --since {15}m", "--days": "for the last days: --since {2}d", "--hour": "for the last hours: --since {2}h", "--days-back": "for the last days: --since {2}d",
		"--tz": zoneOf, "--time-zone": zoneOf, "--zone": zoneOf, "--gmt": "for UTC: --utc", "--local": "local times are the default; leave it out", "--localtime": "local times are the default; leave it out",

		"--csv": formOf + "csv", "--tsv": formOf + "csv", "--json": formOf + "json", "-j": formOf + "json", "--jsonl": formOf + "json", "--ndjson": formOf + "json", "--raw": formOf + "raw", "--raw-output": formOf + "raw", "--plain": formOf + "raw", "--pretty": formOf + "pretty", "--logfmt": formOf + "logfmt", "--table": formOf + "pretty", "--compact-output": formOf + "json",
		"--format": "for a form: -o {csv}", "--out": "for a form: -o {csv}; to a file: > FILE", "--output-fields": fieldsOf, "--columns": fieldsOf, "--select": fieldsOf, "--column": fieldsOf, "--keys": fieldsOf, "--show": fieldsOf,
		"--colour": "for colours: --color {auto}", "--colors": "for colours: --color {auto}", "--no-colour": "for no colours: --no-color", "--silent": "for no notes: -q", "--no-messages": "for no notes: -q", "--verbose": "to see how it is read: --explain, or --stats", "--debug": "to see how it is read: --explain, or --stats", "--analyze": "to see how it is read: --explain, or --stats", "--dry-run": "to see how it would be read: --explain",

		"--desc": "for the newest first: -r", "--descending": "for the newest first: -r", "--newest-first": "for the newest first: -r", "--backward": "for the newest first: -r", "--forward": "the oldest come first by default; leave it out", "--asc": "the oldest come first by default; leave it out", "--ascending": "the oldest come first by default; leave it out", "--oldest-first": "the oldest come first by default; leave it out",
		"--sort": sorting, "--order": sorting, "--sort-by": sorting, "--order-by": sorting, "--direction": sorting,
		"--group-by": counting, "--top": counting, "--stats-by": counting, "--count-by": counting, "--facet": counting, "--uniq": counting, "--unique": counting, "--distinct": counting,
		"--interval": "for the length of a bucket: hist --by {5m}", "--bucket": "for the length of a bucket: hist --by {5m}", "--histogram": "to count by time: logquery hist SERVICE",

		"--file": "for a file: logquery cat {FILE}", "--path": ofStore, "--dir": ofStore, "--directory": ofStore, "-D": ofStore, "-d": ofStore, "--data": ofStore, "--data-dir": ofStore, "--bucket-name": "for a container of Azure: --store azure:ACCOUNT/CONTAINER", "--account": "for a container of Azure: --store azure:ACCOUNT/CONTAINER", "--account-name": "for a container of Azure: --store azure:ACCOUNT/CONTAINER",
		"--addr": ofServer, "--url": ofServer, "--endpoint": ofServer, "--host": ofServer, "--port": ofServer, "-H": ofServer,
		"--token": ofToken, "--bearer-token": ofToken, "--bearer-token-file": "for a token: --token-file {FILE}", "--user": ofToken, "--username": ofToken, "--password": ofToken, "--api-key": ofToken,
		"--insecure": ofAuthority, "--skip-verify": ofAuthority, "--tls-skip-verify": ofAuthority, "--insecure-skip-verify": ofAuthority, "--no-check-certificate": ofAuthority, "--cacert": ofAuthority, "--ca-cert": ofAuthority, "--ca-file": ofAuthority,
		"--no-live": "for blobs alone: --live off", "--offline": "for blobs alone: --live off", "--live-off": "for blobs alone: --live off", "--live-only": "for what is in no blob: --live only",
		"--profile": "for a store by a name of your own: --context {NAME}", "--cluster": "for a store by a name of your own: --context {NAME}", "--env": "for a store by a name of your own: --context {NAME}", "--kubeconfig": "for a store by a name of your own: --context NAME",
		"--usage": "for help: --help", "-?": "for help: --help",
	}
}

const (
	findText    = "to search text: -F {TEXT}, or -g REGEX"
	findRegex   = "for a regular expression: -g {REGEX}"
	notText     = "for records without a text: --without {TEXT}"
	aroundEach  = "for records around each match: -C {3}"
	newestOf    = "for so many of the newest: -n {N}; of the oldest: --first N"
	pages       = "there are no pages: for the next records --from the time of the last one"
	toFollow    = "to follow: logquery tail SERVICE -f"
	asArgument  = "services are arguments: logquery {web}"
	labels      = "services are arguments, and a field is in --where"
	allOfThem   = "for all services: '*'"
	levelMeant  = "for a level and those above it: --level {warn+}"
	fromTime    = "for the oldest time: --from {T}"
	toTime      = "for the newest time: --to {T}"
	zoneOf      = "for a zone: --timezone {ZONE}"
	formOf      = "for that form: -o "
	fieldsOf    = "for some fields: --fields {A,B}"
	sorting     = "records are in order of time; for the newest first: -r"
	counting    = "to count the values of a field: logquery top {FIELD} SERVICE"
	ofStore     = "for a directory: --store dir:{PATH}"
	ofServer    = "for a server (logquery serve): --server URL"
	ofAuthority = "certificates are always checked; an authority of your own: --ca FILE"
	ofToken     = "for a token: --token-file FILE, or BLOBTAIL_TOKEN"
)

// flagMeant tells what to write for an unknown flag; "": not known.
func (a *app) flagMeant(name string) string {
	if long := "-" + name; len(name) > 2 && name[1] != '-' {
		if guide.FlagsOf(a.model)[long] != nil {
			return "with two dashes: " + long
		}
		name = long
	}
	others := otherFlags()
	hint := others[name]
	if hint == "" && len(name) > 2 {
		hint = others[strings.ToLower(name)]
	}
	if v := verbOf(a.model, a.args[0]); strings.Contains(hint, "-n ") && v != nil && !slices.ContainsFunc(v.Flags, func(f *kong.Flag) bool { return f.Name == "number" }) {
		return "" // it is of a verb that has no number of records
	}
	if words := strings.Join(a.bare(), " "); words != "" {
		hint = strings.ReplaceAll(hint, "SERVICE", words)
	}
	begin, end := strings.Index(hint, "{"), strings.Index(hint, "}")
	if begin < 0 {
		return hint
	}
	value := a.valueOf(name)
	switch {
	case value == "":
		value = hint[begin+1 : end]
	case hint == levelMeant:
		if l := record.ParseLevel([]byte(strings.TrimSuffix(value, "+"))); l != record.Other {
			value = l.String() + "+"
		} else {
			value = hint[begin+1 : end]
		}
	case hint == asArgument:
		value = cli.ShellWords(strings.TrimSuffix(value, ".service"))
	default:
		value = cli.ShellWords(value)
	}
	return hint[:begin] + value + hint[end+1:]
}

// written is an unknown flag as it was written: a long one with one dash is a row of short ones for
// the parser.
func (a *app) written(name string) string {
	if utf8.RuneCountInString(name) != 2 && utf8.ValidString(name) {
		return name
	}
	flags, others := guide.FlagsOf(a.model), otherFlags()
	for _, arg := range a.env.args {
		bare, _, _ := strings.Cut(arg, "=")
		if !strings.HasPrefix(bare, name) || len(bare) < 3 || bare[1] == '-' {
			continue
		}
		if long := "-" + bare; flags[long] != nil || others[long] != "" {
			return bare
		}
		first, _ := utf8.DecodeRuneInString(arg[1:])
		return "-" + string(first)
	}
	return name
}

// valueOf is the value that was given with an unknown flag; "": none.
func (a *app) valueOf(name string) string {
	for i, arg := range a.env.args {
		value, joined := strings.CutPrefix(arg, name)
		switch {
		case arg == name && i+1 < len(a.env.args) && !strings.HasPrefix(a.env.args[i+1], "-"):
			return a.env.args[i+1]
		case joined && strings.HasPrefix(value, "="):
			return value[1:]
		case joined && value != "" && len(name) == 2 && name[1] != '-': // -p3
			return value
		}
	}
	return ""
}

// otherPlace tells what to write for a flag that another verb has; "": it is for that verb.
func (a *app) otherPlace(verb string, f *kong.Flag) string {
	words := strings.Join(a.bare(), " ")
	if words == "" {
		words = "SERVICE"
	}
	switch f.Name {
	case "follow":
		return "; to follow: logquery tail " + words + " -f"
	case "after":
		if v := verbOf(a.model, verb); v != nil && slices.ContainsFunc(v.Flags, func(of *kong.Flag) bool { return of.Name == "from" }) {
			return "; for the oldest time: --from"
		}
	case "from", "to", "day":
		if verb == "tail" {
			return "; for a range leave out tail: logquery " + words + " --" + f.Name + " T"
		}
	case "bytes":
		return "; " + strings.ReplaceAll(newestOf, "{N}", cmp.Or(a.valueOf("--bytes"), "N"))
	case "host":
		return "; " + ofServer
	case "step":
		return " (for numbers of LogQL); the length of a bucket is that of hist --by 5m"
	case "by":
		if field := a.valueOf("--by"); field != "" && strings.Trim(field, "0123456789smhdw") != "" {
			return "; to count the values of a field: logquery top " + cli.ShellWords(field) + " " + words
		}
		return "; to count by time: logquery hist " + words + " --by 5m"
	}
	return ""
}

// bare are the arguments that are services, as far as they can be told from a mistaken line: those
// before the first flag.
func (a *app) bare() (words []string) {
	for _, arg := range a.env.args {
		if strings.HasPrefix(arg, "-") {
			break
		}
		if verbOf(a.model, arg) == nil {
			words = append(words, cli.ShellWords(arg))
		}
	}
	return words
}

// mistyped finds a flag that means something else here than in the program that the user knows,
// and a time in several words without quotes. The parser takes both.
func (a *app) mistyped() error {
	for i, arg := range a.env.args {
		name, value, joined := strings.Cut(arg, "=")
		rest := a.env.args[i+1:]
		if arg == "--" {
			break
		}
		if !joined && len(rest) > 0 {
			value, rest = rest[0], rest[1:]
		}
		switch name {
		case "--context":
			if value != "" && strings.Trim(value, "0123456789") == "" {
				return cli.Usagef("--context is a store by a name of yours; for records around each match: -C %s", value)
			}
		case "--from", "--to", "--until", "--since", "-s", "--day":
			if text := unquoted(name, value, rest, a.env.now); text != "" {
				flag := name
				if name == "--day" {
					flag = "--from"
				}
				return cli.Usagef("put the time in quotes: %s %s", flag, cli.ShellWords(text))
			}
		case "-F":
			if slices.Contains(a.env.args[:i], "tail") && !joined && len(a.bare())+len(rest) == 0 {
				return cli.Usagef("-F searches a text here, and took %s for it; to follow: logquery tail %s -f", cli.ShellWords(value), cli.ShellWords(value))
			}
		}
	}
	return nil
}

// unquoted is a time that a shell has cut into words: the value of a flag and the arguments behind
// it; "": the value is whole.
func unquoted(flag, value string, rest []string, now time.Time) string {
	const most = 3 // words, as in 2 hours ago
	if len(rest) > 1 && value == "now" && (rest[0] == "-" || rest[0] == "+") {
		return value + rest[0] + rest[1]
	}
	for n := min(most, len(rest)); n > 0; n-- {
		next := rest[0]
		if strings.HasPrefix(next, "-") || strings.Trim(next, "0123456789:.,apmAPMZ") != "" && !slices.Contains(timeWords, strings.ToLower(next)) {
			return ""
		}
		text := value + " " + strings.Join(rest[:n], " ")
		var err error
		if flag == "--since" || flag == "-s" {
			_, err = when.Since(text, now, now)
		} else {
			_, err = when.Time(text, now)
		}
		if err == nil {
			return text
		}
	}
	return ""
}

// timeWords are the words of times behind a first one.
var timeWords = []string{"ago", "second", "seconds", "minute", "minutes", "min", "hour", "hours", "day", "days", "week", "weeks", "month", "months", "year", "years", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", "utc", "am", "pm"}

// otherForm is our form of output for that of another program; "": there is none.
func otherForm(word string) string {
	return map[string]string{
		"short": "pretty", "short-iso": "pretty", "short-precise": "pretty", "default": "pretty", "table": "pretty", "wide": "pretty", "log": "pretty", "human": "pretty", "plain": "raw", "cat": "raw", "message": "raw", "msg": "raw", "line": "raw",
		"verbose": "json", "jsonl": "json", "ndjson": "json", "json-pretty": "json", "json-sse": "json", "extjson": "json", "ppextjson": "json", "export": "json", "js": "json", "tsv": "csv", "excel": "csv", "xls": "csv", "kv": "logfmt",
	}[strings.ToLower(word)]
}

// argMeant tells what was probably meant by an argument that is no service: a condition, a time, or
// another field; "": not known.
func (a *app) argMeant(typed string) string {
	if at := slices.Index(a.env.args, typed); at > 1 && a.env.args[at-2] == "--fields" {
		return "fields are one list: --fields " + cli.ShellWords(strings.TrimSuffix(a.env.args[at-1], ",")+","+typed)
	}
	if condition().MatchString(typed) {
		text := typed
		if _, err := where.Parse(nil, typed); err != nil {
			_, fix, ok := strings.Cut(err.Error(), "; write ")
			if !ok {
				return ""
			}
			text = fix
		}
		return "for a condition: --where " + cli.ShellWords(text)
	}
	if length, ok := when.Length(typed); ok && length > 0 {
		if a.verb.Name == "hist" {
			return "for the length of a bucket: --by " + typed
		}
		return "for the last so long: --since " + typed
	}
	if _, _, err := when.Day(typed, a.now); err == nil {
		return "for a day: --day " + cli.ShellWords(typed)
	}
	if _, err := when.Time(typed, a.now); err == nil {
		return "for a time: --from " + cli.ShellWords(typed)
	}
	return ""
}

// condition is how a comparison of a field begins.
func condition() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*\s*(?:=|!=|<|>|:\s*[^/])`)
}
