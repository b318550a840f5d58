package azure

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"blobtail/storage"
	"blobtail/storage/internal/bounds"
)

// maxPage is the most rows that the service returns at once.
const maxPage = 1000

// Upsert implements [storage.TableStore]. Azurite accepts rows of several partitions in
// one transaction, but the service refuses them. Here there is one partition by
// construction.
func (s *Store) Upsert(ctx context.Context, table, partition string, rows []storage.Row) (err error) {
	defer bounds.At("upsert", table+"/"+partition, &err)
	if err := errors.Join(ctx.Err(), bounds.Upsert(table, partition, rows)); err != nil {
		return err
	}
	if len(rows) == 0 {
		return s.makeTable(ctx, table)
	}
	actions := make([]aztables.TransactionAction, len(rows))
	for i, r := range rows {
		entity, err := encode(partition, r)
		if err != nil {
			return err
		}
		// Replace, not merge (the SDK's default): properties of an older row must not
		// survive. And not insert, which fails when it is repeated after a lost
		// response.
		actions[i] = aztables.TransactionAction{ActionType: aztables.TransactionTypeInsertReplace, Entity: entity}
	}
	return s.inTable(ctx, table, func() error {
		return guard(func() error {
			_, err := s.tables.NewClient(table).SubmitTransaction(ctx, actions, nil)
			return err
		})
	})
}

// inTable sends a write to a table, and makes the table if it is missing.
func (s *Store) inTable(ctx context.Context, table string, send func() error) error {
	err := translate(send())
	if hasCode(err, "TableNotFound") {
		if err = s.makeTable(ctx, table); err == nil {
			err = translate(send())
		}
	}
	return err
}

func (s *Store) makeTable(ctx context.Context, table string) error {
	_, err := s.tables.CreateTable(ctx, table, nil)
	if err = translate(err); hasCode(err, "TableAlreadyExists") {
		return nil
	}
	return err
}

// Swap implements [storage.TableStore]. A version is the ETag. The service makes it
// from the time of the write, in steps of 100 ns. Azurite makes it from the time of the
// request, to the millisecond, and from four digits of another clock, most often in
// steps of 100 us. Two writes of one row have the same ETag there only if both came
// within one such step. No caller that waits for its answers can cause that.
func (s *Store) Swap(ctx context.Context, table, partition string, row storage.Row) (version string, err error) {
	defer bounds.At("swap", table+"/"+partition+"/"+row.Key, &err)
	if err := errors.Join(ctx.Err(), bounds.Upsert(table, partition, []storage.Row{row})); err != nil {
		return "", err
	}
	// "*" would match any existing row, and other text is an error of the request.
	if row.Version != "" && (!strings.HasPrefix(row.Version, `W/"`) || !strings.HasSuffix(row.Version, `"`)) {
		return "", storage.ErrChanged // no row has such a version
	}
	entity, err := encode(partition, row)
	if err != nil {
		return "", err
	}
	err = s.inTable(ctx, table, func() (err error) {
		version, err = s.putIf(ctx, table, entity, row.Version)
		return err
	})
	if err == nil && version == "" {
		err = errors.New("written, but the answer has no ETag")
	}
	return version, changed(err)
}

// putIf sends one conditional write, and returns the ETag of the answer.
func (s *Store) putIf(ctx context.Context, table string, entity []byte, version string) (string, error) {
	client := s.tables.NewClient(table)
	if version == "" {
		r, err := client.AddEntity(ctx, entity, nil)
		return string(r.ETag), err
	}
	match := azcore.ETag(version)
	r, err := client.UpdateEntity(ctx, entity, &aztables.UpdateEntityOptions{IfMatch: &match, UpdateMode: aztables.UpdateModeReplace})
	return string(r.ETag), err
}

// changed translates the answers to a failed condition into the error that callers
// know. A missing table is another matter.
func changed(err error) error {
	if e, ok := errors.AsType[*ServiceError](err); ok && (e.Status == http.StatusPreconditionFailed || hasCode(err, "EntityAlreadyExists", "ResourceNotFound")) {
		e.sentinel = storage.ErrChanged
	}
	return err
}

func encode(partition string, r storage.Row) ([]byte, error) {
	e := aztables.EDMEntity{
		Entity:     aztables.Entity{PartitionKey: partition, RowKey: r.Key},
		Properties: make(map[string]any, len(r.Props)),
	}
	for name, v := range r.Props {
		switch v := v.(type) {
		case []byte:
			e.Properties[name] = aztables.EDMBinary(v)
		case int64:
			e.Properties[name] = aztables.EDMInt64(v)
		default:
			e.Properties[name] = v
		}
	}
	return json.Marshal(e)
}

