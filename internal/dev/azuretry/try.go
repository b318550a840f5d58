package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"blobtail/internal/dev/testenv"
	"blobtail/storage/azure"
)

// The names of all that a try makes begin with these.
const (
	containerPrefix = "blobtail-try-"
	tablePrefix     = "blobtailtry"
)

// A try is one run on one account.
type try struct {
	o              options
	getenv         func(string) string
	stdout, stderr io.Writer
	who            credentials
	container      string
	tables         string // how the names of its tables begin
	dir            string // for logs of ingesters and configurations
	store          *azure.Store
	account        *azure.Account
	watch          *watch
	ingester       *ingester // runs for several steps
	made           bool      // there is something to delete
	interrupted    bool
	found          map[string]bool // shared tables that were there before

	results []result
	claims  []claim
	facts   facts
}

// facts are the parts of the report that are no step.
type facts struct {
	sku, kind string
	region    string
	deep      bool
	skew      time.Duration
	latencies []latency
	left      int // containers and tables of earlier runs
}

// credentials are those in the environment, as storage/azure finds them.
type credentials struct {
	account  string
	kind     string // a key, a SAS, an identity
	key, sas string
}

func newTry(o options, getenv func(string) string, stdout, stderr io.Writer) (*try, error) {
	id := strings.ToLower(rand.Text()[:8])
	t := &try{
		o: o, getenv: getenv, stdout: stdout, stderr: stderr, who: readCredentials(getenv), watch: newWatch(),
		container: containerPrefix + id, tables: tablePrefix + letters(id),
	}
	var err error
	if t.o.bin, err = filepath.Abs(o.bin); err != nil {
		return nil, err
	}
	for _, name := range []string{"ingest", "logquery", "retention"} {
		if _, err := os.Stat(filepath.Join(t.o.bin, name)); err != nil && !o.clean {
			return nil, fmt.Errorf("%w; make build makes it, and -bin names its directory", err)
		}
	}
	ao := azure.Options{Getenv: getenv, Client: azcore.ClientOptions{Transport: t.watch}}
	if t.store, err = azure.Open(t.container, ao); err != nil {
		return nil, err
	}
	if t.account, err = azure.OpenAccount(t.who.account, ao); err != nil {
		return nil, err
	}
	if o.tests != "" {
		if t.o.tests, err = filepath.Abs(o.tests); err != nil {
			return nil, err
		}
	}
	if t.dir, err = os.MkdirTemp("", "azure-try-"); err != nil {
		return nil, err
	}
	return t, t.configure("")
}

// letters writes digits as letters: the prefix of the tables of the tail has no digits.
func letters(text string) string {
	return strings.NewReplacer("2", "a", "3", "b", "4", "c", "5", "d", "6", "e", "7", "f").Replace(text)
}

func readCredentials(getenv func(string) string) credentials {
	c := credentials{account: getenv("AZURE_STORAGE_ACCOUNT"), key: getenv("AZURE_STORAGE_KEY"), sas: getenv("AZURE_STORAGE_SAS_TOKEN")}
	if s := getenv("AZURE_STORAGE_CONNECTION_STRING"); s != "" {
		c = credentials{}
		for part := range strings.SplitSeq(s, ";") {
			name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
			switch strings.ToLower(name) {
			case "accountname":
				c.account = value
			case "accountkey":
				c.key = value
			case "sharedaccesssignature":
				c.sas = value
			case "usedevelopmentstorage":
				c.account, c.key = "devstoreaccount1", testenv.Key
			}
		}
	}
	switch {
	case c.key != "":
		c.kind = "a key of the account"
	case c.sas != "":
		c.kind = "a SAS"
	default:
		c.kind = "an identity (Entra ID)"
	}
	return c
}

// A result is the outcome of a step.
type result struct {
	name   string
	state  string // ok, FAILED, not tried
	detail string
	took   time.Duration
}

const (
	stateOK     = "ok"
	stateFailed = "FAILED"
	stateNot    = "not tried"
)

// notTried is the reason why a step was not tried.
type notTried struct{ why string }

func (n *notTried) Error() string { return n.why }

func skip(format string, args ...any) error { return &notTried{fmt.Sprintf(format, args...)} }

// step does a step and notes its outcome. It reports whether that is good.
func (t *try) step(ctx context.Context, name string, do func(context.Context) (string, error)) bool {
	if ctx.Err() != nil {
		t.results = append(t.results, result{name, stateNot, "interrupted", 0})
		return false
	}
	begun := time.Now()
	detail, err := do(ctx)
	r := result{name, stateOK, detail, time.Since(begun)}
	var not *notTried
	switch {
	case errors.As(err, &not):
		r.state, r.detail = stateNot, not.why
	case err != nil:
		r.state, r.detail = stateFailed, t.explained(err)
		if ctx.Err() != nil {
			r.state, r.detail = stateNot, "interrupted"
		}
	}
	t.results = append(t.results, r)
	fmt.Fprintf(t.stderr, "%-9s %-10s %6.1fs  %s\n", r.state, r.name, r.took.Seconds(), t.mask(oneLine(r.detail)))
	return r.state == stateOK
}

func (t *try) failures() (n int) {
	for _, r := range t.results {
		if r.state == stateFailed {
			n++
		}
	}
	return n
}

