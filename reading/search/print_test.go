package search_test

import (
	"testing"

	"blobtail/reading/search"
)

// The word that is typed is what suggestions replace.
func TestWordAt(t *testing.T) {
	for line, want := range map[string]search.Word{
		``:                          {},
		`x stat`:                    {From: 2, Name: "stat"},
		`x -stat`:                   {From: 3, Name: "stat"},
		`größe >`:                   {From: 7, Sign: ">"},
		`größe>`:                    {From: 6, Name: "größe", Sign: ">"},
		`status=5`:                  {From: 7, Name: "status", Sign: "=", Value: "5"},
		`status="5 0`:               {From: 7, Name: "status", Sign: "=", Value: "5 0"},
		`(a OR @status:5`:           {From: 14, Name: "status", Sign: ":", Value: "5"},
		`-level:>=wa`:               {From: 9, Name: "level", Sign: ":>=", Value: "wa"},
		`service=web,or`:            {From: 12, Name: "service", Sign: "=", Value: "or"},
		`path=a,b`:                  {From: 5, Name: "path", Sign: "=", Value: "a,b"},
		`"a b"=c`:                   {From: 6, Name: "a b", Sign: "=", Value: "c"},
		`"a b`:                      {Name: "a b"},
		`level in (error, wa`:       {From: 17, Name: "level", Sign: "=", Value: "wa"},
		`level:(error OR "wa`:       {From: 16, Name: "level", Sign: "=", Value: "wa"},
		`level=(error OR warn) sta`: {From: 22, Name: "sta"},
		`/api/x`:                    {},
		`a /re x/ b`:                {From: 9, Name: "b"},
	} {
		if got := search.WordAt(line); got != want {
			t.Errorf("%s: %+v, want %+v", line, got, want)
		}
	}
}

// Terms are those within groups too, and know whether records with them are left out.
func TestTerms(t *testing.T) {
	q, err := search.Parse(`a -(b OR NOT status>=500) tim*out msg:x`)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, one := range q.Terms() {
		got += map[bool]string{true: "-"}[one.Not] + one.Kind + ":" + one.Name + one.Op + one.Value + " "
	}
	if want := "text:a -text:b field:status>=500 expr:tim.*out text:msg=x "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
