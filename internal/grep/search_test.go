package grep_test

import (
	"testing"

	"blobtail/internal/grep"
	"blobtail/record/meaning"
)

// matches reports whether a pattern matches the record of an object, and fails if it
// matches one without a spelling: a reader would not look at that.
func matches(t *testing.T, p *grep.Pattern, object string) bool {
	t.Helper()
	parser := meaning.NewReader()
	if _, err := parser.Scan([]byte(object)); err != nil {
		t.Fatalf("%s: %v", object, err)
	}
	line, _ := parser.AppendLine(nil, &meaning.Defaults{Service: "web", Time: 1})
	raw := line[:len(line)-1]
	low := raw
	if p.Folds() {
		low = make([]byte, len(raw))
		grep.Fold(low, raw)
	}
	var l grep.Line
	l.Set(raw, low)
	matched := p.Match(&l)
	if matched && p.Weight() > 0 && p.Finder(low).From(0) == len(low) {
		t.Errorf("no spelling in %s", raw)
	}
	return matched
}

// A text is searched in the parts of a record that a reader sees. The oracle of package blobs asks
// at random; these are the cases that are easy to get wrong.
func TestTexts(t *testing.T) {
	fixed := func(text string) *grep.Pattern { return grep.Fixed(text, false) }
	folded := func(text string) *grep.Pattern { return grep.Fixed(text, true) }
	word := func(text string) *grep.Pattern { return grep.Word(text, false) }
	expr := func(text string) *grep.Pattern {
		p, err := grep.Expr(nil, text, false)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, c := range []struct {
		name   string
		p      *grep.Pattern
		object string
		want   bool
	}{
		{"a field", fixed(`status=502`), `{"status":502}`, true},
		{"a field as stored", fixed(`"status":502`), `{"status":502}`, true},
		{"a number of 20 digits", fixed(`id=12345678901234567890`), `{"id":12345678901234567890}`, true},
		{"an exponent as sent", fixed(`n=1E+2`), `{"n":1E+2}`, true},
		{"not another form of it", fixed(`n=100`), `{"n":1E+2}`, false},
		{"a field with blanks", fixed(`path="a b"`), `{"path":"a b"}`, true},
		{"not without quotes", fixed(`path=a b`), `{"path":"a b"}`, false},
		{"an empty field", fixed(`path=""`), `{"path":""}`, true},
		{"an object", fixed(`http={"a":1}`), `{"http": {"a" : 1}}`, true},
		{"a key with =", fixed(`a=b=c`), `{"a=b":"c"}`, true},
		{"ts is no field", fixed(`level=info`), `{"level":"info"}`, false},
		{"the level", fixed(`info`), `{"level":"info"}`, true},
		{"quotes", fixed(`say "hi"`), `{"msg":"say \"hi\""}`, true},
		{"a backslash", fixed(`C:\temp`), `{"msg":"C:\\temp"}`, true},
		{"an escaped slash", fixed(`a/b`), `{"msg":"a\/b"}`, true},
		{"escaped ASCII", fixed(`abc`), `{"msg":"\u0061\u0062c"}`, true},
		{"no UTF-8", fixed("a\xffb"), "{\"msg\":\"a\xffb\"}", true},
		{"no UTF-8, as shown", fixed(`a\xffb`), "{\"msg\":\"a\xffb\"}", true},
		{"ASCII folds", folded(`kAS`), `{"msg":"Kas"}`, true},
		{"the sign of Kelvin does not", folded(`k`), "{\"msg\":\"\u212a\"}", false},
		{"nor the long s", folded(`s`), "{\"msg\":\"\u017f\"}", false},
		{"nor letters beyond ASCII", folded("\u00c9"), "{\"msg\":\"\u00e9\"}", false},
		{"an expression with a letter that becomes ASCII in lower case", expr("(?i)\u0130zmir is"), "{\"msg\":\"\u0130ZMIR is big\"}", true},
		{"an expression folds all", expr(`(?i)k`), "{\"msg\":\"\u212a\"}", true},
		{"a word", word(`disk`), `{"msg":"out of disk"}`, true},
		{"not a part of one", word(`disk`), `{"msg":"disks"}`, false},
		{"a letter beyond ASCII is one", word(`disk`), `{"msg":"disk\u00e9"}`, false},
		{"so is a digit", word(`disk`), "{\"msg\":\"disk\u0665\"}", false},
		{"a second one", word(`disk`), `{"msg":"disks disk"}`, true},
		{"the value of a field", word(`502`), `{"status":502}`, true},
		{"ends", expr(`^GET /$`), `{"msg":"GET /","n":1}`, true},
		{"ends of a field", expr(`^n=1$`), `{"msg":"GET /","n":1}`, true},
		{"ends of lines", expr(`(?m)^b$`), `{"msg":"a\nb\nc"}`, true},
		{"not without m", expr(`^b$`), `{"msg":"a\nb\nc"}`, false},
		{"any character", expr(`(?s)a.b`), `{"msg":"a\nb"}`, true},
		{"not without s", expr(`a.b`), `{"msg":"a\nb"}`, false},
		{"nothing", expr(`x*`), `{}`, true},
		{"an empty text", expr(`^$`), `{"msg":""}`, true},
		{"no empty text", expr(`^$`), `{"msg":"a","level":"info"}`, false},
		{"a tab", expr(`\tat com`), `{"msg":"x\n\tat com.a"}`, true},
	} {
		if got := matches(t, c.p, c.object); got != c.want {
			t.Errorf("%s: %v: %s", c.name, got, c.object)
		}
	}
}

// If case does not count, an expression is as valid as it is by itself.
func TestFoldedExpressions(t *testing.T) {
	if _, err := grep.Expr(nil, "a)|(b", true); err == nil {
		t.Error("a)|(b is taken")
	}
	for _, text := range []string{`\QA.B`, "x|A.B"} {
		p, err := grep.Expr(nil, text, true)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if !matches(t, p, `{"msg":"a.b"}`) {
			t.Errorf("%s does not match", text)
		}
	}
}
