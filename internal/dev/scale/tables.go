package scale

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

const (
	mostRows = 1000    // in an answer
	mostPage = 4 << 20 // bytes of an answer
)

// row is an entity as it was sent.
type row struct {
	body    []byte // JSON
	version string
	changed time.Time
}

// tableKind is the kind of a request to the service of tables.
func (q *request) tableKind() what {
	name, _, _ := strings.Cut(q.path, "(")
	switch {
	case q.path == "$batch":
		return what{TableWrite, tableClass(firstTable(q.body)), 1}
	case name == "Tables" && q.method == http.MethodGet:
		return what{TableRead, "of names", 1}
	case name == "Tables":
		return what{TableWrite, "of tables", 1}
	case q.method == http.MethodGet:
		return what{TableRead, tableClass(name), 1}
	}
	return what{TableWrite, tableClass(name), 1}
}

var inBatch = regexp.MustCompile(`(?m)^(?:PUT|POST|DELETE|PATCH) \S+?/([A-Za-z][A-Za-z0-9]*)[(?]`)

// firstTable is the table of a transaction, which has one only.
func firstTable(body []byte) string {
	if m := inBatch.FindSubmatch(body); m != nil {
		return string(m[1])
	}
	return ""
}

var oneTable = regexp.MustCompile(`^Tables\('([A-Za-z0-9]+)'\)$`)

// table answers a request to the service of tables.
func (s service) table(q *request, w *answer, is *what) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.admit(w, is.n) {
		return
	}
	name, _, _ := strings.Cut(q.path, "(")
	one := oneTable.FindStringSubmatch(q.path)
	switch {
	case q.path == "$batch":
		s.transaction(q, w)
	case q.path == "Tables" && q.method == http.MethodPost:
		s.makeTable(q, w)
	case q.path == "Tables":
		s.listTables(q, w)
	case one != nil && q.method == http.MethodDelete && s.all()[one[1]] == nil:
		w.refuse(true, http.StatusNotFound, "ResourceNotFound")
	case one != nil && q.method == http.MethodDelete:
		delete(s.Account.tables, one[1])
		w.status = http.StatusNoContent
	case s.all()[name] == nil:
		w.refuse(true, http.StatusNotFound, "TableNotFound")
	case q.method == http.MethodGet:
		s.query(name, q, w)
	default:
		s.write(name, q, w)
	}
}

// all are the tables: the field of service has their name too.
func (s service) all() map[string]map[string]*ordered[row] { return s.Account.tables }

func (s service) makeTable(q *request, w *answer) {
	var t struct{ TableName string }
	if err := json.Unmarshal(q.body, &t); err != nil || t.TableName == "" {
		w.refuse(true, http.StatusBadRequest, "InvalidInput")
		return
	}
	if s.all()[t.TableName] != nil {
		w.refuse(true, http.StatusConflict, "TableAlreadyExists")
		return
	}
	s.all()[t.TableName] = map[string]*ordered[row]{}
	w.json(http.StatusCreated, t)
}

var tableRange = regexp.MustCompile(`^TableName ge '([^']*)' and TableName lt '([^']*)'$`)

func (s service) listTables(q *request, w *answer) {
	from, to := "", "\x7f"
	if m := tableRange.FindStringSubmatch(q.query.Get("$filter")); m != nil {
		from, to = m[1], m[2]
	}
	from = max(from, q.query.Get("NextTableName"))
	type name struct{ TableName string }
	list := []name{}
	for _, t := range slices.Sorted(maps.Keys(s.all())) {
		if t < from || t >= to {
			continue
		}
		if len(list) == mostRows {
			w.header.Set("x-ms-continuation-NextTableName", t)
			break
		}
		list = append(list, name{t})
	}
	w.json(http.StatusOK, map[string]any{"value": list})
}

