package lint

import (
	"bytes"
	"debug/buildinfo"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schema compiles the schema of CycloneDX 1.6, out of the module of its Go types.
func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	for id, file := range map[string]string{
		"bom-1.6.schema.json": "bom-1.6.schema.json", "spdx.schema.json": "spdx.schema.json", "jsf-0.82.schema.json": "jsf-0.82.schemax.json",
	} {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "schema", file))
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource("http://cyclonedx.org/schema/"+id, doc); err != nil {
			t.Fatal(err)
		}
	}
	s, err := c.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSBOM ensures that make sbom writes a document that CycloneDX's schema accepts, and
// that it names the modules that Go records in the binary, with their versions, and the
// standard library.
func TestSBOM(t *testing.T) {
	dist := filepath.Join(t.TempDir(), "with a space")
	file := filepath.Join(dist, "ingest-"+runtime.GOOS+"-"+runtime.GOARCH)
	binary, err := os.ReadFile(command(t, "ingest", "ingest"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(dist, 0o700), os.WriteFile(file, binary, 0o700)); err != nil {
		t.Fatal(err)
	}
	sbom := exec.Command("make", "--no-print-directory", "sbom", "DIST="+dist, "RELEASE_GO=local")
	sbom.Dir = filepath.Join("..", "..")
	if out, err := sbom.CombinedOutput(); err != nil {
		t.Fatalf("make sbom: %v\n%s", err, out)
	}
	text, err := os.ReadFile(file + ".cdx.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema(t).Validate(doc); err != nil {
		t.Errorf("%v", err)
	}
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	if bom.SerialNumber != "" || bom.Metadata.Timestamp != "" {
		t.Errorf("it differs each time: serial number %q, time %q", bom.SerialNumber, bom.Metadata.Timestamp)
	}
	if main := bom.Metadata.Component; main.Name != "blobtail" || main.Version != "0.9.0" {
		t.Errorf("it is of %s %s", main.Name, main.Version)
	}
	got := map[string]string{}
	for _, c := range *bom.Components {
		got[c.Name] = c.Version
	}
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"std": info.GoVersion}
	for _, m := range info.Deps {
		if m.Replace != nil { // a folder of ours
			m = m.Replace
		}
		want[m.Path] = m.Version
	}
	for path, version := range want {
		if got[path] != version {
			t.Errorf("it names %s %q, the binary has %s", path, got[path], version)
		}
	}
	if len(got) != len(want) {
		t.Errorf("it names %d modules, the binary has %d", len(got), len(want))
	}
	required, err := os.ReadFile(filepath.Join("..", "..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob", "github.com/nats-io/nats.go", "github.com/klauspost/compress"} {
		if !strings.Contains(string(required), path+" "+got[path]+"\n") {
			t.Errorf("it names %s %s, go.mod another version", path, got[path])
		}
	}
}
