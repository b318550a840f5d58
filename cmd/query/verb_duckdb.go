package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"blobtail/internal/cli"
)

type duckdbCmd struct {
	Service    string `arg:"" optional:"" help:"A service or a glob; all if there is none."`
	Export     string `help:"Read an export there, in place of blobs: ./lake, az://container." placeholder:"PLACE"`
	Print      bool   `help:"Print the SQL of the view, and start nothing."`
	rangeFlags `group:"Time"`
}

func (c *duckdbCmd) run(ctx context.Context, a *app) (code int, err error) {
	rng, err := a.times(c.rangeFlags)
	if err != nil {
		return 0, &cli.UsageError{Err: err}
	}
	quoted := func(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
	from := "* FROM read_parquet(" + quoted(strings.TrimSuffix(c.Export, "/")+"/*/*/*.parquet") +
		", union_by_name=true, hive_types={'service': VARCHAR}) WHERE service GLOB " + quoted(cmp.Or(c.Service, "*")) + " AND "
	if root := a.config.Store.Dir(); c.Export == "" {
		var blobs []string
		code, err = keys(ctx, a, c.Service, rng, func(name string) { blobs = append(blobs, quoted(filepath.Join(root, name))) })
		if err == nil && root == "" {
			err = cli.Usagef("the view is of blobs in a directory, or of an export: --export az://CONTAINER")
		}
		if err != nil || len(blobs) == 0 {
			return code, err
		}
		from = "(json->>'ts')::TIMESTAMP_NS AS time, json->>'level' AS level, json->>'service' AS service, json->>'msg' AS message, " +
			"json AS record\nFROM read_ndjson_objects([" + strings.Join(blobs, ",\n") + "], compression='zstd') WHERE "
	}
	since, until := rfc3339(max(rng.From, 0)), rfc3339(min(rng.To, 9e18)) // DuckDB takes no time at the ends of int64
	sql := fmt.Sprintf("CREATE VIEW logs AS SELECT %stime >= '%s' AND time < '%s';\n", from, since, until)
	if c.Print {
		_, err = fmt.Fprint(a.out, sql)
		return code, err
	}
	file, err := os.CreateTemp("", "logquery-*.sql")
	if err != nil {
		return 0, err
	}
	defer os.Remove(file.Name())
	cmd := exec.CommandContext(ctx, "duckdb", "-cmd", ".read '"+file.Name()+"'")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, a.env.stdout, os.Stderr
	_, err = file.WriteString(sql)
	if err = errors.Join(err, file.Close()); err == nil {
		err = cmd.Run()
	}
	if err != nil {
		err = cli.Usagef("duckdb: %w; --print prints the SQL for another program", err)
	}
	return code, err
}

// Help says what is in the view.
func (duckdbCmd) Help() string {
	return `The view is called logs. Its columns are time, level, service, message and record (JSON), or those of the export.

Examples:
  logquery duckdb web --day yesterday
  logquery duckdb --export ./lake
  logquery duckdb web --since 7d --print > logs.sql`
}
