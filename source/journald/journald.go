// Package journald is the protocol of systemd-journal-upload: POST /upload with entries of a
// journal in the export format (https://systemd.io/JOURNAL_EXPORT_FORMATS).
//
// Make it with [New] and give it to a source of HTTP. An entry becomes a record:
// MESSAGE is its message, PRIORITY its level, __REALTIME_TIMESTAMP its time, and its unit or
// its syslog identifier the service. All other fields are fields, except those that begin with
// two underscores: they belong to the journal.
//
// One request lasts until the uploader has sent everything, which may be gigabytes. So the
// body is read as a stream. The uploader saves its place only after the answer, and sends all
// of it again if the answer does not come. Entries are parts of a hundred or a thousand, cut
// by their cursors, and the first cursor identifies a part. So an entry that comes again is the
// same record, also if the journal has grown.
package journald

import (
	"bufio"
	"mime"
	"net/http"

	"blobtail/source/body"
	"blobtail/source/httpsource"
)

// New makes the protocol.
func New() httpsource.Protocol { return httpsource.NewProtocol("journald", exchange) }

// exchange is that of a request, nil for a path of another protocol.
func exchange(r *http.Request) httpsource.Exchange {
	if r.URL.Path != "/upload" {
		return nil
	}
	return upload{r}
}

type upload struct{ r *http.Request }

// Open implements [httpsource.Exchange].
func (x upload) Open() (in httpsource.Intake, err error) {
	if x.r.Method != http.MethodPost {
		return in, httpsource.RefuseMethod("POST", "%s /upload: entries are uploaded with POST", x.r.Method)
	}
	const want = "application/vnd.fdo.journal"
	if media, _, _ := mime.ParseMediaType(x.r.Header.Get("Content-Type")); media != want {
		return in, httpsource.Refuse(http.StatusUnsupportedMediaType, "Content-Type %s is not taken at /upload; send %s", body.Short(media), want)
	}
	in.Stream = func(r *bufio.Reader, to httpsource.StreamSink) error { return newDecoder(r, to).run() }
	in.Form, err = body.NewForm(nil, x.r.Header.Values("Content-Encoding"))
	return in, err
}

// Reply implements [httpsource.Exchange] as systemd-journal-remote does: 202, or the reason as
// text.
func (x upload) Reply(h http.Header, counts *httpsource.Result, refused *httpsource.Refusal) (int, []byte) {
	return counts.ReplyPlain(h, refused, http.StatusAccepted, "OK.")
}
