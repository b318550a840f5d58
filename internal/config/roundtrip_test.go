package config_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"blobtail/internal/config"
	"blobtail/internal/openstore"
	"blobtail/record/ack"
)

// texts are parts of the texts that a test draws: YAML, kong or Go may read them as something else
// than a text.
var texts = []string{
	"$", "$$", "${HOME}", "${", "}", `"`, `'`, `\`, `\n`, `\x24`, "\n", "\r", "\t", " ", "  ", ":", ": ", "#", " #", "-", "- ", "?", "&a", "*a", "!", "!!str", "|", ">", "%", "@", "`",
	"{", "[", "]", ",", "~", "null", "true", "no", "0x1", "1e3", "1_000", "07", ".inf", "=", "+", "@b", "1:30", "<<", "...", "---", "a", "web", "é", "日本", "🙂", "\u0085", "\u2028", "\u2029", "\ufeff", "\u00a0", "\x00", "\x07", "\x7f", "\x1b", "\u0080", "\u200b", "\U000e0001", "\ufffd",
}

func drawText(r *rand.Rand) string {
	var text strings.Builder
	for range r.IntN(5) {
		text.WriteString(texts[r.IntN(len(texts))])
	}
	return text.String()
}

// fill sets the texts of a configuration to drawn ones, and makes lists.
func fill(r *rand.Rand, v reflect.Value) {
	switch of := v.Addr().Interface().(type) {
	case *config.Duration:
		*of = config.Duration(r.Int64N(1 << r.IntN(62)))
		return
	case *config.Size:
		*of = config.Size(r.Int64N(1 << r.IntN(52)))
		return
	case *config.Age:
		*of = config.Age(24*time.Hour + time.Duration(r.Int64N(1<<r.IntN(61))))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[openstore.Spec]() {
			if spec, err := openstore.Parse("dir:/x/" + drawText(r)); err == nil {
				v.Set(reflect.ValueOf(spec))
			}
			return
		}
		for i := range v.NumField() {
			if tag := v.Type().Field(i).Tag.Get("yaml"); v.Type().Field(i).IsExported() && tag != "" && tag != "-" {
				fill(r, v.Field(i))
			}
		}
	case reflect.Slice:
		n := r.IntN(3)
		if n == 0 && v.IsNil() {
			return // such a list is left out
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(r, v.Index(i))
		}
	case reflect.String:
		v.SetString(drawText(r))
	case reflect.Float64:
		v.SetFloat(float64(r.IntN(1000)) / 1000)
	case reflect.Int:
		v.SetInt(r.Int64N(1 << 40))
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	}
}

// A printed configuration is the same when it is read again, with any texts in it.
func TestAnyTextReadsBack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	path := filepath.Join(t.TempDir(), "c.yaml")
	for range 400 {
		c := config.Default()
		fill(r, reflect.ValueOf(&c).Elem())
		c.NATS.URL = config.Default().NATS.URL // without its password it is another one
		text, err := c.YAML()
		if err != nil {
			t.Fatalf("%v for %+v", err, c)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		back, err := config.Load(path)
		if err != nil && strings.Contains(err.Error(), "only a shell makes a home of ~") {
			continue // that text is no path of ours
		}
		if err != nil || !reflect.DeepEqual(back, c) {
			t.Fatalf("%v\n%+v\nread back\n%+v\nfrom\n%s", err, c, back, text)
		}
	}
}

// So it is with the contexts of a user, and their names.
func TestAnyContextReadsBack(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	dir := t.TempDir()
	for range 100 {
		c, err := config.ReadContexts(dir)
		if err != nil {
			t.Fatal(err)
		}
		name := []string{"null", "true", "no", "1e3", "07", "0x1", "1.5", "1_000", "web", "a.b-c", "2026-11-20", "Inf", "123456789012345678901234567890"}[r.IntN(13)]
		var of config.Context
		fill(r, reflect.ValueOf(&of).Elem())
		if err := c.Add(name, of); err != nil {
			t.Fatal(err)
		}
		if err := c.Use(name); err != nil {
			t.Fatal(err)
		}
		if err := c.Write(); err != nil {
			t.Fatal(err)
		}
		back, err := config.ReadContexts(dir)
		if err != nil || !reflect.DeepEqual(back, c) {
			text, _ := os.ReadFile(filepath.Join(dir, "blobtail", "contexts.yaml"))
			t.Fatalf("%v\n%+v\nread back\n%+v\nfrom\n%s", err, c, back, text)
		}
	}
}

// YAML refuses a text that no file can have, and does not write another one.
func TestNotUTF8(t *testing.T) {
	c := config.Default()
	c.Ingest.WAL = "/var/\xff"
	if text, err := c.YAML(); err == nil || !strings.Contains(err.Error(), `"/var/\xff" is not in UTF-8`) {
		t.Errorf("%v %s", err, text)
	}
}

// So are the services with levels, whatever YAML may take their names and globs for.
func TestServicesWithLevelsReadBack(t *testing.T) {
	c := config.Default()
	for i, pattern := range []string{"*", "pay*", "[a-c]*", "?x", "1e3", "true", "null", "07", "-", "a.b", `\*`, "[^a]*", "no", "0x1"} {
		c.Ingest.Acks[pattern] = ack.Level(i % 3)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	text, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if back, err := load(t, string(text)); err != nil || !reflect.DeepEqual(back, c) {
		t.Errorf("%v\n%v\nread back\n%v\nfrom\n%s", err, c.Ingest.Acks, back.Ingest.Acks, text)
	}
}
