package httpsource

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"blobtail/internal/spelling"
	"blobtail/record/meaning"
	"blobtail/source/body"
)

// fieldParameters are the query parameters by which a sender names fields.
func fieldParameters() []string { return []string{"_time", "_level", "_message", "_service"} }

// nearParameter says whether guessed times have to be near.
const nearParameter = "_time_near"

// isField reports whether a query parameter has an effect on the fields of records.
func isField(name string) bool {
	return name == nearParameter || slices.Contains(fieldParameters(), name)
}

// askFields reads the fields that a sender names by query parameters, in any protocol. Other names
// make other records of a body. configured are those of the operator.
func (in *Intake) askFields(r *http.Request, configured *meaning.Mapping) error {
	in.fields = configured
	if r.URL.RawQuery == "" {
		return nil
	}
	query, asked, all := r.URL.Query(), url.Values{}, 0
	var names meaning.Names
	for i, to := range []*[]string{&names.Time, &names.Level, &names.Message, &names.Service} {
		parameter := fieldParameters()[i]
		for _, value := range query[parameter] {
			for name := range strings.SplitSeq(value, ",") {
				if name = strings.TrimSpace(name); name == "" {
					continue
				}
				if len(name) > meaning.LongestName {
					return Refuse(http.StatusBadRequest, "query parameter %s: want names of fields of at most %d bytes, not %s", parameter, meaning.LongestName, body.Short(name))
				}
				*to = append(*to, name)
				all++
			}
		}
		if len(*to) > 0 {
			asked.Set(parameter, strings.Join(*to, ","))
		}
	}
	near := query.Get(nearParameter)
	switch {
	case near != "" && near != "on" && near != "off":
		return Refuse(http.StatusBadRequest, "query parameter %s: want on or off, not %s", nearParameter, body.Short(near))
	case all == 0 && near == "":
		return nil
	case all > meaning.MostNames:
		return Refuse(http.StatusBadRequest, "the query parameters %s name %d fields; want at most %d", strings.Join(fieldParameters(), ", "), all, meaning.MostNames)
	}
	if all > 0 {
		in.fields = configured.With(names)
	}
	if near != "" {
		in.fields = in.fields.WithFar(near == "off")
		asked.Set(nearParameter, near)
	}
	if in.Scope != "" {
		in.Scope += "&"
	}
	in.Scope += asked.Encode()
	return nil
}

// meantParameter returns the one of fieldParameters that was probably meant by a name such as _msg
// or time_field; "" for none. A name such as service has a value of another kind.
func meantParameter(name string) string {
	base := strings.TrimPrefix(strings.TrimSuffix(strings.ToLower(name), "_field"), "_")
	if len(base) == len(name) {
		return ""
	}
	known := meaning.KnownNames()
	for i, names := range [][]string{known.Time, known.Level, known.Message, known.Service} {
		if slices.Contains(names, base) {
			return fieldParameters()[i]
		}
	}
	if len(base) < len("time")-1 {
		return ""
	}
	return spelling.Near("_"+base, fieldParameters())
}

// warnFields logs parameters of a protocol without notes that look like misspelt ones.
func (s *Source) warnFields(r *http.Request) {
	if r.URL.RawQuery == "" {
		return
	}
	for name := range r.URL.Query() {
		if strings.HasPrefix(name, "_") && !isField(name) && isParameter(name) {
			if meant := meantParameter(name); meant != "" {
				s.unused.Warn().Str("path", body.Short(r.URL.Path)).Str("parameter", name).Msg("a query parameter has no effect; did its sender mean " + meant + "?")
			}
		}
	}
}
