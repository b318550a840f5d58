package deploy

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// role is a definition in the form that az role definition create accepts.
type role struct {
	Name, Description                                                  string
	IsCustom                                                           bool
	Actions, NotActions, DataActions, NotDataActions, AssignableScopes []string
}

// Actions that operations of the services need, by "Authorize with Microsoft Entra
// ID", permissions for calling data operations
// (learn.microsoft.com/rest/api/storageservices). Actions are on the left of the
// table in a role, and data actions the others.
var (
	getContainer = []string{"blobServices/containers/read"}
	queryTables  = []string{"tableServices/tables/read"}
	createTable  = []string{"tableServices/tables/write"}
	deleteTable  = []string{"tableServices/tables/delete"}

	readBlobs    = []string{"blobServices/containers/blobs/read"} // and lists of them
	putNewBlob   = []string{"blobServices/containers/blobs/add/action"}
	deleteBlob   = []string{"blobServices/containers/blobs/delete"}
	readEntities = []string{"tableServices/tables/entities/read"}
	// Insert Or Replace Entity, also within a transaction.
	upsert = []string{"tableServices/tables/entities/add/action", "tableServices/tables/entities/update/action"}
)

// TestRoles ensures that each role has the permissions that its process needs and no
// others: only one role deletes, and none can overwrite a blob.
func TestRoles(t *testing.T) {
	for name, want := range map[string]struct{ actions, data [][]string }{
		"ingester":  {[][]string{getContainer, createTable}, [][]string{readBlobs, putNewBlob, readEntities, upsert}},
		"reader":    {[][]string{getContainer}, [][]string{readBlobs, readEntities}},
		"retention": {[][]string{getContainer, queryTables, deleteTable}, [][]string{readBlobs, putNewBlob, deleteBlob}},
	} {
		var r role
		d := json.NewDecoder(bytes.NewReader([]byte(read(t, "azure/roles/"+name+".json"))))
		d.DisallowUnknownFields()
		if err := d.Decode(&r); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if r.Name != "blobtail "+name || !r.IsCustom || r.Description == "" || len(r.AssignableScopes) != 1 {
			t.Errorf("%s: %+v", name, r)
		}
		for _, c := range []struct {
			what string
			got  []string
			want [][]string
		}{
			{"actions", r.Actions, want.actions}, {"data actions", r.DataActions, want.data},
			{"not actions", r.NotActions, nil}, {"not data actions", r.NotDataActions, nil},
		} {
			short := make([]string, len(c.got))
			for i, action := range c.got {
				short[i] = strings.TrimPrefix(action, "Microsoft.Storage/storageAccounts/")
			}
			if slices.Sort(short); !slices.Equal(short, slices.Sorted(slices.Values(slices.Concat(c.want...)))) {
				t.Errorf("%s: %s %q, want %q", name, c.what, short, c.want)
			}
		}
	}
}

// TestBicep checks the template as far as possible without its compiler. Brackets
// match, every name it uses is declared, every declared name is used, and it contains
// the settings that matter for deletion.
func TestBicep(t *testing.T) {
	text := regexp.MustCompile(`(?m)^\s*//.*\n`).ReplaceAllString(read(t, "azure/store.bicep"), "")
	code := regexp.MustCompile(`'[^']*'`).ReplaceAllStringFunc(text, func(s string) string {
		// In a string, only the interpolated expressions count.
		return strings.Join(regexp.MustCompile(`\$\{[^}]*\}`).FindAllString(s, -1), " ")
	})
	open := ""
	for _, c := range code {
		switch pair := map[rune]string{')': "(", ']': "[", '}': "{"}[c]; {
		case strings.ContainsRune("([{", c):
			open += string(c)
		case pair != "" && !strings.HasSuffix(open, pair):
			t.Fatalf("%q closes %q", c, open)
		case pair != "":
			open = open[:len(open)-1]
		}
	}
	if open != "" {
		t.Errorf("%q is never closed", open)
	}
	declared := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^(?:param|var|resource) (\w+)`).FindAllStringSubmatch(code, -1) {
		declared[m[1]] = true
	}
	// Collections of assignments, the container and the rule need not be referenced.
	for _, name := range []string{"ingesting", "reading", "deleting", "logs", "tiering"} {
		if !declared[name] {
			t.Errorf("there is no %s", name)
		}
		delete(declared, name)
	}
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		if len(regexp.MustCompile(`\b`+name+`\b`).FindAllString(code, -1)) < 2 {
			t.Errorf("%s is declared and not used", name)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)(?:parent|scope): (\w+)$|^param (\w+) array`).FindAllStringSubmatch(code, -1) {
		if name := m[1] + m[2]; !declared[name] {
			t.Errorf("%s is not declared", name)
		}
	}
	for _, m := range regexp.MustCompile(`loadJsonContent\('([^']*)'\)`).FindAllStringSubmatch(text, -1) {
		read(t, "azure/"+m[1])
	}
	for _, m := range regexp.MustCompile(`(?m)^resource \w+ '(.*)' =`).FindAllStringSubmatch(text, -1) {
		if !regexp.MustCompile(`^Microsoft\.\w+(/\w+)+@20\d\d-\d\d-\d\d$`).MatchString(m[1]) {
			t.Errorf("type %q", m[1])
		}
	}
	for _, want := range []string{"isVersioningEnabled: false", "param undeleteDays int = 7\n", "allowSharedKeyAccess: false", "isHnsEnabled: false", "tierToCool"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	// Only the job deletes, and archived blobs cannot be read.
	for _, not := range []string{"delete:", "tierToArchive"} {
		if strings.Contains(text, not) {
			t.Errorf("it says %q", not)
		}
	}
}
