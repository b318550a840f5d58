package stage_test

import (
	"strings"
	"testing"
	"time"

	"blobtail/logql/stage"
)

func TestTemplates(t *testing.T) {
	object := `{"ts":"2026-11-20T15:04:05.123Z","level":"error","msg":"GET /a b","user":"Ann Lee","n":"17","f":"2.5","path":"/x/y?z=1&q=%20","json":"{\"a\":{\"b\":[1,2]}}",` +
		`"b64":"aGk=","size":"5KB","took":"1m30s","epoch":"1795323600","text":"ab\ncd","empty":"","date":"2026-11-20","é":"ü","a-b":"dash"}`
	line := stored(t, "web", object)
	for template, want := range map[string]string{
		"plain":                                          "plain",
		"{{.user}} {{.none}}|{{.a_b}}":                   "Ann Lee |dash",
		"{{__line__}} in {{.service_name}}":              "GET /a b in web",
		"{{.level}} {{.detected_level}} {{.service}}":    "error error web",
		"{{ToLower .user}} {{ToUpper .user}}":            "ann lee ANN LEE",
		"{{.user | lower}} {{.user | upper | trunc 3}}":  "ann lee ANN",
		"{{title \"anna lee\"}}":                         "Anna Lee",
		"{{Replace .user \"e\" \"E\" 1}}":                "Ann LEe",
		"{{.user | replace \"e\" \"\"}}":                 "Ann L",
		"{{Trim .path \"/1\"}} {{TrimLeft .path \"/\"}}": "x/y?z=1&q=%20 x/y?z=1&q=%20",
		"{{TrimRight .path \"0\"}}":                      "/x/y?z=1&q=%2",
		"{{TrimPrefix .path \"/x\"}}":                    "/y?z=1&q=%20",
		"{{TrimSuffix .path \"%20\"}}":                   "/x/y?z=1&q=",
		"{{TrimSpace \" x \"}}{{trim \" y \"}}":          "xy",
		"{{trimAll \"/\" \"/a/\"}}{{trimPrefix \"a\" \"ab\"}}{{trimSuffix \"b\" \"ab\"}}":     "aba",
		"{{regexReplaceAll \"(\\\\w+) (\\\\w+)\" .user \"${2} $1\"}}":                         "Lee Ann",
		"{{regexReplaceAllLiteral \"e+\" .user \"$1\"}}":                                      "Ann L$1",
		"{{.user | count \"[eE]\"}}":                                                          "2",
		"{{substr 0 3 .user}}|{{substr 4 -1 .user}}|{{substr 2 99 .user}}":                    "Ann|Lee|n Lee",
		"{{trunc 3 .user}}|{{trunc -3 .user}}|{{trunc 99 .user}}":                             "Ann|Lee|Ann Lee",
		"{{.none | default \"-\"}} {{.user | default \"-\"}}":                                 "- Ann Lee",
		"{{printf \"%s %-5s|%05d\" .user .n 7}}":                                              "Ann Lee 17   |00007",
		"{{date \"2006-01-02\" __timestamp__}} {{__timestamp__ | unixEpoch}}":                 "2026-11-20 1795187045",
		"{{__timestamp__ | unixEpochMillis}} {{__timestamp__ | unixEpochNanos}}":              "1795187045123 1795187045123000000",
		"{{toDate \"2006-01-02\" .date | date \"02.01.2006\"}}":                               "20.11.2026",
		"{{toDateInZone \"2006-01-02\" \"UTC\" .date | unixEpoch}}":                           "1795132800",
		"{{.epoch | unixToTime | date \"15:04\"}}":                                            "05:00",
		"{{(fromJson .json).a.b}} {{range1}}":                                                 "!",
		"{{(fromJson .json).a.b}}":                                                            "[1 2]",
		"{{index (fromJson .json).a.b 1}}":                                                    "2",
		"{{int .n}} {{float64 .f}} {{int .f}} {{int .user}}":                                  "17 2.5 2 0",
		"{{add .n 1}} {{sub .n 1}} {{mul .n 2}} {{div .n 2}} {{mod .n 5}}":                    "18 16 34 8 2",
		"{{addf .f 1}} {{subf .f 1}} {{mulf .f 2}} {{divf .f 2}}":                             "3.5 1.5 5 1.25",
		"{{max .n 3 20}} {{min .n 3}} {{maxf .f 3}} {{minf .f 3}}":                            "20 3 3 2.5",
		"{{ceil .f}} {{floor .f}} {{round .f 0}} {{round 2.456 2}}":                           "3 2 3 2.46",
		"{{bytes .size}} {{duration .took}} {{duration_seconds .took}}":                       "5000 90 90",
		"{{urlencode .path}} {{urldecode \"a%20b\"}}":                                         "%2Fx%2Fy%3Fz%3D1%26q%3D%2520 a b",
		"{{b64dec .b64}} {{b64enc \"hi\"}}":                                                   "hi aGk=",
		"{{contains \"nn\" .user}} {{hasPrefix \"A\" .user}} {{hasSuffix \"x\" .user}}":       "true true false",
		"{{if eq .n \"17\"}}yes{{else}}no{{end}} {{if and .n (not .none)}}a{{end}}":           "yes a",
		"{{with .user}}<{{.}}>{{end}}{{with .none}}x{{else}}none{{end}}":                      "<Ann Lee>none",
		"{{with $x := .user}}{{$x}}{{end}} {{$.user}}":                                        "Ann Lee Ann Lee",
		"{{indent 2 .text}}|{{nindent 1 .text}}":                                              "  ab\n  cd|\n ab\n cd",
		"{{alignLeft 4 .n}}:{{alignRight 4 .n}}|{{alignLeft 2 .user}}|{{alignRight 2 .user}}": "17  :  17|An|ee",
		"{{repeat 3 \"x\"}} {{len .user}} {{.user | len}}":                                    "xxx 7 7",
		"{{index . \"a_b\"}} {{html \"<\"}} {{js \"'\"}}":                                     "dash &lt; \\'",
		"{{/* nothing */}}{{._ }}":                                                            "ü",
	} {
		if want == "!" {
			if _, err := (stage.View{}).Compile(parse(t, "{} | line_format `"+template+"`")); err == nil || !strings.Contains(err.Error(), "ToLower ToUpper") {
				t.Errorf("%s: %v", template, err)
			}
			continue
		}
		if got := parsed(t, stage.View{}, "{} | line_format `"+template+"`", line); got != want+" | " {
			t.Errorf("%s:\n got %s\nwant %s | ", template, got, want)
		}
	}
}

