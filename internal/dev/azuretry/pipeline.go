package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"blobtail/storage"
)

const (
	perBody  = 50
	killings = 3
)

// line is a record of a body.
func line(service string, at time.Time, id int) string {
	return fmt.Sprintf(`{"time":%q,"level":"info","service":%q,"msg":"record %d of a try","id":%d}`+"\n", at.UTC().Format(time.RFC3339Nano), service, id, id)
}

// tryKills sends records to an ingester that is killed meanwhile, some of the times amid an upload.
// A request without an answer is sent again. At the end each record is in the store once.
func (t *try) tryKills(ctx context.Context) (string, error) {
	var err error
	if t.ingester, err = t.start(ctx); err != nil {
		return "", err
	}
	bodies := max(t.o.records/perBody, killings+1)
	from := time.Now().Add(-time.Minute)
	again := 0
	for n := range bodies {
		var body strings.Builder
		for i := range perBody {
			id := n*perBody + i
			body.WriteString(line("try", from.Add(time.Duration(id)*time.Millisecond), id))
		}
		killed := make(chan struct{})
		if kill := (n+1)%(bodies/(killings+1)) == 0 && n+1 < bodies; kill {
			go t.killSoon(ctx, killed)
		} else {
			close(killed)
		}
		sent := t.ingester.send(ctx, body.String())
		<-killed
		for sent != nil || t.ingester.gone() {
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
			if t.ingester.gone() {
				if t.ingester, err = t.start(ctx); err != nil {
					return "", err
				}
			}
			if sent != nil {
				again++
				sent = t.ingester.send(ctx, body.String())
			}
		}
	}
	if err := t.ingester.flush(ctx); err != nil {
		return "", err
	}
	blobs, err := t.once(ctx, "try", bodies*perBody)
	return fmt.Sprintf("%d records, %d times kill -9, %d requests sent again; each record is there once, in %d blobs", bodies*perBody, killings, again, blobs), err
}

// killSoon kills the ingester within some milliseconds, amid a request and perhaps an upload.
func (t *try) killSoon(ctx context.Context, killed chan<- struct{}) {
	defer close(killed)
	i := t.ingester
	go i.flush(ctx)
	time.Sleep(time.Duration(rand.IntN(12)) * time.Millisecond)
	i.kill()
}

// gone reports whether the process has ended.
func (i *ingester) gone() bool {
	select {
	case <-i.ended:
		return true
	default:
		return false
	}
}

// once checks that a service has the records 0 to n-1, each once, and counts its blobs.
func (t *try) once(ctx context.Context, service string, n int) (blobs int, err error) {
	out, err := t.must(ctx, 0, "logquery", service, "-o", "json", "-q")
	if err != nil {
		return 0, err
	}
	seen := map[int]int{}
	for text := range strings.Lines(out) {
		var r struct{ ID int }
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			return 0, err
		}
		seen[r.ID]++
	}
	for id := range n {
		if seen[id] != 1 {
			return 0, fmt.Errorf("record %d is there %d times; %d ids of %d are there, in %d lines", id, seen[id], len(seen), n, strings.Count(out, "\n"))
		}
	}
	if len(seen) != n {
		return 0, fmt.Errorf("%d ids are there, want %d", len(seen), n)
	}
	for b, err := range t.store.List(ctx, service+"/", "") {
		if err != nil {
			return 0, err
		}
		if b.Size > 0 {
			blobs++
		}
	}
	return blobs, nil
}

// tails is the number of records of [try.tryTail].
const tails = 10

// tryTail follows a service, and measures how long each record takes from its sending to the
// terminal.
func (t *try) tryTail(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	if err := t.ingester.send(ctx, line("tailed", time.Now(), -1)); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(t.o.bin, "logquery"), "tail", "-f", "tailed", "-o", "json", "-q")
	cmd.Env, cmd.Dir = t.environ(), t.dir
	apart(cmd)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", err
	}
	defer func() { cancel(); _ = cmd.Wait() }()
	came := make(chan int, tails+1)
	go func() {
		defer close(came)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var r struct{ ID int }
			if json.Unmarshal(lines.Bytes(), &r) == nil {
				came <- r.ID
			}
		}
	}()
	var took []time.Duration
	for id := -1; id < tails; id++ {
		begun := time.Now()
		if id >= 0 {
			if err := t.ingester.send(ctx, line("tailed", begun, id)); err != nil {
				return "", err
			}
		}
		if got, ok := <-came; !ok || got != id {
			return "", fmt.Errorf("tail -f shows record %d where %d was sent (%v)", got, id, ctx.Err())
		}
		if id >= 0 {
			took = append(took, time.Since(begun))
		}
		time.Sleep(time.Duration(rand.IntN(1000)) * time.Millisecond) // the tail is written once a second
	}
	slices.Sort(took)
	text := fmt.Sprintf("%d records, each shown after %.2f s (median), %.2f s at most", tails, took[tails/2].Seconds(), took[tails-1].Seconds())
	if took[tails-1] > 10*time.Second {
		return "", errors.New(text)
	}
	return text, nil
}

// tryTiers moves a blob to each tier, and reads its service.
func (t *try) tryTiers(ctx context.Context) (string, error) {
	if err := t.ingester.send(ctx, line("tiered", time.Now(), 0)); err != nil {
		return "", err
	}
	if err := t.ingester.flush(ctx); err != nil {
		return "", err
	}
	blobs, _ := t.store.Clients()
	var key string
	for b, err := range t.store.List(ctx, "tiered/", "") {
		if err != nil {
			return "", err
		}
		key = b.Key
	}
	var seen []string
	for _, tier := range []blob.AccessTier{blob.AccessTierCool, blob.AccessTierCold, blob.AccessTierArchive} {
		if _, err := blobs.NewBlobClient(key).SetTier(ctx, tier, nil); err != nil {
			seen = append(seen, fmt.Sprintf("%s: the account refuses it (%s)", tier, brief(err)))
			continue
		}
		out, errs, code, err := t.command(ctx, nil, "logquery", "tiered", "-o", "json", "-q")
		switch {
		case err != nil:
			return "", err
		case tier != blob.AccessTierArchive && (code != 0 || strings.Count(out, "\n") != 1):
			return "", fmt.Errorf("a blob in tier %s is not read: exit %d, %s", tier, code, said(out, errs))
		case tier == blob.AccessTierArchive && (code == 0 || !strings.Contains(errs, storage.ErrArchived.Error())):
			return "", fmt.Errorf("a blob in tier %s: exit %d, and it does not say how to bring it back: %s", tier, code, said(out, errs))
		}
		text := fmt.Sprintf("%s: logquery exits %d", tier, code)
		if code != 0 {
			text += " and says: " + said("", errs)
		}
		seen = append(seen, text)
	}
	return strings.Join(seen, "; "), nil
}
