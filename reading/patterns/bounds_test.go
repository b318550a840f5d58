package patterns_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/internal/budget"
	"blobtail/internal/dev/testkit"
	"blobtail/reading/patterns"
	"blobtail/record"
)

// sum is the records of all patterns.
func sum(r *patterns.Result) (n int64) {
	for _, p := range r.Patterns {
		n += p.In[0].Count
	}
	return n + r.Others[0]
}

// A million messages that have nothing in common take no more memory than the options say, and each
// is counted.
func TestMemory(t *testing.T) {
	testkit.FullOnly(t, "a million messages")
	r := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		w := make([]byte, 6)
		for i := range w {
			w[i] = 'g' + byte(r.IntN(20))
		}
		return string(w)
	}
	m := patterns.New(patterns.Options{})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const n = 1_000_000
	for i := range n {
		words := make([]string, 1+i%7)
		for at := range words {
			words[at] = word()
		}
		e := entry(i*100_000, strings.Join(words, " "))
		if err := m.Add(0, &e); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if held := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) >> 20; held > 80 {
		t.Errorf("it holds %d MiB", held)
	} else {
		t.Logf("it holds %d MiB", held)
	}
	found := m.Patterns()
	if !found.Folded || found.Records[0] != n || sum(found) != n {
		t.Errorf("folded %v, %d records, %d in patterns", found.Folded, found.Records[0], sum(found))
	}
}

// letters is a word that is no value.
func letters(r *rand.Rand) string {
	w := make([]byte, 8)
	for i := range w {
		w[i] = 'g' + byte(r.IntN(20))
	}
	return string(w)
}

