package main

import (
	"strings"
	"testing"
	"time"

	"blobtail/internal/config"
	"blobtail/internal/count"
	"blobtail/source/httpsource"
	"blobtail/source/shippers"
	"blobtail/source/sourcetest"
)

// A form whose fields are stored adds them to each line that has it, and a level by its status. All
// lines keep their text, those without the form are as they came, and both are counted.
func TestStoredForms(t *testing.T) {
	c := config.Default()
	c.Forms = config.Forms{
		{Services: []string{"old*"}, Form: "logfmt"}, {Services: []string{"nginx*"}, Form: "combined", Store: true},
		{Services: []string{"*"}, Form: "haproxy", Store: true},
	}
	c.Rules = []config.RecordRule{{Name: "agents", Service: "*", Mask: []config.Mask{{Field: "agent", With: "masked"}}}}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	h, err := compile(c)
	if err != nil {
		t.Fatal(err)
	}
	log, metrics := &sourcetest.Log{}, &count.Registry{}
	s := httpsource.New(httpsource.Options{
		Accept: h.filtered(log, metrics), Patience: time.Millisecond, Protocols: shippers.Protocols(shipping(c)), Now: sourcetest.Now,
	})
	const access = `2001:db8::7 - ann [28/Nov/2026:10:00:00 +0000] "GET /a?b=\"c\" HTTP/1.1" 502 157 "-" "Mozilla/5.0 (X11)"`
	missing, found := strings.Replace(access, " 502 ", " 404 ", 1), strings.Replace(access, " 502 ", " 200 ", 1)
	body := access + "\n" + missing + "\n" + found + "\nworker 3 restarts\n"
	for _, path := range []string{"/ingest/nginx-1", "/ingest/old"} {
		if w := sourcetest.Send(s, "POST", path, strings.NewReader(body), "Content-Type", "text/plain"); w.Code != 200 {
			t.Fatal(w.Code, w.Body)
		}
	}
	lines := log.Lines()
	log.Valid(t)
	if len(lines) != 8 {
		t.Fatalf("%d lines", len(lines))
	}
	for i, level := range []string{"error", "warn", "info"} {
		at := strings.Index(lines[4+i], `"msg"`)
		text := strings.TrimSuffix(lines[4+i][at:], "}") // as it is stored without a form
		if !strings.Contains(lines[i], `"level":"`+level+`"`) || !strings.Contains(lines[i], text+`,"ip":"2001:db8::7"`) ||
			!strings.HasSuffix(lines[i], `,"agent":"masked"}`) {
			t.Errorf("%s of %s", lines[i], level)
		}
		if strings.Contains(lines[4+i], `"ip"`) {
			t.Errorf("fields for another form: %s", lines[4+i])
		}
	}
	if !strings.HasSuffix(lines[3], `"msg":"worker 3 restarts"}`) {
		t.Error(lines[3])
	}
	// The form of old*, which reads make, is the first for it, so none is stored there.
	if page := string(metrics.Page()); !strings.Contains(page, `blobtail_form_unfit_total{services="nginx*"} 1`) {
		t.Error(page)
	}
}