func TestLabelFormat(t *testing.T) {
	line := stored(t, "web", `{"level":"error","msg":"a=1 b=2","status":502}`)
	for query, want := range map[string]string{
		`{} | label_format code=status`:                                                      `a=1 b=2 | service_name=web | detected_level=error | code=502`,
		`{} | label_format code=none`:                                                        `a=1 b=2 | service_name=web | detected_level=error status=502 | `,
		`{} | label_format code="{{.status}}!"`:                                              `a=1 b=2 | service_name=web | detected_level=error status=502 | code=502!`,
		`{} | label_format status="x"`:                                                       `a=1 b=2 | service_name=web | detected_level=error | status=x`,
		`{} | label_format svc=service_name`:                                                 `a=1 b=2 |  | detected_level=error status=502 | svc=web`,
		`{} | label_format service_name="x"`:                                                 `a=1 b=2 |  | detected_level=error status=502 | service_name=x`,
		`{} | label_format lvl=level`:                                                        `a=1 b=2 | service_name=web | status=502 | lvl=error`,
		`{} | logfmt | label_format c=a, d="{{.b}}{{.status}}"`:                              `a=1 b=2 | service_name=web | detected_level=error status=502 | b=2 c=1 d=2502`,
		`{} | label_format a="{{div 1 0}}"`:                                                  `a=1 b=2 | service_name=web | detected_level=error status=502 | __error__=TemplateFormatErr __error_details__=error calling div: division by 0`,
		`{} | logfmt | label_format a=a`:                                                     `a=1 b=2 | service_name=web | detected_level=error status=502 | a=1 b=2`,
		`{} | line_format "{{.status}}" |= "502" | logfmt`:                                   `502 | service_name=web | detected_level=error status=502 | `,
		`{} | line_format "x={{.status}}" | logfmt | x>501`:                                  `x=502 | service_name=web | detected_level=error status=502 | x=502`,
		`{} | line_format "{{div 1 0}}" |= "a=1"`:                                            `a=1 b=2 | service_name=web | detected_level=error status=502 | __error__=TemplateFormatErr __error_details__=error calling div: division by 0`,
		`{} | line_format "{{div 1 0}}" | __error__=""`:                                      `-`,
		`{} | line_format "{{div 1 0}}" | __error__!="" | drop __error__, __error_details__`: `a=1 b=2 | service_name=web | detected_level=error status=502 | `,
		`{} | line_format "{{div 1 0}}" | keep status`:                                       `a=1 b=2 |  | status=502 | `,
		`{} | line_format "{{div 1 0}}" | keep status, __error__`:                            `a=1 b=2 |  | status=502 | __error__=TemplateFormatErr`,
	} {
		if got := show(t, stage.View{}, query, line); got != want {
			t.Errorf("%s:\n got %s\nwant %s", query, got, want)
		}
	}
}

