package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
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
	services, err := servicesOf([]string{cmp.Or(c.Service, "*")})
	if err != nil {
		return 0, err
	}
	var files []string
	add := func(path string) { files = append(files, "'"+strings.ReplaceAll(path, "'", "''")+"'") }
	view := "*\nFROM read_parquet([%s], union_by_name=true, hive_types={'service': VARCHAR})"
	switch root := a.config.Store.Dir(); {
	case c.Export != "":
		place := strings.TrimPrefix(strings.TrimSuffix(c.Export, "/"), "dir:")
		for _, name := range services { // DuckDB has ! where we have ^
			add(place + "/service=" + strings.ReplaceAll(name, "[^", "[!") + "/*/*.parquet")
		}
	case root == "":
		return 0, cli.Usagef("the view is of blobs in a directory, or of an export: --export az://CONTAINER")
	default:
		view = "(json->>'ts')::TIMESTAMP_NS AS time, json->>'level' AS level, json->>'service' AS service, json->>'msg' AS message, " +
			"json AS record\nFROM read_ndjson_objects([%s], compression='zstd')"
		code, err = keys(ctx, a, services, rng, func(name string) { add(filepath.Join(root, name)) })
		if err == nil && len(files) == 0 {
			a.Complain("no blob has records of that range; new records are in no blob for some minutes")
		}
		if err != nil || len(files) == 0 {
			return code, err
		}
	}
	sql := fmt.Sprintf("CREATE VIEW logs AS SELECT "+view+" WHERE time >= '%s' AND time < '%s';\n", strings.Join(files, ",\n"),
		rfc3339(max(rng.From, -92e17)), rfc3339(min(rng.To, 92e17))) // DuckDB takes no time at the ends of int64
	if c.Print {
		_, err = fmt.Fprint(a.out, sql)
		return code, err
	}
	file, err := os.CreateTemp("", "logquery-*.sql")
	if err != nil {
		return 0, err
	}
	defer os.Remove(file.Name())
	signal.Reset(os.Interrupt) // Ctrl-C ends a query of DuckDB, and nothing else
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	cmd := exec.CommandContext(ctx, "duckdb", "-cmd", ".read "+strconv.Quote(file.Name()))
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
