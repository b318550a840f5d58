package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"blobtail/reading/form"
	"blobtail/serve/api"
)

// described reads the description of the API once. Every answer of the tests is checked
// against it.
var described = sync.OnceValues(func() (*openapi3.T, error) {
	w := httptest.NewRecorder()
	api.New(api.Options{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, api.Prefix+"openapi.json", http.NoBody))
	return openapi3.NewLoader().LoadFromData(w.Body.Bytes())
})

// checked counts the answers that were checked, by test, path and status.
var checked sync.Map

// pathOf is the path of the description that a request is for; "" for none.
func pathOf(doc *openapi3.T, request string) string {
	path := "/" + request
	switch {
	case doc.Paths.Value(path) != nil:
		return path
	case strings.HasPrefix(path, "/blobs/"):
		return "/blobs/{name}"
	case strings.HasPrefix(path, "/records/") && strings.Count(path, "/") == 3:
		return "/records/{service}/{id}"
	}
	return ""
}

// check checks an answer against the description.
func check(t testing.TB, r *http.Request, a *answer) {
	t.Helper()
	doc, err := described()
	if err != nil {
		t.Fatal(err)
	}
	// A check takes long, and hundreds of like answers are checked once each in other ways.
	if n, _ := checked.LoadOrStore(fmt.Sprint(t.Name(), r.URL.Path[:min(20, len(r.URL.Path))], a.status), new(atomic.Int32)); n.(*atomic.Int32).Add(1) > 10 {
		return
	}
	path := pathOf(doc, strings.TrimPrefix(r.URL.Path, api.Prefix))
	if path == "" || r.Method != http.MethodGet || doc.Paths.Value(path).Get == nil || a.status == http.StatusMovedPermanently || a.status == http.StatusTemporaryRedirect {
		return
	}
	item := doc.Paths.Value(path)
	route := &routers.Route{Spec: doc, Server: &openapi3.Server{URL: "/api/v1"}, Path: path, PathItem: item, Method: r.Method, Operation: item.Get}
	kind := a.header.Get("Content-Type")
	err = openapi3filter.ValidateResponse(t.Context(), (&openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, Route: route},
		Status:                 a.status, Header: a.header,
		Options: &openapi3filter.Options{IncludeResponseStatus: true, ExcludeResponseBody: !strings.HasSuffix(kind, "json") || kind == form.Lines, MultiError: true},
	}).SetBodyBytes([]byte(a.body)))
	schema := "Problem"
	if a.status == http.StatusOK {
		err = errors.Join(err, known(item.Get, r.URL.Query()))
		if media := item.Get.Responses.Status(http.StatusOK).Value.Content[form.JSON]; media != nil {
			schema = strings.TrimPrefix(media.Schema.Ref, "#/components/schemas/")
		}
	}
	if (kind == form.JSON || kind == form.Trouble) && schema != "" {
		var v any
		err = errors.Join(err, json.Unmarshal([]byte(a.body), &v), strict(doc.Components.Schemas[schema], v, schema))
	}
	if kind == form.Lines && (strings.Contains(r.URL.RawQuery, "form=events") || path == "/context") {
		n := 0
		for line := range strings.Lines(a.body) { // a check takes long
			if n++; n < 5 || !strings.HasPrefix(line, `{"record"`) {
				err = errors.Join(err, checkEvent(doc, line))
			}
		}
	}
	if err != nil {
		t.Errorf("%s is not as described: %.2000v\n%.1000s", r.URL, err, a.body)
	}
}

// checkEvent checks an event.
func checkEvent(doc *openapi3.T, text string) error {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return fmt.Errorf("%w: %.100s", err, text)
	}
	schema := doc.Components.Schemas["Event"]
	return errors.Join(schema.Value.VisitJSON(v, openapi3.EnableJSONSchema2020()), strict(schema, v, "Event"))
}