// write answers a request that writes one row.
func (s service) write(table string, q *request, w *answer) {
	key := keyOf(q.body)
	if !s.admitEntities(w, table, key.PartitionKey, 1) {
		return
	}
	old, ok := s.at(table, key)
	match := q.header.Get("If-Match")
	switch {
	case q.method == http.MethodPost && ok:
		w.refuse(true, http.StatusConflict, "EntityAlreadyExists")
		return
	case match != "" && !ok:
		w.refuse(true, http.StatusNotFound, "ResourceNotFound")
		return
	case match != "" && match != "*" && match != old.version:
		w.refuse(true, http.StatusPreconditionFailed, "UpdateConditionNotSatisfied")
		return
	}
	s.noteWrite(table, 1, 0, 0)
	w.header.Set("ETag", s.keep(table, key, q.body))
	w.status = http.StatusNoContent
	if q.method == http.MethodPost {
		w.status = http.StatusCreated
		w.header.Set("Content-Type", "application/json")
		w.body = q.body
	}
}

// rowKey is the key of a row.
type rowKey struct{ PartitionKey, RowKey string }

func keyOf(body []byte) (k rowKey) {
	_ = json.Unmarshal(body, &k) // the SDK refuses rows without keys
	return k
}

func (s service) at(table string, k rowKey) (row, bool) {
	p := s.all()[table][k.PartitionKey]
	if p == nil {
		return row{}, false
	}
	r, ok := p.all[k.RowKey]
	return r, ok
}

// keep keeps a row, unless it is to be forgotten, and returns its version.
func (s service) keep(table string, k rowKey, body []byte) string {
	s.noteWrite(table, 0, 1, room(body))
	s.made++
	r := row{body, `W/"datetime'` + strconv.FormatUint(s.made, 10) + `'"`, time.Now().UTC()}
	if s.o.Forget(table) {
		return r.version
	}
	p := s.all()[table][k.PartitionKey]
	if p == nil {
		p = newOrdered[row]()
		s.all()[table][k.PartitionKey] = p
	}
	p.set(k.RowKey, r)
	return r.version
}

func (s service) noteWrite(table string, transactions, rows, size int) {
	if s.free {
		return
	}
	n := s.written[table]
	n.Transactions += int64(transactions)
	n.Rows += int64(rows)
	n.Bytes += int64(size)
	s.written[table] = n
}

// room is the size of a row on Azure's bill: "Estimating the size of an entity" in
// learn.microsoft.com's "Understanding the Table service data model".
func room(body []byte) int {
	var props map[string]any
	if json.Unmarshal(body, &props) != nil {
		return 0
	}
	size := 4 + 8 + 2*len("Timestamp") + 8
	for name, v := range props {
		switch {
		case name == "PartitionKey", name == "RowKey":
			size += 2 * len(v.(string))
			continue
		case strings.HasSuffix(name, "@odata.type"):
			continue
		}
		size += 8 + 2*len(name)
		switch v := v.(type) {
		case bool:
			size++
		case float64:
			size += 8
		case string:
			switch props[name+"@odata.type"] {
			case "Edm.Binary":
				size += 4 + len(v)/4*3 - strings.Count(v[max(0, len(v)-2):], "=")
			case "Edm.Int64":
				size += 8
			default:
				size += 4 + 2*len(utf16.Encode([]rune(v)))
			}
		}
	}
	return size
}

// transaction answers an entity group transaction, whose writes are upserts that replace.
func (s service) transaction(q *request, w *answer) {
	table := firstTable(q.body)
	bodies, ok := transactionBodies(q)
	if !ok || len(bodies) == 0 {
		w.refuse(true, http.StatusBadRequest, "InvalidInput")
		return
	}
	first := keyOf(bodies[0])
	if s.all()[table] == nil {
		w.transacted(http.StatusNotFound, `{"odata.error":{"code":"TableNotFound","message":{"lang":"en-US","value":"0:the table does not exist"}}}`, 1)
		return
	}
	if !s.admitEntities(w, table, first.PartitionKey, len(bodies)) {
		return
	}
	s.noteWrite(table, 1, 0, 0)
	for _, body := range bodies {
		s.keep(table, keyOf(body), body)
	}
	w.transacted(http.StatusNoContent, "", len(bodies))
}

