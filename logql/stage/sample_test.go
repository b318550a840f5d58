package stage_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"blobtail/logql"
	"blobtail/logql/stage"
	"blobtail/record"
)

// ranged parses a range aggregation.
func ranged(t testing.TB, text string) *logql.RangeAgg {
	t.Helper()
	e, err := logql.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return e.(*logql.RangeAgg)
}

func sampler(t testing.TB, v stage.View, text string, w stage.Wanted) *stage.Sampler {
	t.Helper()
	agg := ranged(t, text)
	if agg.Grouping != nil {
		w.Only = agg.Grouping
	}
	s, err := v.Sampler(&agg.Range, w)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s
}

func sampled(t testing.TB, s *stage.Sampler, line []byte) string {
	t.Helper()
	v, series, ok, err := s.Sample(line)
	if failed, is := errors.AsType[*stage.FailedError](err); is {
		return fmt.Sprintf("%s {%s}", failed.Name, labels(failed.Labels))
	}
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%v {%s}", v, labels(series.Labels))
}

func TestSample(t *testing.T) {
	line := stored(t, "web", `{"level":"error","msg":"user=u1 took=1.5s size=3KiB bad=x","status":502,"ns":"prod","took_ms":12.5,"empty":"","n":"x"}`)
	names := func(all ...string) stage.Wanted { return stage.Wanted{Fields: all} }
	by := func(all ...string) stage.Wanted { return stage.Wanted{Only: &logql.Grouping{Labels: all}} }
	without := func(all ...string) stage.Wanted {
		return stage.Wanted{Only: &logql.Grouping{Without: true, Labels: all}}
	}
	for _, c := range []struct {
		query string
		w     stage.Wanted
		want  string
	}{
		{`count_over_time({}[1m])`, stage.Wanted{}, `1 {service_name=web}`},
		{`count_over_time({}[1m])`, names("status", "none", "empty"), `1 {service_name=web status=502}`},
		{`count_over_time({}[1m])`, names("level", "detected_level", "service"), `1 {detected_level=error level=error service=web service_name=web}`},
		{`count_over_time({}[1m])`, by("status"), `1 {status=502}`},
		{`count_over_time({}[1m])`, by(), `1 {}`},
		{`count_over_time({}[1m])`, by("none"), `1 {}`},
		{`count_over_time({}[1m])`, without("service_name"), `1 {}`},
		{`count_over_time({} | keep status [1m])`, stage.Wanted{}, `1 {status=502}`},
		{`count_over_time({} | keep status, n="y" [1m])`, stage.Wanted{}, `1 {status=502}`},
		{`count_over_time({} | keep status, service_name | keep status [1m])`, stage.Wanted{}, `1 {status=502}`},
		{`count_over_time({} | keep level [1m])`, stage.Wanted{}, `1 {level=error}`},
		{`count_over_time({} | logfmt [1m])`, stage.Wanted{}, `1 {bad=x service_name=web size=3KiB took=1.5s user=u1}`},
		{`count_over_time({} | logfmt | keep user, status [1m])`, stage.Wanted{}, `1 {status=502 user=u1}`},
		{`count_over_time({} | logfmt | drop size, took [1m])`, without("bad"), `1 {service_name=web user=u1}`},
		{`count_over_time({} | drop service_name [1m])`, stage.Wanted{}, `1 {}`},
		{`count_over_time({} | label_format svc=service_name [1m])`, stage.Wanted{}, `1 {svc=web}`},
		{`count_over_time({} | label_format code=status [1m])`, stage.Wanted{}, `1 {code=502 service_name=web}`},
		{`count_over_time({} |= "nothing" [1m])`, stage.Wanted{}, `-`},
		{`bytes_over_time({}[1m])`, stage.Wanted{Bytes: true}, `33 {service_name=web}`},
		{`bytes_over_time({} | line_format "xy" [1m])`, stage.Wanted{Bytes: true}, `2 {service_name=web}`},
		{`sum_over_time({} | unwrap took_ms [1m])`, stage.Wanted{}, `12.5 {service_name=web}`},
		{`sum_over_time({} | unwrap took_ms [1m])`, names("took_ms"), `12.5 {service_name=web}`},
		{`avg_over_time({} | unwrap took_ms [1m]) by (took_ms)`, stage.Wanted{}, `12.5 {took_ms=12.5}`},
		{`sum_over_time({} | logfmt | unwrap duration(took) [1m])`, stage.Wanted{}, `1.5 {bad=x service_name=web size=3KiB user=u1}`},
		{`sum_over_time({} | logfmt | unwrap duration_seconds(took) [1m])`, by("user"), `1.5 {user=u1}`},
		{`sum_over_time({} | logfmt | unwrap bytes(size) [1m])`, by(), `3072 {}`},
		{`sum_over_time({} | unwrap none [1m])`, stage.Wanted{}, `-`},
		{`sum_over_time({} | unwrap empty [1m])`, stage.Wanted{}, `-`},
		{`sum_over_time({} | unwrap n [1m])`, stage.Wanted{}, `SampleExtractionErr {service_name=web}`},
		{`sum_over_time({} | unwrap n | __error__="" [1m])`, stage.Wanted{}, `-`},
		{`sum_over_time({} | unwrap took_ms | __error__="" [1m])`, stage.Wanted{}, `12.5 {service_name=web}`},
		{`sum_over_time({} | unwrap took_ms | status="502" [1m])`, stage.Wanted{}, `12.5 {service_name=web}`},
		{`sum_over_time({} | unwrap took_ms | took_ms>100 [1m])`, stage.Wanted{}, `-`},
		{`count_over_time({} | n > 5 [1m])`, stage.Wanted{}, `LabelFilterErr {service_name=web}`},
		{`count_over_time({} | n > 5 | drop __error__ [1m])`, stage.Wanted{}, `1 {service_name=web}`},
		{`count_over_time({} | n > 5 | __error__="" [1m])`, stage.Wanted{}, `-`},
		{`count_over_time({} | none > 5 [1m])`, stage.Wanted{}, `-`},
		{`count_over_time({} | line_format "{{div 1 0}}" [1m])`, stage.Wanted{}, `TemplateFormatErr {service_name=web}`},
		{`count_over_time({} | json | unpack [1m])`, stage.Wanted{}, `JSONParserErr {service_name=web}`},
		{`count_over_time({} | json | logfmt --strict [1m])`, by("user"), `1 {user=u1}`},
	} {
		if got := sampled(t, sampler(t, stage.View{}, c.query, c.w), line); got != c.want {
			t.Errorf("%s %+v: %s, want %s", c.query, c.w, got, c.want)
		}
	}
	labelled := stage.View{Labels: []string{"ns", "none"}}
	if got := sampled(t, sampler(t, labelled, `count_over_time({}[1m])`, stage.Wanted{}), line); got != `1 {ns=prod service_name=web}` {
		t.Errorf("labels of the stream: %s", got)
	}
}

