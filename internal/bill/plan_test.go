package bill_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"blobtail/internal/bill"
	"blobtail/internal/units"
)

// loadPlan loads a plan from a file.
func loadPlan(t *testing.T, text string) (bill.Plan, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "plan.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return bill.LoadPlan(path)
}

// A plan needs only its bytes. A key that it leaves out has the value of the built-in plan.
func TestPlanDefaults(t *testing.T) {
	p, err := loadPlan(t, "bytes-per-day: 5GB\ningesters: 3\n")
	if err != nil {
		t.Fatal(err)
	}
	if p.BytesPerDay != 5e9 || p.Ingesters != 3 || p.IngestersPerService != 3 {
		t.Errorf("%+v", p)
	}
	built, err := bill.LoadPlan("")
	if err != nil {
		t.Fatal(err)
	}
	p.BytesPerDay, p.Ingesters, p.IngestersPerService = built.BytesPerDay, built.Ingesters, built.IngestersPerService
	if !reflect.DeepEqual(p, built) {
		t.Errorf("%+v\nbuilt in is %+v", p, built)
	}
}

// The built-in plan is the file that operators copy.
func TestBuiltInPlan(t *testing.T) {
	built, err := bill.LoadPlan("")
	if err != nil {
		t.Fatal(err)
	}
	file, err := bill.LoadPlan("../../configs/plan.yaml")
	if err != nil || file.BytesPerDay != built.BytesPerDay || built.Services != 200 || built.Ingesters != 20 || built.BytesPerDay != 1e12 {
		t.Errorf("%+v, %v\nbuilt in is %+v", file, err, built)
	}
}

// Values are taken in the forms in which people write them.
func TestPlanForms(t *testing.T) {
	for text, ok := range map[string]func(bill.Plan) bool{
		"bytes-per-day: 1000000000000":  func(p bill.Plan) bool { return p.BytesPerDay == 1e12 },
		"bytes-per-day: 1TiB":           func(p bill.Plan) bool { return p.BytesPerDay == 1<<40 },
		"keep: 36h":                     func(p bill.Plan) bool { return p.Keep == units.Duration(36*time.Hour) },
		"compaction: on":                func(p bill.Plan) bool { return p.Compaction == "on" },
		"compaction: off":               func(p bill.Plan) bool { return p.Compaction == "off" },
		"tiers: {cool: 20d, cold: 25d}": func(p bill.Plan) bool { return len(p.Tiers) == 2 },
		"tiers: {}":                     func(p bill.Plan) bool { return len(p.Tiers) == 0 },
		"machines: []":                  func(p bill.Plan) bool { return len(p.Machines) == 0 },
		"machines: [{count: 2, kind: D2s_v5, disk: 64GB}]": func(p bill.Plan) bool {
			return len(p.Machines) == 1 && p.Machines[0].Count == 2 && p.Machines[0].Kind == "D2s_v5" && p.Machines[0].Disk == 64e9
		},
		"services:":            func(p bill.Plan) bool { return p.Services == 200 },
		"flush: {age: 5m}":     func(p bill.Plan) bool { return p.Flush.Age.String() == "5m" && p.Flush.Min.String() == "2MiB" },
		"tail: {enabled: off}": func(p bill.Plan) bool { return p.Tail.Enabled == "off" },
		"tail: {every: 1s}":    func(p bill.Plan) bool { return p.Tail.Every.String() == "1s" && p.Tail.Enabled == "on" },
	} {
		if !strings.Contains(text, "bytes-per-day") {
			text += "\nbytes-per-day: 1GB\n"
		}
		if p, err := loadPlan(t, text); err != nil || !ok(p) {
			t.Errorf("%s: %+v, %v", text, p, err)
		}
	}
}

// A mistake is named by its key, and an unknown key with those that there are.
func TestPlanMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "bytes-per-day: want",
		"# nothing":                     "bytes-per-day: want",
		"services: 3":                   "bytes-per-day: want",
		"bytes-per-day: 0":              "bytes-per-day: want",
		"bytes-per-day: much":           "is no size",
		"bytes: 1TB":                    "configs/plan.yaml shows the keys",
		"flush: {minimum: 1MiB}":        "minimum",
		"machines: {cores: 4}":          "machines",
		"services: 0":                   "services: want",
		"services: many":                "services",
		"ingesters: -1":                 "ingesters: want",
		"ingesters-per-service: 21":     "ingesters-per-service: want",
		"keep: keep":                    "keep",
		"keep: 1h":                      "keep, in days: want",
		"keep: -3":                      "",
		"line-bytes: .inf":              "line-bytes: want",
		"ratio: -2":                     "ratio: want",
		"reads-of-cool: 1e9":            "reads-of-cool: want",
		"reads-per-day: .nan":           "reads-per-day: want",
		"compaction: sometimes":         "compaction: want on or off",
		"tiers: {warm: 0d}":             "no others than hot, cool, cold",
		"tiers: {archive: 90d}":         "no others than hot, cool, cold",
		"tiers: {hot: 30d}":             "tiers.hot",
		"tiers: {cool: 30d, cold: 10d}": "tiers.cold, in days: want",
		"tiers: {cool: 30d, cold: 30d}": "tiers.cold, in days: want",
		"tiers: {cool: soon}":           "soon",
		"machines: some":                "machines",
		"flush: {max-age: 0s}":          "flush.max-age, in days: want",
		"tail: {every: 0s}":             "tail.every, in days: want",
		"a: [":                          "[",
		"- services":                    "",
		"services: 2.5":                 "services: want",
		"machines: [{count: 1.5}]":      "machines[0].count: want",
		"machines: [{cores: 4}]":        "cores",
		"keep: 1e300":                   "",
		"soft-delete: 1e308":            "",
		"ratio: 1e-300":                 "ratio: want",
		"reads-per-day: 1e308":          "reads-per-day: want",
		"read-range: 31d":               "read-range, in days: want",
		"services: 9223372036854775807": "services: want",
		"ingesters: 9000000000":         "ingesters: want",
		"bytes-per-day: 9PB":            "\"9PB\" is no size",
		"flush: {age: -5s}":             "-5s",
		"keep: 30d\n---\nkeep: 1d":      "want one document",
	} {
		if !strings.Contains(text, "bytes") && want != "bytes-per-day: want" && !strings.HasPrefix(text, "a: [") && !strings.HasPrefix(text, "-") {
			text += "\nbytes-per-day: 1GB\n"
		}
		if _, err := loadPlan(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := bill.LoadPlan(filepath.Join(t.TempDir(), "none.yaml")); err == nil || !strings.Contains(err.Error(), "none.yaml") {
		t.Error(err)
	}
}
