package azure

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"blobtail/storage"
)

// ServiceError is a refusal by Azure Storage. It replaces the SDK's own error: the text of that is
// a page long and may hold signed data.
type ServiceError struct {
	Status    int    // of HTTP
	Code      string // such as "ServerBusy"; may be empty
	RequestID string // for Microsoft's support
	// Ahead is how far the host's clock was ahead of the service's when the refusal came; 0
	// if that is not known.
	Ahead    time.Duration
	sentinel error // of package storage, or nil
}

func (e *ServiceError) Error() string {
	text := fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status))
	if e.Code != "" {
		text = fmt.Sprintf("%d %s", e.Status, e.Code)
	}
	if e.sentinel != nil {
		text = e.sentinel.Error() + ": " + text
	}
	switch e.Code {
	case "BlobArchived":
		text += ": " + storage.ErrArchived.Error()
	case "BlobBeingRehydrated":
		text += ": it is on its way out of the archive tier, which takes hours"
	}
	if e.RequestID != "" {
		text += " (request " + e.RequestID + ")"
	}
	return text
}

func (e *ServiceError) Unwrap() error { return e.sentinel }

// translate turns an error of the SDK into one of ours, without secrets: errors of the
// transport carry the whole URL, with its SAS.
func translate(err error) error {
	if err == nil {
		return nil
	}
	if re, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return serviceError(re)
	}
	if ue, ok := errors.AsType[*url.Error](err); ok {
		u, perr := url.Parse(ue.URL)
		if perr != nil {
			u = &url.URL{}
		}
		return redact(fmt.Errorf("%s %s: %w", strings.ToUpper(ue.Op), u.Host, ue.Err))
	}
	var auth *azidentity.AuthenticationFailedError
	if errors.As(err, &auth) || strings.Contains(err.Error(), "DefaultAzureCredential") {
		return fmt.Errorf("%w: %w", storage.ErrUnauthorized, shorten(redact(err)))
	}
	if strings.Contains(err.Error(), plainLogin) {
		return fmt.Errorf("%w: %w", storage.ErrUnauthorized, redact(err))
	}
	return redact(err)
}

// plainLogin is in the SDK's error of a request over plain HTTP that an identity would sign.
const plainLogin = "not permitted for non-TLS protected"

// mostLogin is about the number of characters of an error of credentials.
const mostLogin = 200

// shorten shortens the text of an error of credentials. It has a part for each kind that was
// tried, and these have whole answers of servers between rows of dashes. Kinds that are not set up
// are only named, each other one gets its share, and no word is cut.
func shorten(e *redacted) *redacted {
	text := regexp.MustCompile(`\s*-{9,}\s*`).ReplaceAllString(e.text, " ")
	text = regexp.MustCompile(`,?\.? ?To troubleshoot, visit \S+`).ReplaceAllString(text, "")
	text = regexp.MustCompile(`\b(?:GET|POST) \S+ RESPONSE (\d+: )?`).ReplaceAllString(text, "")
	const chain = "DefaultAzureCredential: failed to acquire a token. Attempted credentials: "
	if _, list, ok := strings.Cut(text, chain); ok {
		text = list
	}
	starts := regexp.MustCompile(`\b[A-Z]\w*Credential(?:: | authentication failed)`).FindAllStringIndex(text, -1)
	if len(starts) == 0 || starts[0][0] > 0 {
		return &redacted{text: cut(text, mostLogin), whole: text, cause: e.cause}
	}
	var absent, parts []string
	for i, at := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		part := strings.TrimRight(text[at[0]:end], " .;")
		kind, reason, _ := strings.Cut(part, ": ")
		if len(starts) > 1 && regexp.MustCompile(`^missing environment variable|^no client ID specified|^executable not found`).MatchString(reason) {
			absent = append(absent, kind)
		} else {
			parts = append(parts, part)
		}
	}
	for i := range parts {
		parts[i] = cut(parts[i], mostLogin/len(parts))
	}
	if len(absent) > 0 {
		parts = append(parts, "nothing for "+strings.Join(absent, ", "))
	}
	return &redacted{text: strings.Join(parts, "; "), whole: text, cause: e.cause}
}

// cut cuts a text behind a word.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	if at := strings.LastIndexByte(text[:most], ' '); at > 0 {
		return text[:at] + " ..."
	}
	return text[:most]
}

