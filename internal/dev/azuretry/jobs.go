package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"blobtail/storage"
	"blobtail/storage/azure"
)

// tryRetention makes three old days expire. The plan names them, apply wants its hash, the first
// run hides the days, and the second one deletes them and an old table.
func (t *try) tryRetention(ctx context.Context) (string, error) {
	old := time.Now().UTC().AddDate(0, 0, -40)
	table := t.tables + old.Format("20060102")
	var body strings.Builder
	for i := range 9 {
		body.WriteString(line("expired", old.AddDate(0, 0, -i/3).Add(time.Duration(i)*time.Second), i))
	}
	err := t.ingester.send(ctx, body.String())
	if err == nil {
		err = t.ingester.flush(ctx)
	}
	if err == nil {
		err = t.store.Upsert(ctx, table, "p", nil)
	}
	if err == nil {
		err = t.configure("retention: {default: 7d, grace: 0s}\n")
	}
	if err != nil {
		return "", err
	}
	if n, err := t.count(ctx, "expired/"); err != nil || n == 0 {
		return "", fmt.Errorf("%d blobs of old days, %v", n, err)
	}
	plan, err := t.must(ctx, 0, "retention", "plan")
	if err != nil {
		return "", err
	}
	hash := regexp.MustCompile(`(?m)^plan ([0-9a-f]{64})$`).FindStringSubmatch(plan)
	if hash == nil || strings.Count(plan, "hides") != 3 {
		return "", fmt.Errorf("the plan is not of three days: %s", oneLine(plan))
	}
	if _, err := t.must(ctx, 2, "retention", "apply"); err != nil { // it wants the hash
		return "", err
	}
	if _, err := t.must(ctx, 0, "retention", "apply", "--confirm", hash[1]); err != nil {
		return "", err
	}
	if _, err := t.must(ctx, 0, "retention", "apply"); err != nil {
		return "", err
	}
	return t.expired(ctx, table)
}

// expired checks that the old days and the table are gone, and that the new records are there.
func (t *try) expired(ctx context.Context, table string) (string, error) {
	if n, err := t.count(ctx, "expired/"); err != nil || n > 0 {
		return "", fmt.Errorf("%d blobs of expired days are still there, %v", n, err)
	}
	for _, err := range t.store.Scan(ctx, table, "p", "", "", 1) {
		if !errors.Is(err, storage.ErrNotExist) {
			return "", fmt.Errorf("table %s is still there: %v", table, err)
		}
	}
	n := max(t.o.records/perBody, killings+1) * perBody
	if _, err := t.once(ctx, "try", n); err != nil {
		return "", fmt.Errorf("after the deletion of old days: %w", err)
	}
	return fmt.Sprintf("plan, apply without its hash (exit 2), apply --confirm, apply: 3 old days and a table are gone, %d new records are there", n), nil
}

