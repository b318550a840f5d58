package config

import "fmt"

// Protocols has the answers to clients that ask about the server they were made for.
type Protocols struct {
	// Elasticsearch is the version that clients of Elasticsearch are told.
	Elasticsearch string `yaml:"elasticsearch-version"`
}

// validate reports mistakes.
func (p Protocols) validate(m *mistakes) {
	var version [3]int
	_, bad := fmt.Sscanf(p.Elasticsearch+" ", "%d.%d.%d ", &version[0], &version[1], &version[2])
	m.check(bad == nil, "protocols.elasticsearch-version", p.Elasticsearch, "want three numbers, for example 8.9.0, which is the default")
}

// OTLP says what the records of OTLP become.
type OTLP struct {
	// ServiceFrom has the attributes of a resource that name its service if it has no service.name, in
	// the order in which they are tried.
	ServiceFrom []string `yaml:"service-from"`
}

// conventions are the attributes of Kubernetes that name a service by the conventions of OpenTelemetry
// (https://opentelemetry.io/docs/specs/semconv/non-normative/k8s-attributes/). But a container comes before
// its pod, which has another name after each start. The Collector has had two forms for a label.
func conventions() []string {
	return []string{
		"app.kubernetes.io/name", "k8s.pod.label.app.kubernetes.io/name", "k8s.pod.labels.app.kubernetes.io/name",
		"k8s.deployment.name", "k8s.replicaset.name", "k8s.statefulset.name", "k8s.daemonset.name", "k8s.cronjob.name",
		"k8s.job.name", "k8s.container.name", "k8s.pod.name",
	}
}

// validate reports mistakes.
func (o OTLP) validate(m *mistakes) {
	for _, name := range o.ServiceFrom {
		m.check(name != "" && name != "service.name", "otlp.service-from", name,
			"want attributes that are tried behind service.name, for example k8s.deployment.name")
	}
}
