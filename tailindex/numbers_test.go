package tailindex_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/tailindex"
)

// tally is a table store that counts as Azure does.
type tally struct {
	storage.TableStore
	t  *testing.T
	mu sync.Mutex
	// counted from begin on
	begin                      time.Time
	transactions, rows, errors int
	lines                      int64
	sent                       int64 // bytes of keys and properties, in UTF-8
	perSecond                  map[string]int
}

func (s *tally) Upsert(ctx context.Context, table, partition string, rows []storage.Row) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(rows) > 0 && !time.Now().Before(s.begin) {
		s.count(partition, rows)
	}
	return s.TableStore.Upsert(ctx, table, partition, rows)
}

func (s *tally) count(partition string, rows []storage.Row) {
	service, _, _ := strings.Cut(partition, "~")
	second := time.Now().Unix()
	s.transactions++
	s.rows += len(rows)
	s.perSecond["account "+fmt.Sprint(second)]++
	s.perSecond["partition "+partition+fmt.Sprint(second)] += len(rows)
	for _, r := range rows {
		if r.Key[0] == 'e' {
			s.errors++
		}
		s.lines += r.Props["count"].(int64) - r.Props["omitted"].(int64)
		s.sent += int64(len(r.Key) + len(partition))
		for name, v := range r.Props {
			s.sent += int64(len(name))
			switch v := v.(type) {
			case string:
				s.sent += int64(len(v))
			case []byte:
				s.sent += int64(len(v))
			default:
				s.sent += 8
			}
		}
		// The call is for one partition, so the transaction is too. Check that it is the
		// right one.
		for l := range strings.Lines(r.Props["lines"].(string)) {
			if !strings.Contains(l, `"service":"`+service+`"`) {
				s.t.Errorf("a transaction of partition %s has the line %s", partition, l)
			}
		}
	}
}

// most is the greatest count of a second with a name that has this prefix.
func (s *tally) most(name string) int {
	most := 0
	for k, n := range s.perSecond {
		if strings.HasPrefix(k, name) {
			most = max(most, n)
		}
	}
	return most
}

// The load on the tables is as in docs/DECISIONS.md, for any records: a
// transaction a second for each service and ingester, of one row or two.
func TestNumbers(t *testing.T) {
	// The records per second of each service at each ingester are those of 1 TB a day
	// with 100 services and 20 ingesters. One in twenty is an error.
	const services, ingesters, perSecond, seconds = 10, 4, 18, 60
	synctest.Test(t, func(t *testing.T) {
		s := &tally{TableStore: mem.New(mem.Options{}), t: t, begin: time.Now().Add(5 * time.Second), perSecond: map[string]int{}}
		end := s.begin.Add(seconds * time.Second)
		var senders sync.WaitGroup
		for lane := range ingesters {
			w, stop := start(t, s, tailindex.Options{Lane: func() int { return lane }, Process: fmt.Sprintf("%08x", lane)})
			defer stop()
			for i := range services {
				service := fmt.Sprintf("service-%d", i)
				senders.Go(func() {
					for n := 0; time.Now().Before(end); n++ {
						level := "info"
						if n%20 == 0 {
							level = "error"
						}
						text := strings.Repeat("x", 323-len(line(time.Now(), level, service, "")))
						w.Accepted(1, newRun(service, uint64(n), line(time.Now(), level, service, text)))
						time.Sleep(time.Second / perSecond)
					}
				})
			}
		}
		senders.Wait()
		synctest.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		const pairs = services * ingesters
		if got := float64(s.transactions) / seconds; got < 0.97*pairs || got > 1.05*pairs {
			t.Errorf("%.1f transactions a second for %d services and %d ingesters", got, services, ingesters)
		}
		if got := s.rows - s.errors; got != s.transactions || s.errors > s.transactions {
			t.Errorf("%d rows and %d of errors in %d transactions", got, s.errors, s.transactions)
		}
		// A second may contain the end of one round and the beginning of the next.
		if got := s.most("account"); got > pairs*5/4 {
			t.Errorf("%d transactions in one second", got)
		}
		most := 2 * 2 * ((ingesters + tailindex.DefaultShards - 1) / tailindex.DefaultShards)
		if got := s.most("partition"); got > most {
			t.Errorf("%d rows in one second in one partition", got)
		}
		perRow := float64(s.sent-s.lines*323) / float64(s.rows)
		if perRow > 800 {
			t.Errorf("%.0f bytes a row besides its lines", perRow)
		}
		t.Logf("%d transactions, %d rows (%d of errors), %d lines, %d bytes: %.0f a transaction, %.0f a row besides the lines",
			s.transactions, s.rows, s.errors, s.lines, s.sent, float64(s.sent)/float64(s.transactions), perRow)
	})
}
