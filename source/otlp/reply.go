package otlp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"blobtail/source/httpsource"
)

// Reply implements [httpsource.Exchange]. Complete success is the empty message: a client
// takes any partial_success for a report of rejected records. Rejected records are a
// success too, because a client must not send them again. An error is a google.rpc.Status.
func (x *exchange) Reply(h http.Header, counts *httpsource.Result, refused *httpsource.Refusal) (status int, text []byte) {
	if x.encoding == sniffed {
		// A request may be refused before Open. A type that is not taken is answered in JSON.
		x.encoding, _ = encodingOf(x.request.Header.Get("Content-Type"))
	}
	h.Set("Content-Type", "application/json")
	if x.encoding == inProto {
		h.Set("Content-Type", "application/x-protobuf")
	}
	switch {
	case refused != nil:
		status = refused.Status
		if status == http.StatusRequestTimeout {
			status = http.StatusServiceUnavailable // no client repeats a request after 408
		}
		return status, x.status(status, refused.Reason)
	case counts.Error != "":
		return http.StatusBadRequest, x.status(http.StatusBadRequest, counts.Error+"; "+reasonOf(counts))
	case counts.Rejected == 0:
		return http.StatusOK, x.message(nil, "{}")
	}
	reason := reasonOf(counts)
	partial := protowire.AppendTag(nil, 1, protowire.VarintType)
	partial = protowire.AppendVarint(partial, uint64(counts.Rejected))
	partial = protowire.AppendTag(partial, 2, protowire.BytesType)
	partial = protowire.AppendString(partial, reason)
	whole := protowire.AppendTag(nil, 1, protowire.BytesType)
	whole = protowire.AppendBytes(whole, partial)
	return http.StatusOK, x.message(whole, fmt.Sprintf(`{"partialSuccess":{"rejectedLogRecords":"%d","errorMessage":%s}}`, counts.Rejected, quoted(reason)))
}

// reasonOf names the first rejected record.
func reasonOf(counts *httpsource.Result) string {
	if len(counts.Errors) == 0 {
		return "some records were rejected"
	}
	first := counts.Errors[0]
	return fmt.Sprintf("record %d: %s; rejected records are kept in the service _rejected", first.Index, first.Reason)
}

// message returns the bytes of a message in the encoding of the request.
func (x *exchange) message(proto []byte, text string) []byte {
	if x.encoding == inProto {
		return proto
	}
	return []byte(text)
}

// status makes a google.rpc.Status of a status of HTTP and a reason.
func (x *exchange) status(http int, reason string) []byte {
	code := codeOf(http)
	proto := protowire.AppendTag(nil, 1, protowire.VarintType)
	proto = protowire.AppendVarint(proto, code)
	proto = protowire.AppendTag(proto, 2, protowire.BytesType)
	proto = protowire.AppendString(proto, reason)
	return x.message(proto, `{"code":`+strconv.FormatUint(code, 10)+`,"message":`+quoted(reason)+`}`)
}

// codeOf returns the code of gRPC that fits a status of HTTP.
func codeOf(http int) uint64 {
	const invalidArgument = 3
	return cmp.Or(map[int]uint64{
		401: 16, // UNAUTHENTICATED
		403: 7,  // PERMISSION_DENIED
		404: 5,  // NOT_FOUND
		405: 12, // UNIMPLEMENTED
		413: 8,  // RESOURCE_EXHAUSTED
		429: 8,
		499: 1,  // CANCELLED
		503: 14, // UNAVAILABLE
	}[http], invalidArgument)
}

func quoted(text string) string {
	b, _ := json.Marshal(text) // a string has a form in JSON
	return string(b)
}