// Messages that many services have in both windows, with examples that grow, take no more memory
// than the options say.
func TestMemoryOfWindows(t *testing.T) {
	testkit.FullOnly(t, "it makes many bytes, and counts them")
	r := rand.New(rand.NewPCG(1, 2))
	const messages, services, bytes = 400, 100, 1600 << 10
	m := patterns.New(patterns.Options{Bytes: bytes})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var texts []string
	for range messages {
		texts = append(texts, letters(r)+" "+letters(r))
	}
	for w := range 2 {
		for n := range services {
			for i, text := range texts {
				e := entry(1000*n, text+" "+strings.Repeat("7", max(1+9*n, 900*w)))
				e.Line = []byte(strings.Replace(string(e.Line), `"service":"web"`, fmt.Sprintf(`"service":"a-service-with-a-name-%d"`, n), 1))
				e.ID.Index = uint32(i)
				if err := m.Add(w, &e); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > bytes {
		t.Errorf("it holds %d bytes, and may hold %d", held, bytes)
	}
	found := m.Patterns()
	if len(found.Patterns) != messages || sum(found) != messages*services || found.Others[0] > 0 {
		t.Errorf("%d patterns, %d records", len(found.Patterns), sum(found))
	}
}

// With a small budget messages are clustered to make room, as with small options.
func TestBudget(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, b := budget.NewPool(budget.Limits{Query: 3 << 20, Sure: 3 << 20}).Begin(ctx)
	defer b.End()
	r := rand.New(rand.NewPCG(1, 2))
	m := patterns.New(patterns.Options{Budget: b})
	const n = 10_000
	for i := range n {
		e := entry(i, "the user "+letters(r)+" has logged in at "+letters(r))
		if err := m.Add(0, &e); err != nil {
			t.Fatal(err)
		}
	}
	found := m.Patterns()
	if !found.Folded || len(found.Patterns) != 1 || found.Patterns[0].In[0].Count != n {
		t.Errorf("folded %v, %d patterns, %d others", found.Folded, len(found.Patterns), found.Others[0])
	}
	cancel()
	<-ctx.Done()
	testkit.Until(t, "the budget ends", func() bool { return b.Err() != nil })
	if err := found.Describe(found.Patterns); !errors.Is(err, context.Canceled) {
		t.Errorf("conditions for nobody: %v", err)
	}
}

// Conditions of many long templates that overlap take no more memory than a query has.
func TestDescribe(t *testing.T) {
	testkit.FullOnly(t, "seconds of work")
	_, b := budget.NewPool(budget.Limits{}).Begin(t.Context())
	defer b.End()
	r := rand.New(rand.NewPCG(1, 2))
	m := patterns.New(patterns.Options{Budget: b})
	const wide, narrow = 300, 4 // with a list of values, and with words
	for i := range wide {
		begin := letters(r)
		for n := range 1 + narrow {
			text := begin + " 7 7 7"
			if n > 0 {
				text = begin + strings.Repeat(" "+strings.Repeat(letters(r), 4), 29)
			}
			e := entry(10*i+n, text)
			if err := m.Add(0, &e); err != nil {
				t.Fatal(err)
			}
		}
	}
	found := m.Patterns()
	if err := found.Describe(found.Patterns); err != nil {
		t.Fatal(err)
	}
	apart := 0
	for _, p := range found.Patterns {
		apart += strings.Count(p.Where, " and not ")
	}
	if len(found.Patterns) != wide*(1+narrow) || apart != wide*narrow {
		t.Errorf("%d patterns with %d others", len(found.Patterns), apart)
	}
}

// Messages that are made to be compared for long are not.
func TestWork(t *testing.T) {
	testkit.FullOnly(t, "seconds of work")
	words := make([]string, 100)
	var messages []string
	for i := range 30_000 {
		for at := range words {
			words[at] = "aa"
		}
		words[i%100] = fmt.Sprintf("%c%c", 'g'+i%19, 'g'+i/19%19)
		words[(i/100)%100] = fmt.Sprintf("%c%c", 'g'+i%17, 'g'+i/17%13)
		messages = append(messages, strings.Join(words, " "))
	}
	start := time.Now()
	m := patterns.New(patterns.Options{})
	for i, msg := range messages {
		e := entry(i, msg)
		if err := m.Add(0, &e); err != nil {
			t.Fatal(err)
		}
	}
	r := m.Patterns()
	if took := time.Since(start); sum(r) != int64(len(messages)) || took > time.Minute {
		t.Errorf("%d of %d messages in %v", sum(r), len(messages), took)
	} else {
		t.Logf("%d patterns in %v", len(r.Patterns), took)
	}
}

// Messages of any form are counted, in templates of a length that people can read.
func TestForms(t *testing.T) {
	for _, c := range []struct {
		name     string
		messages []string
		want     []string // the templates
	}{
		{"empty", []string{"", "  ", "\n"}, []string{""}},
		{"lines", []string{"panic: 7\ngoroutine 1", "panic: 8", "panic: 9\n\nfoo"}, []string{"panic: <*> …"}},
		{"an object", []string{`{"a":1,"b":"x y","c":{"d":[1,2]}}`, `{"a":20,"b":"z","c":{"d":[1]}}`}, []string{`{"a":<*>,"b":"<*>","c":{"d":[<*>]}}`}},
		{"texts of an object", []string{`{"to": ["a","b"], "ok": true}`, `{"to": ["c"], "ok": true}`}, []string{`{"to": ["<*>"], "ok": true}`}},
		{"a broken object", []string{`{"a":1,"b`, `{"a":2,"c`}, []string{`{"a":<*>,"b`, `{"a":<*>,"c`}},
		{"a megabyte", []string{"key=" + strings.Repeat("Zm9vYmFy", 1<<17), "key=" + strings.Repeat("YmF6cXV4", 1<<17)}, []string{"key=<*> …"}},
		{"many words", []string{strings.Repeat("word ", 1<<17)}, []string{strings.Repeat("word ", 100) + "…"}},
		{"binary", []string{"a \x00\x01\x02 b", "a \x7f b", "a \x1b[31mred"}, []string{"a <*> b", "a <*>[<*>"}},
		{"a long text without blanks", []string{strings.Repeat("用户", 3000), strings.Repeat("用户", 3000) + "登录"}, []string{strings.Repeat("用户", 682) + "用 …"}},
		{"other scripts", []string{"Пользователь 17 вошёл", "Пользователь 4 вошёл", "用户 5 登录"}, []string{"Пользователь <*> вошёл", "用户 <*> 登录"}},
		{"its own sign", []string{"<*> and <*>", "5 and 6"}, []string{"<*> and <*>", "<*> and <*>"}},
		{"requests", []string{`"GET /a/b?c=1 HTTP/1.1" 200`, `"GET /d/e HTTP/1.0" 404`, `"PUT /d/e HTTP/1.0" 204`}, []string{`"GET <*> HTTP/<*>" <*>`, `"PUT <*> HTTP/<*>" <*>`}},
		{"names of users", []string{"bye ann", "bye bob", "bye cid", "bye dan", "bye eve", "see you"}, []string{"bye <*>", "see you"}},
		{"few words", []string{"state on", "state off"}, []string{"state off", "state on"}},
		{"durations", []string{"took 5ms", "took 1.2s", "took 3m10s", "took 4µs"}, []string{"took <*>"}},
		{"sizes", []string{"free 5.2 KB, used 1 B", "free 1 GiB, used 2.5 MB"}, []string{"free <*>, used <*>"}},
		{"lists", []string{"fans 1", "fans 1 2", "fans 1 2 3"}, []string{"fans <*>"}},
		{"addresses", []string{"from 10.0.0.1:80 fe80::1:abcd", "from [::1]:9000 2001:db8::7", "from web-1.example.com:443 ::1"}, nil},
		{"a syslog of a kernel", []string{
			"eth0: link up, 1000 Mbps", "eth1: link up, 100 Mbps", "CPU 0 irqstacks, hard=02345000 soft=02344000", "CPU 1 irqstacks, hard=02346000 soft=02345000",
			"audit(1122475266.456:0): initialized", "audit(1122475268.4:1): initialized",
		}, []string{"CPU <*> irqstacks, hard=<*> soft=<*>", "audit(<*>): initialized", "eth<*>: link up, <*> Mbps"}},
		{"a supercomputer", []string{
			"generating core.2275", "generating core.862", "iar 00107570 dear 0024a69c", "iar 0010adb8 dear 0246dd1c",
			"CE sym 2, at 0x0b85eee0, mask 0x05", "CE sym 20, at 0x1438f9e0, mask 0x40", "rts panic! - stopping execution",
		}, []string{"CE sym <*>, at <*>, mask <*>", "generating core.<*>", "iar <*> dear <*>", "rts panic! - stopping execution"}},
		{"a proxy", []string{
			"proxy.example.hk:5070 close, 0 bytes sent, 0 bytes received, lifetime 00:01",
			"proxy.example.hk:5070 close, 1165 bytes (1.13 KB) sent, 815 bytes received, lifetime <1 sec",
			"10.1.1.1:80 close, 3 bytes sent, 59054 bytes (57.6 KB) received, lifetime 01:10:02",
		}, []string{"<*> close, <*> bytes sent, <*> bytes received, lifetime <*>"}},
		{"an app of health", []string{"setTodayTotalDetailSteps=1514038440000##7007##548365##8661", "setTodayTotalDetailSteps=1514038440001##7008##548366##8662", "onExtend:1514038530000 14 0 4", "onExtend:1514038530001 0 0 4"},
			[]string{"onExtend:<*> <*>", "setTodayTotalDetailSteps=<*>##<*>##<*>##<*>"}},
		{"a list of nodes", []string{"inconsistent nodesets node-1 0x1fc <ok> node-2 0x1fc <ok> node-7 0x1fc <ok>", "inconsistent nodesets node-9 0x3f <ok>"}, []string{"inconsistent nodesets node-<*> <*> <ok>"}},
		{"names with numbers", []string{"tryToReloadTodayBasicSteps1514038440000|7007|5", "tryToReloadTodayBasicSteps1514038440001|7008|6"}, []string{"tryToReloadTodayBasicSteps<*>|<*>|<*>"}},
		{"hosts", []string{
			"connection from 82.83.227.67 (dsl-082-083-227-067.example.net) at Fri Jun 17 07:07:00 2005", "connection from 210.118.170.95 () at Sun Jul  3 10:05:25 2005",
			"rhost=061092085098.example.com  user=root", "rhost=5.36.59.76.dynamic-dsl.example.net.om  user=root", "rhost=207.243.167.114  user=root",
		}, []string{"connection from <*> (<*>) at <*>", "rhost=<*> user=root"}},
		{"users", []string{
			"session opened for user cyrus by (uid=0)", "session opened for user news by (uid=0)", "session closed for user news", "Invalid user admin from 10.0.0.1",
			"invalid user x-y, retry", "check pass; user unknown", "no user request", "rhost= user=root", "rhost= user=guest",
		}, []string{"session opened for user <*> by (uid=<*>)", "session closed for user <*>", "Invalid user <*> from <*>", "invalid user <*>, retry", "check pass; user unknown", "no user request", "rhost= user=root", "rhost= user=guest"}},
		{"names before parentheses", []string{
			"opened by ann(uid=0)", "opened by bob(uid=1)", "opened by cid(uid=2)", "opened by dan(uid=3)", "opened by eve(uid=4)", "opened by (uid=0)",
		}, []string{"opened by <*>(uid=<*>)", "opened by (uid=<*>)"}},
		{"places of cards", []string{"sparing on R12-M0-L1-U18", "sparing on R3-M1-L7-U2", "an L1 cache", "an L2 cache", "x-v1 ok"}, []string{"sparing on R<*>-M<*>-L<*>-U<*>", "an L1 cache", "an L2 cache", "x-v<*> ok"}},
		{"jobs", []string{"attempt_1445144423722_0020_m_000000_0 is done", "attempt_1445144423722_0020_r_000001_0 is done"}, []string{"attempt_<*> is done"}},
		{"ids of mails", []string{"j9BEMOm3010238: from=root, size=1025", "jA9IuUgv010239: from=root, size=17"}, []string{"<*>: from=root, size=<*>"}},
	} {
		r := mine(t, patterns.Options{}, c.messages)
		if sum(r) != int64(len(c.messages)) {
			t.Errorf("%s: %d of %d messages are counted", c.name, sum(r), len(c.messages))
		}
		var got []string
		for _, p := range r.Patterns {
			got = append(got, p.Template)
			if n := len(match(t, p.Where, entries(c.messages))); c.name != "its own sign" && int64(n) != p.In[0].Count {
				t.Errorf("%s: the condition of %q is true for %d of %d messages: %s", c.name, p.Template, n, p.In[0].Count, p.Where)
			}
		}
		if c.want == nil {
			t.Logf("%s: %q", c.name, got)
			continue
		}
		if a, b := fmt.Sprintf("%q", slices.Sorted(slices.Values(got))), fmt.Sprintf("%q", slices.Sorted(slices.Values(c.want))); a != b {
			t.Errorf("%s: %.600s\n want %.600s", c.name, a, b)
		}
	}
}

// Two windows share their templates.
func TestWindows(t *testing.T) {
	m := patterns.New(patterns.Options{})
	add := func(window, i int, msg string) {
		e := entry(i, msg)
		if err := m.Add(window, &e); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 200 {
		add(0, 200_000+i*1000, fmt.Sprintf("request %d done", i))
		add(1, i*1000, fmt.Sprintf("request %d done", i))
	}
	add(0, 399_999, "disk full")
	add(1, 7, "hello")
	r := m.Patterns()
	got := ""
	for _, p := range r.Patterns {
		got += fmt.Sprintf("%s %d %d; ", p.Template, p.In[0].Count, p.In[1].Count)
		for w := range p.In {
			n := int64(0)
			for _, b := range p.In[w].Buckets {
				n += b.Count
			}
			if n != p.In[w].Count || len(p.In[w].Buckets) > 60 {
				t.Errorf("%s: %d records in %d buckets of %v", p.Template, n, len(p.In[w].Buckets), r.By[w])
			}
		}
	}
	if want := "request <*> done 200 200; disk full 1 0; hello 0 1; "; got != want {
		t.Errorf("%s\n%s", got, want)
	}
}

// No message breaks the miner, each is counted, and each condition can be read and is true for its
// own example.
func FuzzMine(f *testing.F) {
	for _, text := range []string{"a 1\nb 2", "{\"a\":\"b\"}", "\"GET /a/b\" 'x", "<1 sec () (1 KB)", "é\x00ü 0x1 -", "a=b c:\\d \\", "bytes (1 KB) 5 KB", "Fri Jun 17 10/Oct/2000"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "?")
		messages := append(strings.Split(text, "\n"), text)
		r := mine(t, patterns.Options{Messages: 5}, messages)
		if sum(r) != int64(len(messages)) {
			t.Fatalf("%d of %d messages", sum(r), len(messages))
		}
		for _, p := range r.Patterns {
			found := match(t, p.Where, entries(messages))
			if len(found) == 0 && !strings.Contains(p.Where, " and not (") {
				t.Errorf("the condition of %q is never true: %s", p.Template, p.Where)
			}
		}
	})
}

func BenchmarkMine(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	var all []record.Entry
	for i := range 100_000 {
		forms := []string{
			"GET /api/v1/users/%d/orders took %dms", "user %d logged in from 10.0.0.%d", "cache lookup key=session:%08x hit=true age=%ds", "Receiving block blk_%d src: /10.1.1.1:%d dest: /10.1.1.2:50010",
			"slow query took %dms on table orders: SELECT * FROM orders WHERE user_id = %d ORDER BY created_at DESC", "retrying request to http://web-%d.internal/a/b attempt=%d after 5s: connection reset by peer",
		}
		all = append(all, entry(i, fmt.Sprintf(forms[r.IntN(len(forms))], r.IntN(100000), r.IntN(255))))
	}
	b.ReportAllocs()
	for b.Loop() {
		m := patterns.New(patterns.Options{})
		for i := range all {
			_ = m.Add(0, &all[i])
		}
		if n := len(m.Patterns().Patterns); n > 10 {
			b.Fatal(n)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(all)), "ns/message")
}