// TestHostileTemplates ensures that no template runs for long or makes much text.
func TestHostileTemplates(t *testing.T) {
	for _, template := range []string{
		"{{range 1000000000}}x{{end}}", "{{range $i := .x}}x{{end}}", "{{define \"a\"}}x{{end}}", "{{define \"a\"}}{{template \"a\"}}{{end}}{{template \"a\"}}",
		"{{template \"line\"}}", "{{block \"a\" .}}x{{end}}", "{{if .a}}{{range 5}}{{end}}{{end}}", "{{with .a}}{{template \"line\" .}}{{end}}", "{{break}}",
	} {
		if _, err := (stage.View{}).Compile(parse(t, "{} | line_format `"+template+"`")); err == nil || !strings.Contains(err.Error(), "template") {
			t.Errorf("%s: %v", template, err)
		}
		if _, err := (stage.View{}).Compile(parse(t, "{} | label_format x=`"+template+"`")); err == nil {
			t.Errorf("label: %s: no error", template)
		}
	}
	long := stored(t, "web", `{"msg":"x","long":"`+strings.Repeat("ab \\u00e9", 100_000)+`"}`)
	for _, template := range []string{
		"{{repeat 1000000000 \"x\"}}", "{{repeat 2000000 \"\" | repeat 2000000}}x{{repeat 1048577 \"x\"}}", "{{printf \"%1000000000d\" 1}}", "{{printf \"%*d\" 1000000000 1}}",
		"{{alignLeft 1000000000 .long}}", "{{alignRight 2000000 \"x\"}}", "{{indent 1000000000 \"x\"}}", "{{nindent 50 .long | indent 5000000}}",
		"{{regexReplaceAll \"\" .long .long}}", "{{regexReplaceAll \".\" .long \"$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0\"}}", "{{regexReplaceAllLiteral \"\" .long .long}}",
		"{{Replace .long \"a\" .long -1}}", "{{replace \"\" .long .long}}", "{{.long}}{{.long}}{{.long}}", "{{.long}}{{.long | upper}}{{.long}}",
		"{{$a := printf \"%s%s\" .long .long}}{{$a = printf \"%s%s\" $a $a}}{{$a = printf \"%s%s\" $a $a}}{{$a = printf \"%s%s\" $a $a}}{{len $a}}",
		"{{$a := print .long .long}}{{$a = print $a $a}}{{$a = print $a $a}}", "{{printf \"%[1]q%[1]q%[1]q%[1]q%[1]q%[1]q%[1]q%[1]q\" .long}}",
		"{{html .long .long .long}}", "{{js .long .long .long}}", "{{urlquery .long .long}}", "{{.long | urlencode | urlencode}}", "{{.long | b64enc | b64enc | b64enc}}",
		"{{regexReplaceAll .long .long .long}}", "{{date .long __timestamp__ | date}}", "{{slice .long 5 1}}", "{{index .long 99999999}}", "{{.long.x}}", "{{call .long}}",
		"{{fromJson .long}}", "{{unixToTime .long}}", "{{b64dec .long}}", "{{toDateInZone \"2006\" \"../../etc/passwd\" .long}}", "{{mod 5 0}}", "{{regexReplaceAll \"(\" .long \"\"}}",
	} {
		start := time.Now()
		got := parsed(t, stage.View{}, "{} | line_format `"+template+"`", long)
		if !strings.HasPrefix(got, "x | __error__=TemplateFormatErr __error_details__=") {
			t.Errorf("%s: %.200s", template, got)
		}
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%s took %v", template, took)
		}
		if len(got) > 2000 {
			t.Errorf("%s: an error of %d bytes", template, len(got))
		}
	}
}
