package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// text is the report, in Markdown.
func (t *try) text(begun time.Time) string {
	var b strings.Builder
	add := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	add("## blobtail on Azure Storage: %s\n", t.verdict())
	add("| | |\n|---|---|")
	t.watch.mu.Lock()
	sent := t.watch.requests
	t.watch.mu.Unlock()
	for _, row := range [][2]string{
		{"at", begun.UTC().Format("2006-01-02 15:04 UTC") + ", " + time.Since(begun).Round(time.Second).String()},
		{"blobtail", t.version()},
		{"account", t.accountName() + ": " + orUnknown(t.facts.kind) + ", " + orUnknown(t.facts.sku)},
		{"hierarchical namespace", t.deep()},
		{"region", orUnknown(t.facts.region)},
		{"credentials", t.who.kind},
		{"answers", t.watch.versions()},
		{"slowed down (503, 429)", t.watch.throttled()},
		{"clock", fmt.Sprintf("this host is %.1f s ahead", t.facts.skew.Seconds())},
		{"requests", fmt.Sprintf("%d by this program; those of the commands and of the contracts are not counted", sent)},
		{"left by earlier runs", fmt.Sprint(t.facts.left)},
	} {
		add("| %s | %s |", row[0], cell(row[1]))
	}
	add("\n### Steps\n\n| step | outcome | time | seen |\n|---|---|---|---|")
	for _, r := range t.results {
		add("| %s | %s | %.1f s | %s |", r.name, r.state, r.took.Seconds(), cell(r.detail))
	}
	if len(t.claims) > 0 {
		add("\n### Claims\n\n| claim | holds | seen |\n|---|---|---|")
		for _, c := range t.claims {
			add("| %s | %s | %s |", cell(c.about), c.holds, cell(c.seen))
		}
	}
	if len(t.facts.latencies) > 0 {
		add("\n### Latencies\n\n| request | median | 90 %% | longest of %d |\n|---|---|---|---|", measured)
		for _, l := range t.facts.latencies {
			add("| %s | %s | %s | %s |", l.name, ms(l.median), ms(l.p90), ms(l.most))
		}
	}
	return b.String()
}

func (t *try) verdict() string {
	switch n := t.failures(); {
	case t.interrupted:
		return "interrupted"
	case n == 1:
		return "1 part FAILED"
	case n > 1:
		return fmt.Sprintf("%d parts FAILED", n)
	}
	return "all that was tried is ok"
}

func (t *try) accountName() string {
	if blobs, _ := t.store.Clients(); strings.HasPrefix(blobs.URL(), "http:") {
		return "an emulator, " + t.who.account
	}
	return t.who.account
}

// deep tells whether the account has directories.
func (t *try) deep() string {
	if t.facts.kind == "" {
		return "not known"
	}
	return fmt.Sprint(t.facts.deep)
}

func orUnknown(text string) string {
	if text == "" {
		return "not known"
	}
	return text
}

// cell is a text in one cell of a table.
func cell(text string) string { return strings.ReplaceAll(oneLine(text), "|", "\\|") }

// version is that of the commands.
func (t *try) version() string {
	text := "not known"
	if out, err := exec.Command(filepath.Join(t.o.bin, "ingest"), "--version").Output(); err == nil {
		text = oneLine(string(out))
	}
	return fmt.Sprintf("%s, %s/%s", text, runtime.GOOS, runtime.GOARCH)
}