// known finds parameters of a request that are not described.
func known(op *openapi3.Operation, query url.Values) error {
	for name := range query {
		if op.Parameters.GetByInAndName(openapi3.ParameterInQuery, name) == nil {
			return fmt.Errorf("the parameter %s is not described", name)
		}
	}
	return nil
}

// strict finds fields that are not described: clients accept them, the tests do not.
func strict(schema *openapi3.SchemaRef, v any, at string) error {
	if schema == nil {
		return fmt.Errorf("%s has no schema", at)
	}
	all := []*openapi3.SchemaRef{schema}
	for i := 0; i < len(all); i++ {
		all = append(all, all[i].Value.AllOf...)
	}
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			if err := strict(schema.Value.Items, one, at+"[]"); err != nil {
				return err
			}
		}
	case map[string]any:
		described := false
		for name, value := range v {
			found := slices.IndexFunc(all, func(s *openapi3.SchemaRef) bool { return s.Value.Properties[name] != nil })
			described = described || found >= 0
			if found >= 0 {
				if err := strict(all[found].Value.Properties[name], value, at+"."+name); err != nil {
					return err
				}
			} else if at != "openapi" && schema.Value.AdditionalProperties.Schema == nil && !slices.ContainsFunc([]string{"line", "counts", "levels"}, func(open string) bool { return strings.HasSuffix(at, "."+open) }) {
				return fmt.Errorf("%s.%s is not described", at, name)
			}
		}
	}
	return nil
}

// The description is valid, has every route and every parameter, and no others.
func TestDescription(t *testing.T) {
	doc, err := described()
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Error(err)
	}
	// A server may have tokens, or none: the words say of each scheme what the schemes say.
	optional := slices.ContainsFunc(doc.Security, func(r openapi3.SecurityRequirement) bool { return len(r) == 0 })
	if text := strings.ToLower(doc.Info.Description); optional != strings.Contains(text, "without tokens") || strings.Contains(text, "no login") {
		t.Errorf("tokens are optional: %v; it says %q", optional, text)
	}
	for name := range doc.Components.SecuritySchemes {
		listed := slices.ContainsFunc(doc.Security, func(r openapi3.SecurityRequirement) bool { _, ok := r[name]; return ok })
		if !listed || !strings.Contains(strings.ToLower(doc.Info.Description), name) {
			t.Errorf("the scheme %s is not told: %q", name, doc.Info.Description)
		}
	}
	s := serve(t, nil)
	for path, item := range doc.Paths.Map() {
		if item.Get == nil {
			if a := s.do(http.MethodGet, path[1:]); a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") != "POST, DELETE" {
				t.Errorf("%s: a GET is answered by %d %v", path, a.status, a.header)
			}
			continue
		}
		request := strings.NewReplacer("{name}", "web/2026/11/20/1200/000001.log", "{service}", "web", "{id}", "1-00000000000000000000000000000000-0").Replace(path[1:])
		a := s.get(request + "?nonsense=1")
		if a.status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
		var p form.Problem
		if err := json.Unmarshal([]byte(a.body), &p); err != nil {
			t.Error(err)
		}
		_, list, _ := strings.Cut(p.Detail, "there are ")
		list, _, _ = strings.Cut(list, "; is it")
		var served []string
		if list != "" {
			served = strings.Split(list, ", ")
		}
		var has []string
		for _, param := range item.Get.Parameters {
			if param.Value.In == openapi3.ParameterInQuery {
				has = append(has, param.Value.Name)
			}
		}
		slices.Sort(served)
		slices.Sort(has)
		if !slices.Equal(served, has) {
			t.Errorf("%s has the parameters %q and describes %q", path, served, has)
		}
		if a := s.do(http.MethodPost, request); a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") == "" {
			t.Errorf("%s: a POST is answered by %d", path, a.status)
		}
	}
	a := s.get("nonsense")
	for path := range doc.Paths.Map() {
		if !strings.Contains(path, "{") && !strings.Contains(a.body, path[1:]) {
			t.Errorf("the list of routes lacks %s: %s", path, a.body)
		}
	}
}
