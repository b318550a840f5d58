package remote_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"

	"blobtail/internal/dev/testkit"
	"blobtail/reading"
	"blobtail/reading/form"
	"blobtail/reading/remote"
)

// answers is a server that answers requests one after another.
type answers struct {
	list []answer
	got  []*http.Request
}

// answer is one of them. A body that is cut ends with an error instead of its end.
type answer struct {
	status int
	header map[string]string
	body   io.Reader
}

func events(body string) answer {
	return answer{200, map[string]string{"Content-Type": form.Lines}, strings.NewReader(body)}
}

func object(body string) answer {
	return answer{200, map[string]string{"Content-Type": form.JSON}, strings.NewReader(body)}
}

func problem(status int, detail string, header ...string) answer {
	h := map[string]string{"Content-Type": form.Trouble}
	for i := 0; i < len(header); i += 2 {
		h[header[i]] = header[i+1]
	}
	return answer{status, h, strings.NewReader(fmt.Sprintf(`{"type":"about:blank","title":"T","status":%d,"detail":%q}`, status, detail))}
}

// cut is a body that breaks off.
func cut(body string) io.Reader { return io.MultiReader(strings.NewReader(body), broken{}) }

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// RoundTrip implements [http.RoundTripper].
func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	a.got = append(a.got, r)
	if len(a.list) == 0 {
		return nil, errors.New("connection refused")
	}
	now := a.list[0]
	a.list = a.list[1:]
	resp := &http.Response{StatusCode: now.status, Header: http.Header{}, Body: io.NopCloser(now.body), Request: r}
	for name, value := range now.header {
		resp.Header.Set(name, value)
	}
	return resp, nil
}

func asking(t testing.TB, o remote.Options, list ...answer) (*remote.Client, *answers) {
	t.Helper()
	a := &answers{list: list}
	o.Transport = a
	c, err := remote.New("https://logs.example.com", o)
	if err != nil {
		t.Fatal(err)
	}
	return c, a
}

const (
	first  = `{"record":{"id":"1-00000000000000000000000000000000-0","line":{"ts":"2026-11-20T12:00:00Z","msg":"one }}"}}}` + "\n"
	second = `{"record":{"id":"2-00000000000000000000000000000000-0","line":{"msg":"two"}}}` + "\n"
	end    = `{"end":{"complete":true,"problems":[],"records":2,"more":true}}` + "\n"
)

// endOf is the last event of an answer with n records.
func endOf(n int) string { return strings.Replace(end, "2", fmt.Sprint(n), 1) }

func TestRecords(t *testing.T) {
	for _, row := range []struct {
		name, body string
		cut        bool
		lines      string
		fails      string // a part of the error
	}{
		{"whole", first + `{"progress":{"records":1,"bytes":10}}` + "\n" + second + end, false, `{"ts":"2026-11-20T12:00:00Z","msg":"one }}"}|{"msg":"two"}|`, ""},
		{"none", endOf(0), false, "", ""},
		{"other spelling", `{"record": {"line": {"msg":"x"}, "id": "a", "new": {"line":1}}}` + "\n" + endOf(1), false, `{"msg":"x"}|`, ""},
		{"more fields", `{"record":{"id":"a","line":{"msg":"x"},"anchor":true}}` + "\n" + endOf(1), false, `{"msg":"x"}|`, ""},
		{"no end", first + second, false, `{"ts":"2026-11-20T12:00:00Z","msg":"one }}"}|{"msg":"two"}|`, "broke off, so records are missing: unexpected EOF"},
		{"cut", first + second, true, `{"ts":"2026-11-20T12:00:00Z","msg":"one }}"}|{"msg":"two"}|`, "broke off"},
		{"cut in a line", first + second[:50], false, `{"ts":"2026-11-20T12:00:00Z","msg":"one }}"}|`, "broke off"},
		{"end without its newline", first + strings.TrimSpace(end), false, `{"ts":"2026-11-20T12:00:00Z","msg":"one }}"}|`, "broke off"},
		{"no event", first + "<html>\n" + end, false, `{"ts":"2026-11-20T12:00:00Z","msg":"one }}"}|`, "an event cannot be read"},
		{"empty", "", false, "", "broke off"},
		{"one is lost", first + endOf(2), false, `{"ts":"2026-11-20T12:00:00Z","msg":"one }}"}|`, "1 records came, and it sent 2"},
		{"one too many", first + second + endOf(1), false, `{"ts":"2026-11-20T12:00:00Z","msg":"one }}"}|{"msg":"two"}|`, "2 records came, and it sent 1"},
		{"no number", first + `{"end":{"complete":true}}` + "\n", false, `{"ts":"2026-11-20T12:00:00Z","msg":"one }}"}|`, ""},
		{"endless", strings.Repeat("x", 9<<20), false, "", "an event has more than"},
	} {
		t.Run(row.name, func(t *testing.T) {
			answer := events(row.body)
			if row.cut {
				answer.body = cut(row.body)
			}
			c, a := asking(t, remote.Options{Token: "ann.secret"}, answer)
			var lines strings.Builder
			got, err := c.Records(context.Background(), reading.Ask{Services: []string{"web"}, Range: reading.Always(), Texts: []string{"", "a&b"}}, func(b []byte) error {
				lines.WriteString(strings.ReplaceAll(string(b), "\n", "|"))
				return nil
			})
			if lines.String() != row.lines {
				t.Errorf("lines %s", lines.String())
			}
			if err != nil {
				t.Fatal(err)
			}
			var broken *remote.BrokenError
			problem := errors.Join(got.Problems()...)
			if got.Complete() != (row.fails == "") || row.fails != "" && (!errors.As(problem, &broken) || !strings.Contains(problem.Error(), row.fails)) {
				t.Errorf("%+v, %v", got, problem)
			}
			if row.fails != "" && got.Records != int64(strings.Count(row.lines, "|")) {
				t.Errorf("%d records", got.Records)
			}
			r := a.got[0]
			if r.URL.String() != "https://logs.example.com/api/v1/records?form=events&limit=0&service=web&text=a%26b" || r.Header.Get("Authorization") != "Bearer ann.secret" {
				t.Errorf("%s %v", r.URL, r.Header)
			}
		})
	}
}