// TestIndex ensures that an index answers a query only if it has the result of a scan.
func TestIndex(t *testing.T) {
	for query, want := range map[string]bool{
		`count_over_time({}[1m])`:                                                      true,
		"rate({service_name=\"web\", level=\"error\"} |= `` [1m])":                     true,
		`count_over_time({} | json | logfmt | drop __error__, __error_details__ [1m])`: false,
		`count_over_time({} | status="502" [1m])`:                                      false,
		`count_over_time({} | line_format "{{div 1 0}}" [1m])`:                         false,
		`count_over_time({} | label_format a="x" [1m])`:                                false,
		`count_over_time({} | drop service_name [1m])`:                                 false,
		`sum_over_time({} | unwrap n [1m])`:                                            false,
	} {
		if got := sampler(t, stage.View{}, query, stage.Wanted{}).Selection().All; got != want {
			t.Errorf("%s: All is %v", query, got)
		}
	}
	level := stage.Wanted{Only: &logql.Grouping{Labels: []string{"level", "detected_level"}}}
	for query, want := range map[string]bool{
		"count_over_time({} |= `` | drop __error__ [1m])":                                true,
		`count_over_time({} | pattern "<a> <_>" | detected_level != "" [1m])`:            true,
		`count_over_time({} | label_format a="x" | level="error" [1m])`:                  true,
		`count_over_time({} | json [1m])`:                                                false,
		`count_over_time({} | json | logfmt | drop __error__, level [1m])`:               false,
		`count_over_time({} | json a="b" | logfmt --strict x="y" | drop __error__ [1m])`: true,
		`count_over_time({} | logfmt --strict [1m])`:                                     false,
		`count_over_time({} | unpack | drop __error__ [1m])`:                             false,
	} {
		if got := sampler(t, stage.View{}, query, level).Selection().All; got != want {
			t.Errorf("%s by level: All is %v", query, got)
		}
	}
	if sampler(t, stage.View{}, `count_over_time({}[1m])`, stage.Wanted{Bytes: true}).Selection().All {
		t.Error("bytes of lines are in no index")
	}
	if sampler(t, stage.View{Labels: []string{"ns"}}, `count_over_time({}[1m])`, stage.Wanted{}).Selection().All {
		t.Error("labels of the stream that are fields are in no index")
	}
	if sampler(t, stage.View{}, `count_over_time({}[1m])`, stage.Wanted{Fields: []string{"status"}}).Selection().All {
		t.Error("named fields are in no index")
	}
	for _, w := range []stage.Wanted{{}, level, {Fields: []string{"level", "service"}}, {Only: &logql.Grouping{Without: true, Labels: []string{"service_name"}}}, {Only: &logql.Grouping{}}} {
		s := sampler(t, stage.View{}, `count_over_time({}[1m])`, w)
		if !s.Selection().All {
			t.Errorf("%+v: All is not set", w)
		}
		for _, word := range someLevels {
			line := stored(t, "web", `{"msg":"x","level":"`+word+`"}`)
			_, scanned, _, err := s.Sample(line)
			indexed := s.Series("web", record.LineLevel(line))
			if err != nil || scanned.Key != indexed.Key || labels(scanned.Labels) != labels(indexed.Labels) {
				t.Errorf("%+v of %s: %v %v", w, word, scanned, indexed)
			}
		}
	}
}

