package otlp_test

import (
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"blobtail/source/httpsource"
	"blobtail/source/otlp"
	"blobtail/source/sourcetest"
)

// derived sends logs in both encodings to a source that derives services, and wants the same lines.
func derived(t *testing.T, o httpsource.Options, logs plog.Logs) string {
	t.Helper()
	got := ""
	for _, contentType := range []string{protobuf, jsonType} {
		l := &sourcetest.Log{}
		o.Accept, o.Now = l, sourcetest.Now
		from := []string{"app.kubernetes.io/name", "k8s.deployment.name", "k8s.pod.name"}
		o.Protocols = []httpsource.Protocol{otlp.New(otlp.Options{ServiceFrom: from})}
		body := inProtobuf(t, logs)
		if contentType == jsonType {
			body = inJSON(t, logs)
		}
		if w := sendTo(httpsource.New(o), contentType, body); w.Code != http.StatusOK {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		lines := strings.Join(l.Lines(), "\n")
		if got != "" && lines != got {
			t.Errorf("as JSON\n%s\nas protobuf\n%s", lines, got)
		}
		got = lines
	}
	return got
}

// A resource without service.name has the service of the first attribute of the setting.
func TestService(t *testing.T) {
	deny := func(service string) string {
		if service == "denied" {
			return "not this one"
		}
		return ""
	}
	for _, row := range []struct {
		attributes []string // key, value
		want       string   // from service to the end
	}{
		{[]string{"k8s.pod.name", "web-7d4-x", "k8s.deployment.name", "web"},
			`web","msg":"x","k8s.pod.name":"web-7d4-x","k8s.deployment.name":"web"}`},
		{[]string{"k8s.pod.name", "p"}, `p","msg":"x","k8s.pod.name":"p"}`},
		{[]string{"k8s.pod.name", "p", "app.kubernetes.io/name", "Shop A"},
			`shop-a","msg":"x","k8s.pod.name":"p","app.kubernetes.io/name":"Shop A","service.name":"Shop A"}`},
		{[]string{"k8s.deployment.name", "web", "service.name", "unknown_service:node"},
			`unknown_service-node","msg":"x","k8s.deployment.name":"web","service.name":"unknown_service:node"}`},
		{[]string{"k8s.deployment.name", "web", "service.name", ""}, `web","msg":"x","k8s.deployment.name":"web"}`},
		{[]string{"k8s.deployment.name", "", "k8s.pod.name", "p"}, `p","msg":"x","k8s.deployment.name":"","k8s.pod.name":"p"}`},
		{[]string{"k8s.deployment.name", "denied", "k8s.pod.name", "p"},
			`unknown","msg":"x","k8s.deployment.name":"denied","k8s.pod.name":"p"}`},
		{[]string{"k8s.namespace.name", "n"}, `unknown","msg":"x","k8s.namespace.name":"n"}`},
	} {
		logs := one(func(a pcommon.Map, _ pcommon.InstrumentationScope, r plog.LogRecord) {
			for i := 0; i < len(row.attributes); i += 2 {
				a.PutStr(row.attributes[i], row.attributes[i+1])
			}
			r.Body().SetStr("x")
		})
		if got := derived(t, httpsource.Options{Allow: deny}, logs); !strings.HasSuffix(got, `"level":"","service":"`+row.want) {
			t.Errorf("%q:\n%s\nwant\n%s", row.attributes, got, row.want)
		}
	}
}