func serviceError(re *azcore.ResponseError) error {
	e := &ServiceError{Status: re.StatusCode, Code: re.ErrorCode}
	if re.RawResponse != nil {
		e.RequestID = re.RawResponse.Header.Get("x-ms-request-id")
		if there, err := http.ParseTime(re.RawResponse.Header.Get("Date")); err == nil {
			e.Ahead = time.Since(there)
		}
		if e.Code == "" || e.Status == http.StatusAccepted {
			e.fromBody(re.RawResponse)
		}
	}
	switch {
	case e.Code == "BlobNotFound", e.Code == "ContainerNotFound", e.Code == "TableNotFound", e.Code == "ResourceNotFound",
		e.Code == "" && e.Status == http.StatusNotFound:
		e.sentinel = storage.ErrNotExist
	case e.Code == "BlobAlreadyExists", e.Code == "UnauthorizedBlobOverwrite":
		e.sentinel = storage.ErrExist
	case e.Code == "BlobImmutableDueToPolicy", e.Code == "BlobImmutableDueToLegalHold":
		e.sentinel = storage.ErrHeld
	case e.Code == "TableBeingDeleted":
		e.sentinel = storage.ErrBeingDeleted
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusForbidden, e.Code == "PublicAccessNotPermitted":
		e.sentinel = storage.ErrUnauthorized
	}
	return e
}

// fromBody finds the code if it is not in the header: a failed transaction is a 202
// with the true answer in the body, as JSON within multipart.
func (e *ServiceError) fromBody(resp *http.Response) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return
	}
	if _, rest, ok := bytes.Cut(body, []byte("HTTP/1.1 ")); ok && e.Status == http.StatusAccepted {
		fmt.Sscanf(string(rest[:min(3, len(rest))]), "%d", &e.Status)
	}
	start := bytes.Index(body, []byte(`{"odata.error"`))
	if start < 0 {
		return
	}
	var answer struct {
		Error struct {
			Code string `json:"code"`
		} `json:"odata.error"`
	}
	if json.NewDecoder(bytes.NewReader(body[start:])).Decode(&answer) == nil {
		e.Code = answer.Error.Code
	}
}

// hasCode reports whether err is an answer with one of these codes.
func hasCode(err error, codes ...string) bool {
	e, ok := errors.AsType[*ServiceError](err)
	return ok && slices.Contains(codes, e.Code)
}

// redacted is an error with text that may not be printed as it is.
type redacted struct {
	text  string
	whole string // before the text was shortened, for [Store.Explain]; "" if it was not
	cause error  // a cause without any text to hide
}

func (e *redacted) Error() string { return e.text }
func (e *redacted) Unwrap() error { return e.cause }

// redact keeps only the parts of an error that callers decide by: that the context ended,
// or that a body broke off.
func redact(err error) *redacted {
	text := strings.Join(strings.Fields(err.Error()), " ")
	secrets := regexp.MustCompile(`(?i)((?:\bsig|AccountKey|SharedAccessSignature|client_secret|client_assertion|(?:access|refresh|id)_?token|Authorization)` +
		`["\\]*\s*[=:]\s*["\\]*(?:(?:Bearer|Basic|SharedKey|SharedKeyLite)\s+)?|\b(?:Bearer|SharedKey|SharedKeyLite)\s+)[^\s&;,"\\}]+`)
	e := &redacted{text: secrets.ReplaceAllString(text, "${1}REDACTED")}
	switch {
	case errors.Is(err, context.Canceled):
		e.cause = context.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		e.cause = context.DeadlineExceeded
	case errors.Is(err, io.ErrUnexpectedEOF):
		e.cause = io.ErrUnexpectedEOF
	case errors.Is(err, syscall.ECONNREFUSED):
		e.cause = syscall.ECONNREFUSED
	case errors.Is(err, http.ErrSchemeMismatch):
		e.cause = http.ErrSchemeMismatch
	case isNoHost(err):
		e.cause, _ = errors.AsType[*net.DNSError](err)
	}
	return e
}

// guard turns a panic into an error. The SDK indexes into the multipart answers of
// batches and transactions, and a proxy may send any answer.
func guard(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("malformed answer: %v", p)
		}
	}()
	return do()
}