// An error of emit ends the read, and is returned as it is.
func TestEmitFails(t *testing.T) {
	mine := errors.New("mine")
	c, _ := asking(t, remote.Options{}, events(first+end))
	if _, err := c.Records(context.Background(), reading.Ask{Range: reading.Always()}, func([]byte) error { return mine }); err != mine {
		t.Error(err)
	}
}

// More newest records than a server holds come in reverse, and are turned here.
func TestManyNewest(t *testing.T) {
	c, a := asking(t, remote.Options{}, events(second+first+end))
	var lines strings.Builder
	_, err := c.Records(context.Background(), reading.Ask{Range: reading.Always(), Limit: form.MostHeld + 1}, func(b []byte) error { lines.Write(b); return nil })
	if err != nil || lines.String() != `{"ts":"2026-11-20T12:00:00Z","msg":"one }}"}`+"\n"+`{"msg":"two"}`+"\n" {
		t.Errorf("%q, %v", lines.String(), err)
	}
	if got := a.got[0].URL.Query().Get("order"); got != "desc" {
		t.Errorf("order %q", got)
	}
}

// A long line is passed on whole.
func TestLongLine(t *testing.T) {
	long := `{"msg":"` + strings.Repeat("x", 1<<20) + `"}`
	c, _ := asking(t, remote.Options{}, events(`{"record":{"id":"a","line":`+long+"}}\n"+endOf(1)))
	_, err := c.Records(context.Background(), reading.Ask{Range: reading.Always()}, func(b []byte) error {
		if string(b) != long+"\n" {
			t.Errorf("%d bytes", len(b))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Answers of other hosts come in zstd.
func TestEncoded(t *testing.T) {
	var body strings.Builder
	z, err := zstd.NewWriter(&body)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(z, first+second+end); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	encoded := events(body.String())
	encoded.header["Content-Encoding"] = "zstd"
	c, a := asking(t, remote.Options{}, encoded)
	got, err := c.Records(context.Background(), reading.Ask{Range: reading.Always()}, func([]byte) error { return nil })
	if err != nil || got.Records != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	if a.got[0].Header.Get("Accept-Encoding") != "zstd" {
		t.Error("it does not ask for zstd")
	}
}

func TestRefused(t *testing.T) {
	for _, row := range []struct {
		name   string
		answer answer
		status int // 0: no reading API is there
		text   string
	}{
		{"problem", problem(404, "no service"), 404, "the server https://logs.example.com answers 404: no service"},
		{"proxy", answer{502, map[string]string{"Content-Type": "text/html"}, strings.NewReader("<html>secret</html>")}, 502, "answers 502: Bad Gateway"},
		{"page", answer{200, map[string]string{"Content-Type": "text/html"}, strings.NewReader("<html>")}, 0, `there is no reading API at https://logs.example.com: it answers 200 with "text/html"`},
		{"elsewhere", answer{302, map[string]string{"Location": "https://evil.example"}, strings.NewReader("")}, 0, "sends elsewhere (302), which is not followed"},
		{"no API", answer{404, nil, strings.NewReader("")}, 0, "no reading API"},
	} {
		c, a := asking(t, remote.Options{Token: "a.b"}, row.answer)
		_, err := c.Count(context.Background(), reading.Ask{Range: reading.Always()})
		var refused *remote.Error
		var nowhere *remote.UnreachableError
		if row.status > 0 && (!errors.As(err, &refused) || refused.Status != row.status) || row.status == 0 && !errors.As(err, &nowhere) || !strings.Contains(err.Error(), row.text) {
			t.Errorf("%s: %v", row.name, err)
		}
		if strings.Contains(err.Error(), "secret") || len(a.got) != 1 {
			t.Errorf("%s: %d requests, %v", row.name, len(a.got), err)
		}
	}
}

// A server that is too busy is asked again, as it says.
func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, a := asking(t, remote.Options{}, problem(429, "too many", "Retry-After", "2"), problem(503, "ending"), object(`{"records":7,"complete":true}`))
		begun := time.Now()
		n, err := c.Count(context.Background(), reading.Ask{Range: reading.Always()})
		if err != nil || n.Records != 7 || len(a.got) != 3 || time.Since(begun) != 3*time.Second {
			t.Errorf("%+v after %v and %d requests, %v", n, time.Since(begun), len(a.got), err)
		}
		c, _ = asking(t, remote.Options{}, problem(429, "too many"), problem(429, "too many"), problem(429, "too many"))
		var refused *remote.Error
		if _, err := c.Count(context.Background(), reading.Ask{Range: reading.Always()}); !errors.As(err, &refused) || refused.Status != 429 {
			t.Error(err)
		}
	})
}

// A part that is cut, of other bytes, or missing in its answer is no part.
func TestPartBroken(t *testing.T) {
	var whole, none bytes.Buffer
	err := gob.NewEncoder(&whole).Encode(form.Part{Of: &reading.Part{}})
	if err = errors.Join(err, gob.NewEncoder(&none).Encode(form.Part{})); err != nil {
		t.Fatal(err)
	}
	one, header := 1, map[string]string{"Content-Type": form.Portable}
	for body, broken := range map[string]bool{
		whole.String(): false, none.String(): true, whole.String()[:whole.Len()-1]: true, "": true, "<html>": true,
	} {
		c, _ := asking(t, remote.Options{}, answer{200, header, strings.NewReader(body)})
		p, _, err := c.Part(context.Background(), reading.Ask{Range: reading.Always()}, &reading.Joint{Window: &one})
		if errors.As(err, new(*remote.BrokenError)) != broken || (p == nil) != broken {
			t.Errorf("%q: %v, %v", body, p, err)
		}
	}
}

// An object that is cut is no object.
func TestObjectCut(t *testing.T) {
	for _, body := range []io.Reader{cut(`{"records":7`), strings.NewReader(`{"records":7`), cut(`{"records":7,"complete":true}`)} {
		c, _ := asking(t, remote.Options{}, answer{200, map[string]string{"Content-Type": form.JSON}, body})
		var broken *remote.BrokenError
		if n, err := c.Count(context.Background(), reading.Ask{Range: reading.Always()}); !errors.As(err, &broken) {
			t.Errorf("%+v, %v", n, err)
		}
	}
}

func TestNew(t *testing.T) {
	for _, row := range []struct {
		base, token string
		plain       bool
		says        string // "": it is a URL
	}{
		{"https://logs.example.com", "a.b", false, ""},
		{"https://logs.example.com/blobtail/", "a.b", false, ""},
		{"http://127.0.0.1:8516", "a.b", false, ""},
		{"http://[::1]:8516", "a.b", false, ""},
		{"http://localhost:8516", "a.b", false, ""},
		{"http://logs.example.com", "", false, ""},
		{"http://logs.example.com", "a.b", true, ""},
		{"http://logs.example.com", "a.b", false, "without TLS"},
		{"http://127.0.0.1.example.com", "a.b", false, "without TLS"},
		{"http://10.0.0.1", "a.b", false, "without TLS"},
		{"https://ann:pw@logs.example.com", "", false, "leave out what is before the @"},
		{"https://logs.example.com?token=pw", "", false, "more behind it"},
		{"ftp://logs.example.com", "", false, "no URL of a server"},
		{"logs.example.com", "", false, "no URL of a server"},
		{"127.0.0.1:8516", "", false, "no scheme"},
		{"https://", "", false, "names no host"},
		{"", "", false, "no URL of a server"},
	} {
		_, err := remote.New(row.base, remote.Options{Token: row.token, PlainHTTP: row.plain})
		if (err == nil) != (row.says == "") || err != nil && (!strings.Contains(err.Error(), row.says) || strings.Contains(err.Error(), "pw")) {
			t.Errorf("%s: %v", row.base, err)
		}
	}
}

// A server that is silent within an answer is given up. A reader that takes its time is not.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", form.Lines)
			_, _ = io.WriteString(w, first)
			w.(http.Flusher).Flush()
			if r.URL.Query().Get("first") == "" {
				<-r.Context().Done()
				return
			}
			_, _ = io.WriteString(w, second+end)
		})}
		l, ended := testkit.NewPipes(nil), make(chan struct{})
		go func() { defer close(ended); _ = srv.Serve(l) }()
		defer func() { srv.Close(); <-ended }()
		transport := remote.NewTransport()
		transport.DialContext = l.Dial
		defer transport.CloseIdleConnections()
		c, err := remote.New("http://127.0.0.1", remote.Options{Idle: 100 * time.Millisecond, Transport: transport})
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.Records(t.Context(), reading.Ask{Range: reading.Always()}, func([]byte) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if text := fmt.Sprint(out.Problems()); !strings.Contains(text, "it sends nothing any more") {
			t.Error(text)
		}
		_, err = c.Records(t.Context(), reading.Ask{Range: reading.Always(), First: 2}, func([]byte) error { time.Sleep(300 * time.Millisecond); return nil })
		if err != nil {
			t.Error(err)
		}
	})
}