// steps are all steps, in their order. All but the first few go on after a failure.
func (t *try) steps(ctx context.Context) {
	if !t.step(ctx, "account", t.tryAccount) || !t.step(ctx, "container", t.makeContainer) {
		return
	}
	t.step(ctx, "check", t.tryCheck)
	t.step(ctx, "rights", t.tryRights)
	t.step(ctx, "claims", t.tryClaims)
	t.step(ctx, "contracts", t.tryContracts)
	t.step(ctx, "latencies", t.tryLatencies)
	if t.step(ctx, "kills", t.tryKills) {
		t.step(ctx, "tail", t.tryTail)
		t.step(ctx, "tiers", t.tryTiers)
		t.step(ctx, "retention", t.tryRetention)
	} else {
		for _, name := range []string{"tail", "tiers", "retention"} {
			t.step(ctx, name, func(context.Context) (string, error) { return "", skip("the step kills has to be ok") })
		}
	}
	t.ingester.stop()
	t.step(ctx, "import", t.tryImport)
	t.step(ctx, "logs", t.tryLogs)
	t.step(ctx, "grant", t.tryGrant)
	t.step(ctx, "roles", t.tryRoles)
}

// tryAccount asks the service for itself. Its first answer also says whether the credentials are
// good.
func (t *try) tryAccount(ctx context.Context) (string, error) {
	for _, err := range t.store.Tables(ctx, tablePrefix) {
		if err != nil {
			return "", err
		}
	}
	t.facts.region = t.region(ctx)
	return "reached, and the credentials are good", nil
}

// region is the region of the account, which az knows if somebody is logged in.
func (t *try) region(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "az", "storage", "account", "show", "--name", t.who.account, "--query", "primaryLocation", "--output", "tsv").Output()
	text := strings.TrimSpace(string(out))
	if err != nil || !regexp.MustCompile(`^[a-z0-9]+$`).MatchString(text) {
		return "not known: the storage does not tell, and az storage account show does not answer; add it, and the place of this host"
	}
	return text
}

// makeContainer makes the container, and the tables that the product shares between containers. A
// table that is still being deleted, perhaps by the last run, is waited for.
func (t *try) makeContainer(ctx context.Context) (string, error) {
	t.found = map[string]bool{}
	for name, err := range t.store.Tables(ctx, "") {
		if err != nil {
			return "", err
		}
		t.found[name] = true
	}
	t.made = true // perhaps, also after an error
	if err := t.store.EnsureContainer(ctx); err != nil {
		return "", err
	}
	begun := time.Now()
	for _, table := range sharedTables {
		waited, err := t.free(ctx, table)
		if err != nil {
			return "", err
		}
		if waited {
			delete(t.found, table)
		}
	}
	seen := "made; " + t.kind(ctx)
	if waited := time.Since(begun); waited > 5*time.Second {
		seen += fmt.Sprintf("; waited %.0f s for tables that were being deleted", waited.Seconds())
	}
	if t.facts.deep {
		seen += "; it has a hierarchical namespace, which is good for logquery grant alone: its lists may be in another order, and some steps fail"
	}
	return seen, nil
}

// kind asks for the kind of the account. Most roles for data may not.
func (t *try) kind(ctx context.Context) string {
	blobs, _ := t.store.Clients()
	info, err := blobs.GetAccountInfo(ctx, nil)
	if err != nil {
		return "the kind of the account is not known: " + brief(err)
	}
	t.facts.sku, t.facts.kind = string(value(info.SKUName)), string(value(info.AccountKind))
	t.facts.deep = value(info.IsHierarchicalNamespaceEnabled)
	return t.facts.kind + ", " + t.facts.sku
}

// tryCheck runs ingest check.
func (t *try) tryCheck(ctx context.Context) (string, error) {
	out, err := t.must(ctx, 0, "ingest", "check", "--wal", filepath.Join(t.dir, "unused"), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("exit 0, %d lines of ok", strings.Count(out, "ok  ")), nil
}

// explained is an error with its remedy.
func (t *try) explained(err error) string {
	if fix := t.store.Explain(err); fix != "" {
		return err.Error() + "; " + fix
	}
	return brief(err)
}

// brief is the text of an error; of one of the SDK's, which has a page, status and code.
func brief(err error) string {
	if re, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return fmt.Sprintf("%d %s", re.StatusCode, cmp.Or(re.ErrorCode, http.StatusText(re.StatusCode)))
	}
	return oneLine(err.Error())
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func list(names []string) string {
	const most = 6
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// mask removes secrets from a text, and the name of the account unless the report may have it.
func (t *try) mask(text string) string {
	for _, secret := range []string{t.who.key, t.who.sas} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "SECRET")
		}
	}
	text = regexp.MustCompile(`(sig=|AccountKey=|SharedAccessSignature=)[A-Za-z0-9%/+=_-]{9,}`).ReplaceAllString(text, "${1}SECRET")
	text = regexp.MustCompile(`--assignee [0-9A-Fa-f-]+`).ReplaceAllString(text, "--assignee OBJECT-ID")
	if !t.o.showAccount && t.who.account != "" {
		text = regexp.MustCompile(`\b`+regexp.QuoteMeta(t.who.account)+`\b`).ReplaceAllString(text, "ACCOUNT")
	}
	return text
}
