package lint

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/moby/buildkit/client/llb"
	"github.com/moby/buildkit/client/llb/sourceresolver"
	"github.com/moby/buildkit/frontend/dockerfile/dockerfile2llb"
	"github.com/moby/buildkit/frontend/subrequests/lint"
	"github.com/opencontainers/go-digest"
)

// nameless resolves every image to one without a configuration: no registry is asked.
type nameless struct{}

func (nameless) ResolveImageConfig(_ context.Context, ref string, _ sourceresolver.Opt) (string, digest.Digest, []byte, error) {
	return ref, "", []byte(`{"os":"linux","architecture":"amd64"}`), nil
}

// dockerfileLint returns the warnings of docker build --check about a Dockerfile.
func dockerfileLint(t *testing.T, text string) *lint.LintResults {
	t.Helper()
	source := llb.NewSourceMap(nil, "Dockerfile", "Dockerfile", []byte(text))
	source.Definition = new(llb.Definition)
	found, err := dockerfile2llb.DockerfileLint(t.Context(), []byte(text), dockerfile2llb.ConvertOpt{MetaResolver: nameless{}, SourceMap: source})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestDockerfile ensures that docker build --check would report nothing.
func TestDockerfile(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	found := dockerfileLint(t, string(text))
	if found.Error != nil {
		t.Error(found.Error.Message)
	}
	for _, w := range found.Warnings {
		t.Errorf("%s: %s", w.RuleName, w.Detail)
	}
}
