package main

// timesHelp is of each verb with a range.
const timesHelp = `

Times: 2026-11-20T15:04:05Z, '2026-11-20 15:04', 2026-11-20, 15:04 (the latest), 'yesterday 15:04', monday, now, -2h, '2h ago', @1795183445, and those of syslog, nginx and RFC 1123. Without a zone they are in yours (--timezone, -u).

Durations: 90s, 15m, 2h, 3d, 1w, 1mo.`

// Help implements kong's interface for the text of --help, as do the other verbs.
func (readCmd) Help() string {
	return `Examples:
  logquery web --since 1h --level error+ -n 10
  logquery web --from 'yesterday 15:00' --to 'yesterday 16:00' --where 'took_ms > 1000'
  logquery 'web-*' -F 'status=502' -C 3 -o csv --fields ts,msg,status > web.csv

A text filter is tried on the message, on each text of a record, and on each field as it is printed: status=502.` + timesHelp
}

// Help has the examples of the verb.
func (tailCmd) Help() string {
	return `Examples:
  logquery tail web
  logquery tail web api -f --level warn+
  logquery tail '*' -n 0 -f -F timeout`
}

// Help has the examples of the verb.
func (histCmd) Help() string {
	return `Examples:
  logquery hist '*' --by 1h --level error+
  logquery hist web --since 1d --by-field level,status --top 5
  logquery hist web -F timeout --since 2h -o csv` + timesHelp
}

// Help has the examples of the verb.
func (topCmd) Help() string {
	return `Examples:
  logquery top status web --since 1h
  logquery top path web --where 'status >= 500' -n 20
  logquery top service,level '*' -o csv` + timesHelp
}

// Help has the examples of the verb.
func (fieldsCmd) Help() string {
	return `Examples:
  logquery fields web
  logquery fields '*' --since 1h
  logquery fields web --level error+ -o json` + timesHelp
}

// Help has the examples of the verb.
func (patternsCmd) Help() string {
	return `Examples:
  logquery patterns web
  logquery patterns '*' --since 1h --level warn+ --examples
  logquery patterns web --since 1d -n 0 -o csv

A pattern is the text that messages have in common, with <*> for each value. -o json has
a condition for --where that is true for its records.` + timesHelp
}

// Help has the examples of the verb.
func (newCmd) Help() string {
	return `Examples:
  logquery new web
  logquery new '*' --since 15m --against 24h --level error+
  logquery new web --against 15:04 --gone --more

Without --since and --from the window is the last 15 minutes. No new pattern gives exit
code 1. If records of the window before could not be read, the code is 3, since a pattern
of these looks new.` + timesHelp
}

// Help has the examples of the verb.
func (grantCmd) Help() string {
	return `Examples:
  logquery grant web --for 1h
  logquery grant web --for 8h --ip 192.0.2.7
  logquery grant web -q --store azure:myaccount/logs

The SAS goes to stdout. It needs an account with a hierarchical namespace, and an
identity with the roles Storage Blob Data Reader and Storage Blob Delegator. For other
accounts the command prints the role assignment that gives the same right.`
}

// Help has the examples of the verb.
func (lsCmd) Help() string {
	return `Examples:
  logquery ls
  logquery ls web --sort records
  logquery ls web --names --since 2h`
}

// Help has the examples of the verb.
func (ingestersCmd) Help() string {
	return `Examples:
  logquery ingesters
  logquery ingesters -o json
  logquery --context prod ingesters`
}

// Help has the examples of the verb.
func (catCmd) Help() string {
	return `Examples:
  logquery cat web/2026/11/20/1500/000001.log
  logquery cat ./000001.log -o pretty
  logquery cat ./000001.log -o csv --fields ts,msg`
}

// Help has the examples of the verb.
func (verifyCmd) Help() string {
	return `Examples:
  logquery verify
  logquery verify 'web-*' --since 1d
  logquery verify --public-key ./close.pub` + timesHelp
}

// Help has the examples of the verb.
func (billCmd) Help() string {
	return `Examples:
  logquery bill
  logquery bill --since 30d
  logquery bill --by day -o csv` + timesHelp
}

// Help has the examples of the verb.
func (costCmd) Help() string {
	return `Examples:
  logquery cost
  logquery cost --plan ./plan.yaml
  logquery cost --plan ./plan.yaml --prices ./prices.yaml -o json

Without --plan it is the load of configs/plan.yaml: a terabyte a day of 200 services. It reads no store.
The keys of a plan are services, ingesters, ingesters-per-service, bytes-per-day, line-bytes, ratio, keep,
soft-delete, reads-per-day, read-range, reads-of-cool, followers, compaction, tiers, machines, flush, ship and tail.
Only bytes-per-day is mandatory; others that are left out are those of configs/plan.yaml.`
}

// Help has the examples of the verb.
func (contextCmd) Help() string {
	return `Examples:
  logquery context add prod --store azure:myaccount/logs --live-url http://10.0.0.4:8514
  logquery context add team --server https://logs.example.com --token-file ./token --ca ./ca.crt
  logquery --context team ls`
}

// Help has the examples of the verb.
func (completionCmd) Help() string {
	return `Examples:
  source <(logquery completion bash)
  logquery completion zsh > "${fpath[1]}/_logquery"
  logquery completion fish > ~/.config/fish/completions/logquery.fish`
}

// Help has the examples of the verb.
func (manCmd) Help() string {
	return `Examples:
  logquery man | man -l -
  logquery man > logquery.1
  logquery man > /usr/local/share/man/man1/logquery.1`
}
