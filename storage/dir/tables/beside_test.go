package tables_test

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/storage"
)

// Reads of one process, many at once, are each of one moment, while another process swaps rows: none
// of them takes away the lock of another.
func TestReadsBesideWriter(t *testing.T) {
	const of = "BLOBTAIL_TEST_TABLE" // tells the writer its table
	if root := os.Getenv(of); root != "" {
		s := open(t, root)
		version := ""
		for end := time.Now().Add(time.Duration(testkit.Share(3000, 1000)) * time.Millisecond); time.Now().Before(end); {
			var err error
			row := storage.Row{Key: "writer", Props: map[string]any{"at": time.Now().UnixNano()}, Version: version}
			if version, err = s.Swap(t.Context(), "ingesters", "p", row); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	root := t.TempDir()
	swapped(t, root)
	writer := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	writer.Env = append(os.Environ(), of+"="+root)
	var said strings.Builder
	writer.Stdout, writer.Stderr = &said, &said
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	s := open(t, root)
	ended := make(chan struct{})
	var readers sync.WaitGroup
	for range 16 {
		readers.Go(func() {
			for {
				for _, err := range s.Scan(t.Context(), "ingesters", "p", "", "", 0) {
					if err != nil {
						t.Error(err)
						return
					}
				}
				select {
				case <-ended:
					return
				default:
				}
			}
		})
	}
	err := writer.Wait()
	close(ended)
	if readers.Wait(); err != nil {
		t.Errorf("the writer: %v\n%s", err, said.String())
	}
}
