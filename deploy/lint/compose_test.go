package lint

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

// load loads a compose file as docker compose does.
func load(t *testing.T, text string) (*types.Project, error) {
	t.Helper()
	dir, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	return loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  dir,
		ConfigFiles: []types.ConfigFile{{Filename: "compose.yaml", Content: []byte(text)}},
		Environment: types.Mapping{},
	}, func(o *loader.Options) { o.Profiles = []string{"*"} })
}

// TestCompose ensures that docker compose would load the file: it is of Compose's
// schema, consistent, and needs no variable of the environment.
func TestCompose(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := load(t, string(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Services) == 0 || len(p.DisabledServices) != 0 {
		t.Errorf("%v, and %v are never started", p.ServiceNames(), p.DisabledServices)
	}
}
