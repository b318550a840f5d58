// Command put renews rows of the table of loggers with the output of their loggers:
//
//	put OUT TESTDATA [ROW...]
//
// For each OUT/NAME.bytes it replaces the section bytes of TESTDATA/NAME.txtar, and the
// lines version and ran of its section about by OUT/NAME.version and OUT/NAME.ran. All
// else in the file stays. If rows are named, it renews these only.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: put OUT TESTDATA [ROW...]")
		os.Exit(2)
	}
	if err := putAll(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// putAll renews every row that it can, and returns the errors of the others.
func putAll(out, testdata string, only []string) error {
	written, err := filepath.Glob(filepath.Join(out, "*.bytes"))
	if err != nil {
		return err
	}
	var errs []error
	for _, file := range written {
		name := strings.TrimSuffix(filepath.Base(file), ".bytes")
		if len(only) > 0 && !slices.Contains(only, name) {
			continue
		}
		if err := put(filepath.Join(out, name), filepath.Join(testdata, name+".txtar")); err != nil {
			errs = append(errs, fmt.Errorf("row %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// put renews one row from the files with names that begin with out.
func put(out, row string) error {
	wrote, err := os.ReadFile(out + ".bytes")
	if err != nil {
		return err
	}
	if err := fits(wrote); err != nil {
		return err
	}
	archive, err := txtar.ParseFile(row)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("there is no %s; write its sections about and records first", row)
	} else if err != nil {
		return err
	}
	about := section(archive, "about")
	records := section(archive, "records")
	if about < 0 || records < 0 {
		return fmt.Errorf("%s needs the sections about and records", row)
	}
	for _, key := range []string{"version", "ran"} {
		value, err := os.ReadFile(out + "." + key)
		if err != nil {
			return err
		}
		archive.Files[about].Data = renew(archive.Files[about].Data, key, bytes.TrimSpace(value))
	}
	if at := section(archive, "bytes"); at >= 0 {
		archive.Files[at].Data = wrote
	} else {
		archive.Files = slices.Insert(archive.Files, records, txtar.File{Name: "bytes", Data: wrote})
	}
	if err := os.WriteFile(row, txtar.Format(archive), 0o644); err != nil {
		return err
	}
	return counted(wrote, archive.Files[section(archive, "records")].Data)
}

// counted compares the lines that a logger wrote with those of the records expected. A
// trace may have other calls than in the last run.
func counted(wrote, records []byte) error {
	lines := 0
	for line := range bytes.Lines(records) {
		record := struct{ Lines int }{Lines: 1}
		if err := json.Unmarshal(line, &record); err != nil {
			return fmt.Errorf("section records: %w", err)
		}
		lines += record.Lines
	}
	if have := bytes.Count(wrote, []byte("\n")); have != lines {
		return fmt.Errorf("it wrote %d lines, and its records have %d: look, and count again", have, lines)
	}
	return nil
}

// fits reports why the form of a row cannot hold the output of a logger.
func fits(wrote []byte) error {
	if !bytes.HasSuffix(wrote, []byte("\n")) {
		return fmt.Errorf("its %d bytes do not end with a line feed, and txtar would add one", len(wrote))
	}
	if in := txtar.Parse(wrote); len(in.Files) > 0 {
		return fmt.Errorf("a line of it is the head of a section: -- %s --", in.Files[0].Name)
	}
	return nil
}

// section returns the index of a section, or -1.
func section(archive *txtar.Archive, name string) int {
	return slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == name })
}

// renew replaces the line `key: ...`, or adds it at the end.
func renew(about []byte, key string, value []byte) []byte {
	line := fmt.Appendf(nil, "%s: %s\n", key, value)
	var out []byte
	found := false
	for old := range bytes.Lines(about) {
		if bytes.HasPrefix(old, []byte(key+":")) {
			out, found = append(out, line...), true
			continue
		}
		out = append(out, old...)
	}
	if !found {
		out = append(out, line...)
	}
	return out
}