// decode keeps the properties of the types that storage knows. It leaves out int32, for
// example, which we never write: the SDK returns a zero int32 for a requested property
// that the row does not have.
func decode(entity []byte) (storage.Row, error) {
	var e aztables.EDMEntity
	if err := json.Unmarshal(entity, &e); err != nil {
		return storage.Row{}, err
	}
	r := storage.Row{Key: e.RowKey, Version: e.ETag, Props: make(map[string]any, len(e.Properties))}
	for name, v := range e.Properties {
		switch v := v.(type) {
		case string, bool:
			r.Props[name] = v
		case aztables.EDMBinary:
			r.Props[name] = bytes.Clone(v) // never nil
		case aztables.EDMInt64:
			r.Props[name] = int64(v)
		}
	}
	return r, nil
}

// quote is the one way into a filter: a literal with its quotes doubled. The grammar of
// keys has no quotes. Both checks are needed to be sure.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// rangeFilter selects rows of one partition with from <= key < to.
func rangeFilter(partition, from, to string) string {
	f := "PartitionKey eq " + quote(partition)
	if from != "" {
		f += " and RowKey ge " + quote(from)
	}
	if to != "" {
		f += " and RowKey lt " + quote(to)
	}
	return f
}

// Scan implements [storage.TableStore].
func (s *Store) Scan(ctx context.Context, table, partition, from, to string, limit int, props ...string) iter.Seq2[storage.Row, error] {
	return bounds.Seq(ctx, "scan", table+"/"+partition, func(give func(storage.Row) bool) error {
		if err := bounds.Scan(table, partition, from, to, limit, props); err != nil {
			return err
		}
		filter := rangeFilter(partition, from, to)
		top := int32(maxPage)
		if limit > 0 {
			top = int32(min(limit, maxPage))
		}
		// The SDK's usual format has the ETags, with a Select too.
		o := &aztables.ListEntitiesOptions{Filter: &filter, Top: &top}
		if len(props) > 0 {
			names := "RowKey," + strings.Join(props, ",")
			o.Select = &names
		}
		left := limit
		last := ""
		// Pages may be short, even empty, and more follow. The pager also continues
		// beyond Top.
		for p := s.tables.NewClient(table).NewListEntitiesPager(o); p.More(); {
			page, err := p.NextPage(ctx)
			if err != nil {
				return gone(translate(err))
			}
			for _, entity := range page.Entities {
				r, err := decode(entity)
				if err == nil && (r.Key <= last || r.Key < from || to != "" && r.Key >= to) {
					err = errors.New("rows come back out of order or out of range")
				}
				if err != nil {
					return err
				}
				last = r.Key
				if left--; !give(r) || left == 0 {
					return nil
				}
			}
		}
		return nil
	})
}

// gone reports a table that is being deleted as missing: a reader of it comes too late.
// The service sometimes returns one answer, sometimes the other.
func gone(err error) error {
	if e, ok := errors.AsType[*ServiceError](err); ok && e.sentinel == storage.ErrBeingDeleted {
		e.sentinel = storage.ErrNotExist
	}
	return err
}

// Tables implements [storage.TableStore]. It lists the tables of the whole account, for
// all its containers.
func (s *Store) Tables(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return bounds.Seq(ctx, "tables", prefix, func(give func(string) bool) error {
		o := &aztables.ListTablesOptions{}
		if prefix != "" && made(prefix, "abcdefghijklmnopqrstuvwxyz0123456789") {
			filter := "TableName ge " + quote(prefix) + " and TableName lt " + quote(prefix+"{")
			o.Filter = &filter
		}
		var names []string
		for p := s.tables.NewListTablesPager(o); p.More(); {
			page, err := p.NextPage(ctx)
			if err != nil {
				return translate(err)
			}
			for _, t := range page.Tables {
				if name := value(t.Name); strings.HasPrefix(name, prefix) {
					names = append(names, name)
				}
			}
		}
		giveSorted(names, give)
		return nil
	})
}

// Drop implements [storage.TableStore].
func (s *Store) Drop(ctx context.Context, table string) error {
	err := errors.Join(ctx.Err(), bounds.Table(table))
	if err == nil {
		_, err = s.tables.DeleteTable(ctx, table, nil)
		err = translate(err)
	}
	if errors.Is(err, storage.ErrNotExist) {
		return nil
	}
	return storage.AtKey("drop", table, err)
}
