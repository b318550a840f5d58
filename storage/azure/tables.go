package azure

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"blobtail/storage"
)

// maxPage is the most rows that the service returns at once.
const maxPage = 1000

// tables implements [bounds.Rows].
type tables struct{ service *aztables.ServiceClient }

// Upsert sends one transaction. Azurite accepts rows of several partitions in one, but
// the service refuses them. Here there is one partition by construction.
func (s tables) Upsert(ctx context.Context, table, partition string, rows []storage.Row) error {
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
			_, err := s.service.NewClient(table).SubmitTransaction(ctx, actions, nil)
			return err
		})
	})
}

// inTable sends a write to a table, and makes the table if it is missing.
func (s tables) inTable(ctx context.Context, table string, send func() error) error {
	err := translate(send())
	if hasCode(err, "TableNotFound") {
		if err = s.makeTable(ctx, table); err == nil {
			err = translate(send())
		}
	}
	return err
}

func (s tables) makeTable(ctx context.Context, table string) error {
	_, err := s.service.CreateTable(ctx, table, nil)
	if err = translate(err); hasCode(err, "TableAlreadyExists") {
		return nil
	}
	return err
}

// Swap writes a row under a condition. A version is the ETag. The service makes it
// from the time of the write, in steps of 100 ns. Azurite makes it from the time of the
// request, to the millisecond, and from four digits of another clock, most often in
// steps of 100 us. Two writes of one row have the same ETag there only if both came
// within one such step. No caller that waits for its answers can cause that.
func (s tables) Swap(ctx context.Context, table, partition string, row storage.Row) (version string, err error) {
	// "*" would match any existing row, and other text is an error of the request.
	if row.Version != "" && (!strings.HasPrefix(row.Version, `W/"`) || !strings.HasSuffix(row.Version, `"`)) {
		return "", storage.ErrChanged // no row has such a version
	}
	entity, err := encode(partition, row)
	if err != nil {
		return "", err
	}
	client := s.service.NewClient(table)
	err = s.inTable(ctx, table, func() error {
		if row.Version == "" {
			r, err := client.AddEntity(ctx, entity, nil)
			version = string(r.ETag)
			return err
		}
		match := azcore.ETag(row.Version)
		r, err := client.UpdateEntity(ctx, entity, &aztables.UpdateEntityOptions{IfMatch: &match, UpdateMode: aztables.UpdateModeReplace})
		version = string(r.ETag)
		return err
	})
	if err == nil && version == "" {
		err = errors.New("written, but the answer has no ETag")
	}
	return version, changed(err)
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

func (s tables) Scan(ctx context.Context, table, partition, from, to string, limit int, props []string, visit func(storage.Row) bool) error {
	filter := "PartitionKey eq " + quote(partition)
	if from != "" {
		filter += " and RowKey ge " + quote(from)
	}
	if to != "" {
		filter += " and RowKey lt " + quote(to)
	}
	top := int32(min(cmp.Or(limit, maxPage), maxPage))
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
	for p := s.service.NewClient(table).NewListEntitiesPager(o); p.More(); {
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
			if left--; !visit(r) || left == 0 {
				return nil
			}
		}
	}
	return nil
}

// gone reports a table that is being deleted as missing: a reader of it comes too late.
// The service sometimes returns one answer, sometimes the other.
func gone(err error) error {
	if e, ok := errors.AsType[*ServiceError](err); ok && e.sentinel == storage.ErrBeingDeleted {
		e.sentinel = storage.ErrNotExist
	}
	return err
}

// List lists the tables of the whole account, for all its containers.
func (s tables) List(ctx context.Context, prefix string) (names []string, err error) {
	o := &aztables.ListTablesOptions{}
	if prefix != "" && strings.Trim(prefix, "abcdefghijklmnopqrstuvwxyz0123456789") == "" {
		filter := "TableName ge " + quote(prefix) + " and TableName lt " + quote(prefix+"{")
		o.Filter = &filter
	}
	for p := s.service.NewListTablesPager(o); p.More(); {
		page, err := p.NextPage(ctx)
		if err != nil {
			return nil, translate(err)
		}
		for _, t := range page.Tables {
			names = append(names, value(t.Name))
		}
	}
	return names, nil
}

func (s tables) Drop(ctx context.Context, table string) error {
	_, err := s.service.DeleteTable(ctx, table, nil)
	if err = translate(err); errors.Is(err, storage.ErrNotExist) {
		return nil
	}
	return err
}
