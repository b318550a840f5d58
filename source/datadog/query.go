package datadog

import (
	"bytes"
	"net/url"

	"blobtail/record/meaning"
	"blobtail/source/body"
)

// defaults are the fields that the query of a request gives to items without them. Datadog's pages
// for clients of HTTP have them there. The API key in the query is none of them.
type defaults struct{ service, source, host, tags []byte }

// maxShared is how many bytes the defaults may add to the records of a body. A request says them
// once for any number of records, so that a short body could become lines without end.
const maxShared = 128 << 20

// defaultsOf returns the defaults, and a text that is another one for each.
func defaultsOf(q url.Values) (d defaults, scope string) {
	known := url.Values{}
	for name, to := range map[string]*[]byte{"service": &d.service, "ddsource": &d.source, "hostname": &d.host, "ddtags": &d.tags} {
		if text := q.Get(name); text != "" {
			*to = []byte(text)
			known.Set(name, text)
		}
	}
	return d, known.Encode()
}

func (d *defaults) size() int { return len(d.service) + len(d.source) + len(d.host) + len(d.tags) }

// add adds the fields that an item lacks: its own tags count before the others.
func (d *defaults) add(b *meaning.Parts, source, host bool, tags []byte) {
	if !source && len(d.source) > 0 {
		b.Text("ddsource", d.source)
	}
	if !host && len(d.host) > 0 {
		b.Text("hostname", d.host)
	}
	addTags(b, tags, nil)
	addTags(b, d.tags, tags)
}

// hasTag reports whether a list has a tag of a name.
func hasTag(list, name []byte) bool {
	for tag := range bytes.SplitSeq(list, []byte(",")) {
		if own, _, _ := bytes.Cut(bytes.TrimSpace(tag), []byte(":")); bytes.Equal(bytes.TrimSpace(own), name) {
			return true
		}
	}
	return false
}

// A textSink makes records of the lines of a text, with the defaults.
type textSink struct{ *sink }

// Begin begins a line of text.
func (s *textSink) Begin(h meaning.Head) *meaning.Parts {
	h.Renames = true
	for _, name := range [][]byte{s.query.service, s.query.source} {
		if len(h.Service) == 0 {
			h.Service = name
		}
	}
	b := s.Sink.Begin(h)
	if s.share() {
		s.query.add(b, false, false, nil)
	}
	return b
}

// Record passes the record begun last.
func (s *textSink) Record(raw []byte, places, end int) bool {
	if s.shared > maxShared {
		return s.Reject(raw, tooMuch(), end)
	}
	return s.Sink.Record(raw, places, end)
}

// share counts the bytes that the defaults add to one more record, and reports whether they may.
func (s *sink) share() bool {
	s.shared += s.query.size()
	return s.shared <= maxShared
}

func tooMuch() body.Rejection {
	return body.Rejection{Reason: "the query adds over 128 MiB to the records of this body; send fewer records together"}
}
