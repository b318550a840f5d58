package spelling_test

import (
	"testing"

	"blobtail/internal/spelling"
)

func TestNear(t *testing.T) {
	names := []string{"orders", "web", "payments", "web-admin"}
	for name, want := range map[string]string{
		"wbe": "web", "odrers": "orders", "webb": "web", "web": "web", "paymnets": "payments", "pay": "payments",
		"x": "", "": "", "checkout": "", "web-admim": "web", "webadmin": "web-admin", "web_admin": "web-admin",
	} {
		if got := spelling.Near(name, names); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