// transacted writes the answers of the parts of a transaction.
func (w *answer) transacted(status int, text string, n int) {
	var b bytes.Buffer
	b.WriteString("--batchresponse_1\r\nContent-Type: multipart/mixed; boundary=changesetresponse_1\r\n\r\n")
	for range n {
		fmt.Fprintf(&b, "--changesetresponse_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"+
			"HTTP/1.1 %d %s\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\nDataServiceVersion: 3.0;\r\n", status, http.StatusText(status))
		if text != "" {
			fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(text))
		}
		b.WriteString("\r\n" + text + "\r\n")
	}
	b.WriteString("--changesetresponse_1--\r\n--batchresponse_1--\r\n")
	w.header.Set("Content-Type", "multipart/mixed; boundary=batchresponse_1")
	w.status = http.StatusAccepted
	w.body = b.Bytes()
}

// transactionBodies are the rows of a transaction, in JSON.
func transactionBodies(q *request) (bodies [][]byte, ok bool) {
	_, params, err := mime.ParseMediaType(q.header.Get("Content-Type"))
	if err != nil {
		return nil, false
	}
	outer, err := multipart.NewReader(bytes.NewReader(q.body), params["boundary"]).NextPart()
	if err != nil {
		return nil, false
	}
	_, params, err = mime.ParseMediaType(outer.Header.Get("Content-Type"))
	if err != nil {
		return nil, false
	}
	for r := multipart.NewReader(outer, params["boundary"]); ; {
		p, err := r.NextPart()
		if err == io.EOF {
			return bodies, true
		}
		if err != nil {
			return nil, false
		}
		one, err := http.ReadRequest(bufio.NewReader(p))
		if err != nil {
			return nil, false
		}
		body, err := io.ReadAll(one.Body)
		if err != nil {
			return nil, false
		}
		bodies = append(bodies, body)
	}
}

var rowRange = regexp.MustCompile(`^PartitionKey eq '([^']*)'(?: and RowKey ge '([^']*)')?(?: and RowKey lt '([^']*)')?$`)

// query answers with a page of rows of one partition.
func (s service) query(table string, q *request, w *answer) {
	m := rowRange.FindStringSubmatch(q.query.Get("$filter"))
	if m == nil {
		w.refuse(true, http.StatusNotImplemented, "NotImplemented")
		return
	}
	partition, from, to := m[1], max(m[2], q.query.Get("NextRowKey")), m[3]
	most := mostRows
	if n, err := strconv.Atoi(q.query.Get("$top")); err == nil {
		most = min(most, n)
	}
	var wanted []string
	if names := q.query.Get("$select"); names != "" {
		wanted = strings.Split(names, ",")
	}
	list, size, next := []map[string]any{}, 0, ""
	if p := s.all()[table][partition]; p != nil {
		for _, key := range p.from(from) {
			if to != "" && key >= to {
				break
			}
			r := p.all[key]
			if len(list) == most || size+len(r.body) > mostPage {
				next = key
				break
			}
			list, size = append(list, r.shown(wanted)), size+len(r.body)
		}
	}
	if !s.admitEntities(w, table, partition, len(list)) {
		return
	}
	if next != "" {
		w.header.Set("x-ms-continuation-NextPartitionKey", partition)
		w.header.Set("x-ms-continuation-NextRowKey", next)
	}
	w.json(http.StatusOK, map[string]any{"odata.metadata": "https://scale.table.core.windows.net/$metadata#" + table, "value": list})
}

// shown is a row as a query shows it; no wanted properties: all.
func (r row) shown(wanted []string) map[string]any {
	var sent map[string]json.RawMessage
	_ = json.Unmarshal(r.body, &sent) // it was read before
	shown := map[string]any{"odata.etag": r.version}
	for name, v := range sent {
		plain, _, _ := strings.Cut(name, "@")
		if wanted == nil || slices.Contains(wanted, plain) {
			shown[name] = v
		}
	}
	if wanted == nil {
		shown["Timestamp"] = r.changed.Format(time.RFC3339Nano)
	}
	return shown
}