// TestSeriesKeys ensures that keys tell series apart.
func TestSeriesKeys(t *testing.T) {
	seen := map[string]string{}
	for _, object := range []string{`{"a":"x","b":"y"}`, `{"a":"x\u0000b=1y"}`, `{"a":"x","b":"y "}`, `{"a":"","b":"xy"}`, `{"b":"y","a":"x"}`, `{"a":"x\u0001y"}`} {
		s := sampler(t, stage.View{}, `count_over_time({} | keep a, b [1m])`, stage.Wanted{})
		_, series, _, err := s.Sample(stored(t, "web", object))
		if err != nil {
			t.Fatal(err)
		}
		if before, ok := seen[series.Key]; ok && before != labels(series.Labels) {
			t.Errorf("%s and %s have one key", before, labels(series.Labels))
		}
		seen[series.Key] = labels(series.Labels)
	}
	if len(seen) != 5 {
		t.Errorf("%d keys", len(seen))
	}
}

func TestFailedError(t *testing.T) {
	s := sampler(t, stage.View{}, `count_over_time({} | n > 5 [1m])`, stage.Wanted{})
	_, _, _, err := s.Sample(stored(t, "web", `{"msg":"x","n":"abc"}`))
	want := `pipeline error: 'LabelFilterErr' for series: '{service_name="web"}': "abc" is no number; to leave such lines out, add | __error__=""`
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestFields(t *testing.T) {
	shown := func(v stage.View, object string) string {
		var all []string
		for _, f := range v.Fields(stored(t, "web", object)) {
			all = append(all, strings.Join([]string{f.Name, f.Value, f.Type, f.After, strings.Join(f.Path, "/")}, ","))
		}
		return strings.Join(all, " ")
	}
	for object, want := range map[string]string{
		`{"msg":"hi","level":"error"}`: `detected_level,error,string,,`,
		`{"msg":"hi","i":5,"f":-1.5e3,"b":true,"d":"1m2s","s":"3KB","t":"x","e":"","a":[1],"o":{"x":"false"},"v":"1.2.3","big":"99999999999999999999"}`: `detected_level,unknown,string,, i,5,int,, f,-1.5e3,float,, b,true,boolean,, d,1m2s,duration,, ` +
			`s,3KB,bytes,, t,x,string,, e,,string,, a,[1],string,, o_x,false,boolean,, v,1.2.3,string,, big,99999999999999999999,float,,`,
		`{"msg":"{\"user\":{\"id\":7,\"x y\":\"z\"},\"tags\":[1],\"n\":null,\"service_name\":\"a\"}","user_id":1}`: `detected_level,unknown,string,, user_id,1,int,, user_id,7,int,json,user/id ` +
			`user_x_y,z,string,json,user/x y service_name_extracted,a,string,json,service_name`,
		`{"msg":"a=1 b=\"x=y\" c=2s a=2 word empty="}`: `detected_level,unknown,string,, a,1,int,logfmt, b,x=y,string,logfmt, c,2s,duration,logfmt,`,
		`{"msg":"{broken a=1"}`:                        `detected_level,unknown,string,, a,1,int,logfmt,`,
		`{"msg":"x","level":"audit"}`:                  `detected_level,unknown,string,, level_extracted,audit,string,,`,
	} {
		if got := shown(stage.View{}, object); got != want {
			t.Errorf("%s:\n got %s\nwant %s", object, got, want)
		}
	}
	if got := shown(stage.View{Lines: true}, `{"msg":"a=1","status":5}`); got != `detected_level,unknown,string,, status,5,int,,` {
		t.Errorf("lines: %s", got)
	}
}
