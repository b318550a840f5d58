package shop

import (
	"time"

	"blobtail/record"
)

// The versions of payments.
const oldPayments, newPayments = "2.13.4", "2.14.0"

// The beginnings of the two messages of the incident.
const (
	newMessage     = "card token expired before capture of order"
	tellingMessage = "retrying capture after clock skew of"
)

// Incident has the facts of the incident in the records that Next has returned so far.
type Incident struct {
	Service    string    `json:"service"`
	Message    string    `json:"message"` // the beginning of the new message
	Before     string    `json:"before"`  // the beginning of the warning just before it in the same request
	Deploy     time.Time `json:"deploy"`
	OldVersion string    `json:"old_version"`
	NewVersion string    `json:"new_version"`

	Errors   int     `json:"errors"`   // records with the new message
	Warnings int     `json:"warnings"` // records with the warning
	First    *Failed `json:"first,omitempty"`
	Last     *Failed `json:"last,omitempty"`
	// Requests are the first requests that failed so.
	Requests []string `json:"requests"`
}

// Failed is a request that failed by the incident.
type Failed struct {
	RequestID string `json:"request_id"`
	TraceID   string `json:"trace_id"`
	Order     int    `json:"order"`
	// Records are those of the request in all services, in order of time, also the ones to come.
	Records []Told `json:"records"`
	// Error and Warning are the places of the two in Records, one behind the other.
	Error   int `json:"error"`
	Warning int `json:"warning"`
}

// Told is a record of a request.
type Told struct {
	Time    string `json:"ts"`
	Service string `json:"service"`
	Level   string `json:"level"`
	Msg     string `json:"msg"`

	part part
}

// mostRequests bounds the list of failed requests.
const mostRequests = 20

// note counts a record.
func (i *Incident) note(r *Record) {
	switch r.part {
	case telling:
		i.Warnings++
	case failure:
		i.Errors++
		f := r.request.failed()
		if i.First == nil {
			i.First = f
		}
		if len(i.Requests) < mostRequests {
			i.Requests = append(i.Requests, f.RequestID)
		}
		i.Last = f
	}
}

// failed tells of a request.
func (r *request) failed() *Failed {
	f := &Failed{RequestID: r.id, TraceID: r.trace, Order: r.order, Records: r.told}
	for n, t := range r.told {
		switch t.part {
		case telling:
			f.Warning = n
		case failure:
			f.Error = n
		}
	}
	return f
}

// Incident returns the facts so far.
func (g *Generator) Incident() Incident { return g.incident }

// rollout is the time between the restarts of two hosts of a service.
const rollout = 20 * time.Second

// deploys makes the records of the restarts: three that change nothing, and that of the incident.
func (g *Generator) deploys() {
	for _, d := range g.changes() {
		at := g.starts(d)
		for host := 1; host <= hosts; host++ {
			r := g.system(at.Add(time.Duration(host-1) * rollout))
			r.host = host
			r.log(0, d.service, record.Info, "stopping on SIGTERM, requests in flight: "+number(2+g.rand.IntN(7)), "version", d.old)
			r.log(3*time.Second, d.service, record.Info, "started version "+d.new+", revision "+r.hex(7), "version", d.new, "previous", d.old)
		}
	}
}

// change is a deploy, or a restart if the versions are equal.
type change struct {
	service, old, new string
	part              float64 // of the time from the first record to the incident
}

// changes are in order of time for each service.
func (g *Generator) changes() []change {
	return []change{
		{payments, oldPayments, oldPayments, 0.1},
		{web, "5.21.0", "5.21.1", 0.4},
		{orders, "3.7.1", "3.7.2", 0.7},
		{payments, oldPayments, newPayments, 1},
	}
}

// release is a version with the time of its start on the first host, in unix ns.
type release struct {
	since   int64
	version string
}

// history has the versions of each service, in order of time.
func (g *Generator) history() map[string][]release {
	all := map[string][]release{
		gateway: {{0, "1.9.2"}}, web: {{0, "5.21.0"}}, orders: {{0, "3.7.1"}}, payments: {{0, oldPayments}}, stock: {{0, "4.2.8"}},
	}
	for _, d := range g.changes() {
		all[d.service] = append(all[d.service], release{g.starts(d).UnixNano(), d.new})
	}
	return all
}

// starts is the time at which a deploy reaches the first host.
func (g *Generator) starts(d change) time.Time {
	return g.o.From.Add(time.Duration(float64(g.o.Incident.Sub(g.o.From)) * d.part))
}

// version is that of a service on a host at a time.
func (g *Generator) version(service string, host int, at int64) (version string) {
	for _, r := range g.releases[service] {
		if at >= r.since+int64(time.Duration(host-1)*rollout) || version == "" {
			version = r.version
		}
	}
	return version
}
