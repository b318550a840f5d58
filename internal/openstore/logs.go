package openstore

import (
	"context"

	"blobtail/internal/azurelogs"
	"blobtail/internal/azurelogs/asblobs"
	"blobtail/storage/azure"
	"blobtail/storage/fsys"
	"blobtail/storage/mem"
	"blobtail/storage/traffic"
)

// The default of [Options.Late], and its value for records that never come late.
const (
	DefaultLate = asblobs.DefaultLate
	NeverLate   = asblobs.NeverLate
)

// openLogs opens Azure's own logs as a store for reading. Its tables are empty.
func openLogs(spec Spec, create bool, o Options) (*Store, error) {
	if create {
		return nil, &BadSpecError{spec.String(), "Azure's own logs can only be read; ingest import --from " + spec.String() + " brings them into another store"}
	}
	source, explain, sent, err := logsOf(spec, azurelogs.Options{Ignore: o.Ignore})
	if err != nil {
		return nil, err
	}
	blobs := asblobs.New(source, asblobs.Options{Late: o.Late})
	return &Store{
		Blobs: blobs, Tables: mem.New(mem.Options{}), Close: blobs.Close, Explain: explain, Traffic: sent,
		Logs: source, Problems: blobs.Problems, Notes: blobs.Notes,
	}, nil
}

// logsOf returns the source of Azure's own logs, with the remedies of its errors and the
// count of its requests.
func logsOf(spec Spec, o azurelogs.Options) (*azurelogs.Source, func(error) string, *traffic.Counter, error) {
	if path := spec.Copied(); path != "" {
		if _, err := azurelogs.Dir(path); err != nil {
			return nil, nil, nil, err
		}
		o.Find = func(context.Context) ([]azurelogs.Container, error) { return azurelogs.Dir(path) }
		return azurelogs.New(o), func(err error) string { return fsys.Place{Dir: path, Reads: true}.Remedy(err) }, nil, nil
	}
	name, container, err := azure.ParseLogs(spec.place)
	if err != nil {
		return nil, nil, nil, err
	}
	sent := new(traffic.Counter)
	account, err := azure.OpenAccount(name, azure.Options{Traffic: sent})
	if err != nil {
		return nil, nil, nil, err
	}
	o.Account, o.Find = name, func(ctx context.Context) ([]azurelogs.Container, error) {
		return containers(ctx, account, container)
	}
	return azurelogs.New(o), account.Explain, sent, nil
}

// containers returns one container, or all containers of an account that have logs.
func containers(ctx context.Context, account *azure.Account, one string) (out []azurelogs.Container, err error) {
	names := []string{one}
	if one == "" {
		names = []string{azure.ClassicLogs}
		for name, err := range account.Containers(ctx, "") {
			if err != nil {
				return nil, err
			}
			if azurelogs.IsNamed(name) {
				names = append(names, name)
			}
		}
	}
	for _, name := range names {
		c, err := account.Container(name)
		if err != nil {
			return nil, err
		}
		out = append(out, azurelogs.Container{Name: name, Optional: one == "", Objects: c})
	}
	return out, nil
}
