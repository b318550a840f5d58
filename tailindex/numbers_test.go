package tailindex_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/dev/corpus"
	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/tailindex"
)

// tally is a table store that counts as Azure does.
type tally struct {
	storage.TableStore
	mu sync.Mutex
	// counted from begin on
	begin                      time.Time
	transactions, rows, errors int
	billed                     int64 // bytes by which Azure charges for room
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
	second := time.Now().Unix()
	s.transactions++
	s.rows += len(rows)
	s.perSecond["account "+fmt.Sprint(second)]++
	s.perSecond["partition "+partition+fmt.Sprint(second)] += len(rows)
	for _, r := range rows {
		if r.Key[0] == 'e' {
			s.errors++
		}
		s.billed += billed(partition, r)
	}
}

// billed is the size of a row by Azure's rule: keys, names and texts in UTF-16.
func billed(partition string, r storage.Row) int64 {
	n := 4 + 2*(len(partition)+len(r.Key))
	for name, v := range r.Props {
		n += 8 + 2*len(name)
		switch v := v.(type) {
		case string:
			n += 4 + 2*len(v)
		case []byte:
			n += 4 + len(v)
		default:
			n += 8
		}
	}
	return int64(n)
}

// logLines are canonical lines of each of some services, without their beginnings up to the level.
func logLines(t *testing.T, services int) (rest [][]string) {
	t.Helper()
	rest = make([][]string, services)
	p, service := meaning.NewReader(), 0
	for r := range (corpus.Options{Seed: 1, Records: 300 * services}).All() {
		if _, err := p.Scan(r.Line); err != nil {
			t.Fatal(err)
		}
		service = (service + 1) % services
		line, _ := p.AppendLine(nil, &meaning.Defaults{Service: fmt.Sprint("service-", service)})
		rest[service] = append(rest[service], string(line[len(`{"ts":"2026-11-10T12:00:00.000000000Z`):]))
	}
	return rest
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

// The load on the tables is as in docs/dev/decisions.md, for any records: a transaction each
// interval for each service and ingester, of one row or two. The rows are small.
func TestNumbers(t *testing.T) {
	// The records per second of each service at each ingester are those of 1 TB a day with
	// 200 services and 20 ingesters.
	const services, ingesters, perSecond, seconds = 10, 4, 9, 60
	for every, most := range map[time.Duration]float64{time.Second: 0.45, 5 * time.Second: 0.30} {
		t.Run(every.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &tally{TableStore: mem.New(mem.Options{}), begin: time.Now().Add(2 * every), perSecond: map[string]int{}}
				end := s.begin.Add(seconds * time.Second)
				lines := logLines(t, services)
				var mu sync.Mutex
				var raw int64
				var senders sync.WaitGroup
				for lane := range ingesters {
					w, stop := start(t, s, tailindex.Options{Lane: func() int { return lane }, Process: fmt.Sprintf("%08x", lane), Every: every})
					defer stop()
					for i := range services {
						senders.Go(func() {
							for n := 0; time.Now().Before(end); n++ {
								// A request has the records of a service of a second.
								var batch []string
								for k := range perSecond {
									at := time.Now().Add(time.Duration(k*7919) * time.Microsecond)
									batch = append(batch, `{"ts":"`+string(record.AppendTime(nil, at.UnixNano()))+lines[i][(n*perSecond+k+lane*71)%len(lines[i])])
								}
								w.Accepted(1, newRun(fmt.Sprint("service-", i), uint64(n*1000+i*10+lane)*0x9e3779b97f4a7c15, batch...))
								mu.Lock()
								if !time.Now().Before(s.begin) {
									raw += int64(len(strings.Join(batch, "")))
								}
								mu.Unlock()
								time.Sleep(time.Second)
							}
						})
					}
				}
				senders.Wait()
				synctest.Wait()
				s.mu.Lock()
				defer s.mu.Unlock()
				const pairs = services * ingesters
				rate := float64(pairs) / every.Seconds()
				if got := float64(s.transactions) / seconds; got < 0.9*rate || got > 1.1*rate {
					t.Errorf("%.1f transactions a second for %d services and %d ingesters", got, services, ingesters)
				}
				if got := s.rows - s.errors; got != s.transactions || s.errors > s.transactions {
					t.Errorf("%d rows and %d of errors in %d transactions", got, s.errors, s.transactions)
				}
				// A second may contain the end of one round and the beginning of the next.
				if got := s.most("account"); got > pairs*5/4 {
					t.Errorf("%d transactions in one second", got)
				}
				bound := 2 * 2 * ((ingesters + tailindex.DefaultShards - 1) / tailindex.DefaultShards)
				if got := s.most("partition"); got > bound {
					t.Errorf("%d rows in one second in one partition", got)
				}
				if got := float64(s.billed) / float64(raw); got > most {
					t.Errorf("%.3f bytes of table for a byte of log", got)
				}
				t.Logf("%d transactions, %d rows (%d of errors), %d bytes, %.3f for a byte of log",
					s.transactions, s.rows, s.errors, s.billed, float64(s.billed)/float64(raw))
			})
		})
	}
}
