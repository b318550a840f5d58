package imports

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"blobtail/internal/azurelogs"
	"blobtail/storage"
)

// A view is the blobs of a classic hour as an import saw them. Which of two copies of a
// request is left out depends on the view: it is the second one, and a blob with a smaller
// name may come later, or grow. So an import keeps its view in the store before it hands over
// the first record. A later import goes through the views before its own, and so leaves out
// the same copies.
type view []seenBlob

// seenBlob is a blob up to a length.
type seenBlob struct {
	key  string
	size int64
}

func viewOf(blobs []azurelogs.Blob) (v view) {
	for i := range blobs {
		v = append(v, seenBlob{blobs[i].Key, blobs[i].Size})
	}
	return v
}

// viewName is the name of the n-th view of an hour, from 1.
func viewName(service string, hour time.Time, n int) string {
	return fmt.Sprintf("%s%s/%s.%06d", marksPrefix, service, hour.Format(hourLayout), n)
}

// text has a line for each blob: its length and its key in quotes.
func (v view) text() []byte {
	var b bytes.Buffer
	for _, blob := range v {
		fmt.Fprintf(&b, "%d %q\n", blob.size, blob.key)
	}
	return b.Bytes()
}

func parseView(text []byte) (v view, err error) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		size, quoted, _ := strings.Cut(lines.Text(), " ")
		n, err1 := strconv.ParseInt(size, 10, 64)
		key, err2 := strconv.Unquote(quoted)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		v = append(v, seenBlob{key, n})
	}
	return v, lines.Err()
}

// views returns the views of an hour up to the present one, which it keeps first if it is new.
// kept has the names of those in the store. Another import may keep views at the same time.
func (im *Importer) views(ctx context.Context, blobs []azurelogs.Blob, kept map[string]bool) (all []view, err error) {
	now := viewOf(blobs)
	for n := 1; ; n++ {
		name := viewName(blobs[0].Service, blobs[0].Hour, n)
		if !kept[name] {
			if len(all) > 0 && slices.Equal(all[len(all)-1], now) {
				return all, nil
			}
			err := im.o.Marks.Create(ctx, name, now.text(), storage.Attrs{ContentType: "text/plain"})
			if err == nil {
				return append(all, now), nil
			}
			if !errors.Is(err, storage.ErrExist) {
				return nil, fmt.Errorf("keep the view of an hour: %w", err)
			}
		}
		before, err := im.view(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("read the view of an earlier import: %w", err)
		}
		all = append(all, before)
	}
}

// view reads a view from the store.
func (im *Importer) view(ctx context.Context, name string) (view, error) {
	body, err := im.o.Marks.Get(ctx, name, 0, -1)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	v, err := parseView(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return v, nil
}

// before goes through earlier views of the blobs, so that seen has the events that the imports
// with these views have handed over. A blob that is gone since cannot repeat itself.
func before(ctx context.Context, blobs []azurelogs.Blob, views []view, seen azurelogs.Seen) error {
	for _, v := range views {
		for _, blob := range v {
			at := slices.IndexFunc(blobs, func(b azurelogs.Blob) bool { return b.Key == blob.key })
			if at < 0 {
				continue
			}
			b := blobs[at]
			b.Size = min(b.Size, blob.size)
			for _, err := range azurelogs.Read(ctx, &b, seen) {
				if err != nil {
					return &SourceError{err}
				}
			}
		}
	}
	return nil
}