// count counts the blobs with a prefix.
func (t *try) count(ctx context.Context, prefix string) (n int, err error) {
	for _, err := range t.store.List(ctx, prefix, "") {
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

// Lines in the forms of Azure's own logs.
const (
	classicLine = `2.0;2022-01-03T20:3%d:02.1183620Z;GetBlob;ThrottlingError;503;4;4;authenticated;samples;samples;blob;"https://samples.blob.core.windows.net/c/2.txt";"/samples/c/2.txt";6a11d6c7-0001-0000-0000-00000000000%d;0;203.0.113.7:53372;2020-04-08;512;0;212;0;0;;;;;;"nightly-export/2.1";;;;;;;;;;` + "\n"
	monitorLine = `{"time":"2022-07-05T11:4%d:39.6047124Z","category":"StorageRead","operationName":"GetBlob","statusCode":200,"statusText":"Success","durationMs":9,"callerIpAddress":"10.0.0.1:56029","correlationId":"170464ae-101e-004b-6365-90ca9c00000%d","properties":{"accountName":"acct"},"uri":"https://acct.blob.core.windows.net:443/c/x.txt"}` + "\n"
	logLines    = 5
)

// tryImport imports logs in the forms of Azure's own from a container of this try, twice.
func (t *try) tryImport(ctx context.Context) (string, error) {
	name := t.container + "-logs"
	logs, err := t.account.Container(name)
	if err == nil {
		err = logs.EnsureContainer(ctx)
	}
	if err == nil {
		err = t.configure("")
	}
	if err != nil {
		return "", err
	}
	var classic, monitor strings.Builder
	for i := range logLines {
		fmt.Fprintf(&classic, classicLine, i, i)
		fmt.Fprintf(&monitor, monitorLine, i, i)
	}
	const resource = "resourceId=/subscriptions/0/resourceGroups/rg/providers/Microsoft.Storage/storageAccounts/acct/blobServices/default/y=2022/m=07/d=05/h=11/m=00/PT1H.json"
	err = errors.Join(logs.Create(ctx, "blob/2022/01/03/2000/000000.log", []byte(classic.String()), storage.Attrs{}),
		logs.Create(ctx, resource, []byte(monitor.String()), storage.Attrs{}))
	if err != nil {
		return "", err
	}
	from := "azurelogs:" + t.who.account + "/" + name
	for _, want := range []string{fmt.Sprintf("imported %d records", 2*logLines), "imported 0 records"} {
		out, err := t.must(ctx, 0, "ingest", "import", "--from", from, "--wal", t.dir+"/wal-of-imports", "*")
		if err != nil {
			return "", err
		}
		if !strings.HasPrefix(out, want) {
			return "", fmt.Errorf("%s; want %s", oneLine(out), want)
		}
	}
	out, err := t.must(ctx, 0, "logquery", "*", "--from", "2022-01-01", "--to", "2023-01-01", "--count", "-q")
	if err == nil && strings.TrimSpace(out) != fmt.Sprint(2*logLines) {
		err = fmt.Errorf("%s records of the imports, want %d", strings.TrimSpace(out), 2*logLines)
	}
	return fmt.Sprintf("%d classic lines and %d of Azure Monitor that this try uploaded; a second import takes none", logLines, logLines), err
}

// tryLogs looks for the account's own classic logs, and reads their last hours.
func (t *try) tryLogs(ctx context.Context) (string, error) {
	logs, err := t.account.Container(azure.ClassicLogs)
	if err != nil {
		return "", err
	}
	for _, err := range logs.List(ctx, "", "") {
		if errors.Is(err, storage.ErrNotExist) || errors.Is(err, storage.ErrUnauthorized) {
			return "", skip("$logs cannot be listed (%s): classic logs were never set, or these credentials may not read them", code(err))
		}
		if err != nil {
			return "", err
		}
		out, errs, exit, err := t.command(ctx, nil, "logquery", "*", "--store", "azurelogs:"+t.who.account+"/"+azure.ClassicLogs, "--since", "3h", "--count", "-q")
		if err != nil || exit > 1 {
			return "", fmt.Errorf("logquery of $logs: exit %d, %s, %v", exit, said(out, errs), err)
		}
		return fmt.Sprintf("$logs is there; its last 3 hours have %s records", strings.TrimSpace(out)), nil
	}
	return "", skip("$logs is there and empty: classic logs are not set (docs/AZURE-LOGS.md)")
}

// tryGrant signs a right to read, which only an identity can.
func (t *try) tryGrant(ctx context.Context) (string, error) {
	out, errs, exit, err := t.command(ctx, nil, "logquery", "grant", "try", "--for", "1h")
	switch {
	case err != nil:
		return "", err
	case t.who.key != "" || t.who.sas != "":
		if exit == 0 || !strings.Contains(errs, "an identity signs it") {
			return "", fmt.Errorf("grant by a key or SAS: exit %d, and it does not say that an identity signs: %s", exit, said(out, errs))
		}
		return "", skip("it needs an identity; the command says so (exit %d)", exit)
	case strings.Contains(errs, "does not begin with the account's name"):
		return "", skip("the endpoint has no name of the account, as an emulator's; the command says so (exit %d)", exit)
	case strings.Contains(errs+out, "hierarchical namespace"):
		return fmt.Sprintf("an account without directories: no SAS of one, and the command gives the condition for a role (exit %d)", exit), nil
	case exit != 0:
		return "", fmt.Errorf("logquery grant: exit %d: %s", exit, said(out, errs))
	}
	return "signed", nil
}
