package export

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"blobtail/catalog"
	"blobtail/catalog/closed"
	"blobtail/catalog/horizon"
	"blobtail/storage"
)

const (
	form     = 1
	markBase = "_whole." // engines pass over names that begin with _
)

var isFile = regexp.MustCompile(`^part-[0-9]{4,}-[0-9a-f]{12}\.parquet$`)

// A mark says that a day is whole: of an account, in some files.
type mark struct {
	Form    int         `json:"form"`
	Store   string      `json:"store"`
	Service string      `json:"service"`
	Date    string      `json:"date"`
	Part    int         `json:"part"`    // number of the highest part of the account
	Account closed.Hash `json:"account"` // its hash
	Records int64       `json:"records"`
	Files   []string    `json:"files"` // in order; none: there is no record
}

// prefix begins the keys of a service and a day.
func prefix(service, date string) string { return "service=" + service + "/date=" + date + "/" }

// key is the key of the mark.
func (m *mark) key() string {
	return prefix(m.Service, m.Date) + markBase + short(m.Account) + "." + short(closed.HashOf([]byte(strings.Join(m.Files, "\n"))))
}

func short(h closed.Hash) string { return hex.EncodeToString(h[:8]) }

// exported is what the export has of a day.
type exported struct{ files, marks []storage.Blob }

// list lists the days of a service in the export.
func (r *run) list(ctx context.Context, service string) (map[horizon.Day]*exported, error) {
	days := map[horizon.Day]*exported{}
	for b, err := range r.to.List(ctx, "service="+service+"/", "") {
		if errors.Is(err, storage.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("the export: %w", err)
		}
		dir, name := b.Key[:strings.LastIndexByte(b.Key, '/')+1], b.Key[strings.LastIndexByte(b.Key, '/')+1:]
		at, err := time.Parse(prefix(service, time.DateOnly), dir)
		ours := isFile.MatchString(name)
		if err != nil || !ours && !strings.HasPrefix(name, markBase) {
			continue // of another program
		}
		day := horizon.DayOf(at)
		if days[day] == nil {
			days[day] = &exported{}
		}
		if ours {
			days[day].files = append(days[day].files, b)
		} else {
			days[day].marks = append(days[day].marks, b)
		}
	}
	return days, nil
}

// is reports by names alone whether the export of a day is whole, of an account, and has nothing else.
func (e *exported) is(account closed.Hash) bool {
	if len(e.marks) != 1 {
		return false
	}
	m := mark{Account: account}
	for _, b := range e.files {
		m.Files = append(m.Files, b.Key[strings.LastIndexByte(b.Key, '/')+1:])
	}
	at := func(key string) string { return key[strings.LastIndexByte(key, '/'):] }
	return at(e.marks[0].Key) == at(m.key())
}

// valid returns the mark of an account, if the export has the records of that account; nil: it has not.
func (r *run) valid(ctx context.Context, e *exported, part *closed.Part) (*mark, error) {
	for _, b := range e.marks {
		body, err := catalog.Read(ctx, r.to, b.Key, 0, -1)
		if err != nil {
			return nil, fmt.Errorf("the export: %w", err)
		}
		var m mark
		if err := json.NewDecoder(bytes.NewReader(body)).Decode(&m); err != nil || m.Form != form || m.key() != b.Key {
			continue
		}
		if m.Store != r.o.Store {
			return nil, fmt.Errorf("%s is of the store %s, and this one is %s: take another place for the export", b.Key, m.Store, r.o.Store)
		}
		has := !slices.ContainsFunc(m.Files, func(name string) bool {
			return !slices.ContainsFunc(e.files, func(b storage.Blob) bool { return b.Key == prefix(m.Service, m.Date)+name })
		})
		if has {
			has, err = r.same(ctx, &m, part)
		}
		if has || err != nil {
			at, _ := closed.ParseName(part.Name)
			m.Part, m.Account = at.Number, part.Sum
			return &m, err
		}
	}
	return nil, nil
}

// same reports whether the records of a day are those of a mark: since its part some blobs were compacted
// at most.
func (r *run) same(ctx context.Context, m *mark, part *closed.Part) (bool, error) {
	for at, _ := closed.ParseName(part.Name); part.Sum != m.Account; {
		for _, e := range part.Events {
			if e.Kind != closed.Compacted && e.Kind != closed.Deleted {
				return false, nil
			}
		}
		if at.Number--; at.Number < m.Part {
			return false, nil
		}
		before, err := catalog.ReadPart(ctx, r.from, at.String())
		if errors.Is(err, storage.ErrNotExist) || errors.Is(err, closed.ErrUnread) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if before.Sum != part.Before || len(before.Lost) != len(part.Lost) {
			return false, nil
		}
		part = before
	}
	return true, nil
}
