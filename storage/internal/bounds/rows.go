package bounds

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"blobtail/storage"
)

const (
	maxRowKey   = 512
	maxProps    = 252 // of 255, three are Azure's own
	maxPropName = 255

	rowOverhead  = 700 // the part of a multipart body around one row, at most
	propOverhead = 40  // quotes, commas, the property that names the type
)

// Table checks the name of a table.
func Table(name string) error {
	if len(name) < 3 || len(name) > 63 || !word(name) {
		return fmt.Errorf("bad table name %.80q: 3 to 63 letters and digits, a letter first", name)
	}
	// The service reserves this one name.
	if strings.EqualFold(name, "tables") {
		return fmt.Errorf("bad table name %q: reserved", name)
	}
	return nil
}

// RowKey checks a partition or row key.
func RowKey(key string) error {
	if key == "" || len(key) > maxRowKey {
		return fmt.Errorf("bad row or partition key: %d bytes, 1 to %d are allowed", len(key), maxRowKey)
	}
	if !ascii(key, ' ') || strings.ContainsAny(key, `/\#?%'`) {
		return fmt.Errorf("bad row or partition key %.80q", key)
	}
	return nil
}

// Upsert checks one transaction. A transaction without rows is fine: it makes the
// table.
func Upsert(table, partition string, rows []storage.Row) error {
	if err := cmp.Or(Table(table), RowKey(partition)); err != nil {
		return err
	}
	if len(rows) > storage.MaxTxRows {
		return fmt.Errorf("%d rows in one transaction, %d are allowed", len(rows), storage.MaxTxRows)
	}
	total := 0
	seen := make(map[string]bool, len(rows))
	for _, r := range rows {
		sent, err := row(r)
		if err != nil {
			return err
		}
		if seen[r.Key] {
			return fmt.Errorf("two rows of key %s in one transaction", r.Key)
		}
		seen[r.Key] = true
		total += sent + len(partition)
	}
	if total > storage.MaxTxBytes {
		return fmt.Errorf("transaction of %d bytes as sent, %d are allowed", total, storage.MaxTxBytes)
	}
	return nil
}

// row returns the approximate size of a row in the body of a request. Azure bounds a
// transaction by that size, but a row by its size in the store.
func row(r storage.Row) (sent int, err error) {
	if err := RowKey(r.Key); err != nil {
		return 0, err
	}
	if len(r.Props) > maxProps {
		return 0, fmt.Errorf("row %s: %d properties, %d are allowed", r.Key, len(r.Props), maxProps)
	}
	sent = rowOverhead + 2*len(r.Key)
	kept := 2 * len(r.Key)
	for name, v := range r.Props {
		k, s, err := prop(name, v)
		if err != nil {
			return 0, fmt.Errorf("row %s: %w", r.Key, err)
		}
		kept += 8 + 2*len(name) + k
		sent += 2*len(name) + s
	}
	if kept > storage.MaxRowBytes {
		return 0, fmt.Errorf("row %s: %d bytes as kept, %d are allowed", r.Key, kept, storage.MaxRowBytes)
	}
	return sent, nil
}

// prop returns the bytes of a value as Azure counts them in the store (strings
// in UTF-16) and as they are sent (JSON, binary in base64).
func prop(name string, v any) (kept, sent int, err error) {
	if err := PropName(name); err != nil {
		return 0, 0, err
	}
	switch v := v.(type) {
	case string:
		if !utf8.ValidString(v) {
			return 0, 0, fmt.Errorf("property %s: not UTF-8", name)
		}
		units, escaped := measure(v)
		if units > storage.MaxString {
			return 0, 0, fmt.Errorf("property %s: %d characters, %d are allowed", name, units, storage.MaxString)
		}
		return 4 + 2*units, escaped + propOverhead, nil
	case []byte:
		if len(v) > storage.MaxBinary {
			return 0, 0, fmt.Errorf("property %s: %d bytes, %d are allowed", name, len(v), storage.MaxBinary)
		}
		return 4 + len(v), base64.StdEncoding.EncodedLen(len(v)) + propOverhead, nil
	case int64:
		return 8, 20 + propOverhead, nil
	case bool:
		return 1, 5 + propOverhead, nil
	}
	return 0, 0, fmt.Errorf("property %s: values of type %T are not kept", name, v)
}

// PropName checks the name of a property.
func PropName(name string) error {
	if len(name) > maxPropName || !word(name) {
		return fmt.Errorf("bad property name %.80q: letters and digits, a letter first", name)
	}
	switch strings.ToLower(name) {
	case "partitionkey", "rowkey", "timestamp", "etag":
		return fmt.Errorf("bad property name %q: reserved", name)
	}
	return nil
}

// Scan checks the arguments of a scan. The ends of a range are not keys of rows, but
// they must follow the same grammar. Only to may be empty, and from may be empty for
// the first row.
func Scan(table, partition, from, to string, limit int, props []string) error {
	err := cmp.Or(Table(table), RowKey(partition), RowKey(cmp.Or(from, partition)), RowKey(cmp.Or(to, partition)))
	for _, p := range props {
		err = cmp.Or(err, PropName(p))
	}
	if err == nil && limit < 0 {
		err = errors.New("negative limit")
	}
	return err
}

// word reports whether s is letters and digits, a letter first.
func word(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// measure returns the UTF-16 units of s and its bytes within a JSON string.
func measure(s string) (units, escaped int) {
	for _, r := range s {
		units += utf16.RuneLen(r)
		switch {
		case r == '"' || r == '\\':
			escaped += 2
		case r < ' ' || r == '<' || r == '>' || r == '&' || r == 0x2028 || r == 0x2029:
			escaped += 6 // as encoding/json writes them
		default:
			escaped += utf8.RuneLen(r)
		}
	}
	return units, escaped
}
