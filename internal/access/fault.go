package access

import (
	"cmp"
	"net/http"
	"strings"
)

// FormError says that the headers of a request have no credentials of a known form. Fault is a
// text of ours: it has nothing of the headers, which may be a secret.
type FormError struct {
	Fault string
	err   error
}

// Error implements error.
func (e *FormError) Error() string { return e.err.Error() + ": " + e.Fault }

// Unwrap returns [ErrMissing], or a [DeniedError].
func (e *FormError) Unwrap() error { return e.err }

// faultOf tells why the credentials of a request cannot be those of any token; "" if they can.
func faultOf(r *http.Request) string {
	if len(r.Header["Authorization"]) > 1 || len(r.Header["Dd-Api-Key"]) > 1 || len(r.Header["X-Seq-Apikey"]) > 1 {
		return "the request has the header with the token twice"
	}
	header := r.Header.Get("Authorization")
	if header == "" {
		return faultOfToken(cmp.Or(r.Header.Get("Dd-Api-Key"), r.Header.Get("X-Seq-Apikey")))
	}
	scheme, value, blank := strings.Cut(header, " ")
	value = strings.TrimSpace(value)
	switch strings.ToLower(scheme) {
	case "bearer", "splunk":
		return faultOfToken(value)
	case "apikey":
		if split(decoded(value), ":") != (Credentials{}) {
			return ""
		}
		return faultOfToken(value)
	case "basic":
		return faultOfBasic(value)
	case "bearer:", "basic:", "bearer=":
		return "there is a colon or = behind the first word of Authorization"
	}
	if strings.HasPrefix(strings.ToLower(header), "bearer") {
		return "there is no blank behind the word Bearer"
	}
	if !blank && faultOfToken(header) == "" {
		return "the word Bearer is missing before the token"
	}
	return "the header Authorization begins with another word than Bearer"
}

// faultOfToken tells why a text cannot be ID.SECRET; "" if it can.
func faultOfToken(text string) string {
	const quotes = "\"'`<>[]{}\u201c\u201d\u2018\u2019"
	first, _, _ := strings.Cut(text, " ")
	id, secret, dot := strings.Cut(text, ".")
	switch {
	case text == "":
		return "no token follows the word (is a variable empty?)"
	case strings.EqualFold(first, "bearer"), strings.EqualFold(first, "basic"):
		return "the word before the token is there twice"
	case strings.HasPrefix(text, "$") || strings.HasPrefix(text, "{{") || strings.HasPrefix(text, "%"):
		return "the name of a variable was sent, not its value (in a shell, write it in double quotes)"
	case strings.Trim(text, quotes) != text:
		return "the token has quotation marks or brackets around it"
	case strings.ContainsAny(text, " \t"):
		return "the token has a blank in it"
	case dot && strings.HasPrefix(text, "eyJ") && strings.Count(text, ".") == 2:
		return "a JWT was sent, and this server has tokens of its own"
	case dot && validID(id) && secret != "":
		return ""
	case dot && secret == "":
		return "the secret behind the dot is missing"
	case dot && id == "":
		return "the id before the dot is missing"
	case dot:
		return "the text before the first dot is no id of a token"
	case validID(strings.SplitN(text, ":", 2)[0]) && strings.Contains(text, ":"):
		return "the id and the secret have a colon between them, and want a dot"
	case split(decoded(text), ":") != (Credentials{}):
		return "the token is in base64, as the word Basic wants it"
	}
	return "the token has no dot: it is an id alone, or a secret alone"
}

// faultOfBasic tells why a text behind the word Basic cannot be the credentials of a token; "" if
// it can.
func faultOfBasic(value string) string {
	pair := split(decoded(value), ":")
	switch {
	case value == "":
		return "nothing follows the word Basic"
	case pair == (Credentials{}) && faultOfToken(value) == "":
		return "the word Basic is before a token that wants the word Bearer"
	case pair == (Credentials{}):
		return "no base64 of a name, a colon and a password follows the word Basic"
	case pair.ID == "x" || pair.ID == "":
		return faultOfToken(pair.Secret)
	case faultOfToken(pair.ID) == "":
		return "the name is the whole token, of which the secret is the password (curl -u ID:SECRET)"
	case strings.HasPrefix(pair.Secret, pair.ID+"."):
		return "the password is the whole token, and wants the secret alone, without the id and the dot"
	case pair.Secret == "":
		return "the password is empty, and wants the secret of the token"
	case !validID(pair.ID):
		return "the name is no id of a token"
	case faultOfToken(pair.Secret) == "":
		return "the password is a whole token; then the name is x, or the id with the secret alone as the password"
	}
	return ""
}

// elsewhere tells of credentials in a place that is not read; "" for none.
func elsewhere(r *http.Request) string {
	for _, name := range []string{
		"X-API-Key", "Api-Key", "ApiKey", "X-Auth-Token", "X-Token", "Token", "X-Access-Token", "X-Authorization", "Proxy-Authorization", "X-Insert-Key", "X-License-Key",
	} {
		if r.Header.Get(name) != "" {
			return "a token in the header " + name + " is not read"
		}
	}
	if r.URL.User != nil {
		return "a token in the URL is not read"
	}
	if r.URL.RawQuery == "" {
		return ""
	}
	q := r.URL.Query()
	for _, name := range []string{"token", "access_token", "api_key", "apikey", "api-key", "key", "dd-api-key", "auth"} {
		if q.Has(name) {
			return "a token in the URL is not read, because URLs are written to logs"
		}
	}
	return ""
}