// What a server says once nobody waits for it is no answer: it ends because of that.
func TestIdleEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := remote.New("http://127.0.0.1", remote.Options{Idle: time.Second, Transport: late{}})
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.Records(t.Context(), reading.Ask{Range: reading.Always()}, func([]byte) error { return nil })
		if err != nil || !strings.Contains(fmt.Sprint(out.Problems()), "it sends nothing any more") {
			t.Errorf("%v, %v", out.Problems(), err)
		}
	})
}

// late answers once its request is given up.
type late struct{}

func (late) RoundTrip(r *http.Request) (*http.Response, error) {
	from, to := io.Pipe()
	go func() {
		<-r.Context().Done()
		_, _ = io.WriteString(to, first+end)
		to.Close()
	}()
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {form.Lines}}, Body: from, Request: r}, nil
}

// The end of ctx ends a read at once.
func TestCancelled(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", form.Lines)
		_, _ = io.WriteString(w, first)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer srv.Close()
	transport := remote.NewTransport()
	defer transport.CloseIdleConnections()
	c, err := remote.New(srv.URL, remote.Options{Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_, err = c.Records(ctx, reading.Ask{Range: reading.Always()}, func([]byte) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A certificate that this host does not trust ends a read before the token is sent.
func TestTLS(t *testing.T) {
	var got []string
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", form.JSON)
		_, _ = io.WriteString(w, `{"records":7,"complete":true}`)
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	transport := remote.NewTransport()
	defer transport.CloseIdleConnections()
	c, err := remote.New(srv.URL, remote.Options{Token: "ann.secret", Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	var nowhere *remote.UnreachableError
	if _, err := c.Count(context.Background(), reading.Ask{Range: reading.Always()}); !errors.As(err, &nowhere) || !strings.Contains(err.Error(), "SSL_CERT_FILE") || len(got) > 0 {
		t.Errorf("%v, %v", err, got)
	}
	transport.TLSClientConfig = srv.Client().Transport.(*http.Transport).TLSClientConfig
	if n, err := c.Count(context.Background(), reading.Ask{Range: reading.Always()}); err != nil || n.Records != 7 || len(got) != 1 || got[0] != "Bearer ann.secret" {
		t.Errorf("%+v, %v, %v", n, err, got)
	}
}

// With any answer of a server a read comes to its end or to an error.
func FuzzRecords(f *testing.F) {
	f.Add(first + second + end)
	f.Add(first + second)
	f.Add(`{"record":{"id":"a\"","line":{}}}` + "\n" + end)
	f.Add(`{"record":{"id":"","line":1}}` + "\n" + `{"end":null}` + "\n")
	f.Add(`{"record":null,"end":{}}` + "\n")
	f.Fuzz(func(t *testing.T, body string) {
		c, _ := asking(t, remote.Options{}, events(body))
		n := 0
		got, err := c.Records(context.Background(), reading.Ask{Range: reading.Always()}, func(lines []byte) error {
			if len(lines) == 0 || lines[len(lines)-1] != '\n' {
				t.Errorf("no whole lines: %q", lines)
			}
			n += strings.Count(string(lines), "\n")
			return nil
		})
		if err == nil && got == nil {
			t.Error("no end and no error")
		}
		if n > strings.Count(body, "\n") {
			t.Errorf("%d lines of %d", n, strings.Count(body, "\n"))
		}
	})
}
