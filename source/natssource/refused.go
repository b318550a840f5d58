package natssource

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A RefusedError is the reason that a stream or consumer cannot be used, and the fix.
type RefusedError struct{ text string }

// Error is the reason and the command that fixes it.
func (e *RefusedError) Error() string { return e.text }

func refuse(format string, args ...any) *RefusedError {
	return &RefusedError{fmt.Sprintf(format, args...)}
}

func missing(stream string, clustered bool) *RefusedError {
	replicas := 1
	if clustered {
		replicas = 3
	}
	return refuse("there is no stream %[1]s; make it: nats stream add %[1]s --subjects 'logs.>' --storage file --replicas %[2]d "+
		"--retention work --discard new --dupe-window 30m --deny-delete --deny-purge --defaults", stream, replicas)
}

// unfound explains why a stream could not be looked up. Servers that start, and a cluster without
// a leader, answer like one without JetStream: that is no [RefusedError], and a source waits.
func (s *Source) unfound(err error) error {
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return missing(s.o.Stream, s.conn.ConnectedClusterName() != "")
	case errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("this login has no JetStream: its account at the NATS server needs the line jetstream: enabled, or nats.credentials (--nats with USER:PASSWORD@) names another login (%w)", err)
	case (errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrJetStreamNotEnabled)) && s.conn.ConnectedClusterName() != "":
		return fmt.Errorf("nothing answers for JetStream at %s: start the servers of its cluster with it (nats-server -js, or jetstream {} in their configuration), most of them at once (%w)", s.conn.ConnectedUrlRedacted(), err)
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrJetStreamNotEnabled):
		return fmt.Errorf("the server at %s runs without JetStream: start it with -js (nats-server -js), or with jetstream {} in its configuration (%w)", s.conn.ConnectedUrlRedacted(), err)
	}
	return fmt.Errorf("look up stream %s: %w", s.o.Stream, err)
}

// unfit returns the reason that a stream can never be used.
func unfit(info *jetstream.StreamInfo) error {
	c := &info.Config
	if c.Mirror != nil {
		return refuse("stream %s is a mirror, whose messages cannot be acknowledged for good; "+
			"take from the stream that it mirrors, %s", c.Name, c.Mirror.Name)
	}
	if slices.ContainsFunc(c.Subjects, func(s string) bool { return belowLogs(s) != "" }) ||
		len(c.Subjects) == 0 && len(c.Sources) > 0 { // messages have the subjects of the sources
		return nil
	}
	return refuse("stream %[1]s has the subjects %[2]s, and none is below logs.; add them: nats stream edit %[1]s --subjects '%[3]s' --force",
		c.Name, strings.Join(c.Subjects, ", "), strings.Join(append(c.Subjects, subjects), ","))
}

// loses describes how a stream may discard unflushed messages; nil when it does not.
func loses(info *jetstream.StreamInfo) error {
	c := &info.Config
	var why, flags []string
	old := c.Discard == jetstream.DiscardOld
	if old && c.MaxMsgs > 0 {
		why = append(why, fmt.Sprintf("discard old with max_msgs %d", c.MaxMsgs))
	}
	if old && c.MaxBytes > 0 {
		why = append(why, fmt.Sprintf("discard old with max_bytes %d", c.MaxBytes))
	}
	if len(why) > 0 {
		flags = append(flags, "--discard new")
	}
	if c.MaxMsgsPerSubject > 0 && (old || !c.DiscardNewPerSubject) {
		why = append(why, fmt.Sprintf("max_msgs_per_subject %d", c.MaxMsgsPerSubject))
		flags = append(flags, "--max-msgs-per-subject=-1")
	}
	if c.MaxAge > 0 {
		why = append(why, fmt.Sprintf("max_age %v", c.MaxAge))
		flags = append(flags, "--max-age 0s")
	}
	if len(why) == 0 {
		return nil
	}
	return refuse("stream %[1]s discards messages that are not stored yet (%[2]s); mend it: nats stream edit %[1]s %[3]s --force "+
		"(or take it as it is: --allow-lossy-stream)", c.Name, strings.Join(why, ", "), strings.Join(flags, " "))
}

// unfit returns the reason that a consumer of a stream with these subjects cannot be used for
// a queue: the server does not let us change a setting, or a change has no effect on earlier
// messages.
func (q *queue) unfit(stream *jetstream.StreamInfo, c jetstream.ConsumerConfig) error {
	why, left := "", ""
	if q.number < 0 {
		left = untaken(stream.Config.Subjects, filtersOf(c))
	} else if !slices.Equal(filtersOf(c), []string{q.filter}) {
		left = fmt.Sprintf("%s, or has another one beside it", q.filter)
	}
	switch {
	case c.AckPolicy != jetstream.AckExplicitPolicy:
		why = fmt.Sprintf("has the acknowledgement policy %s, not explicit", c.AckPolicy)
	case c.Durable == "":
		why = "is not durable"
	case left != "":
		// A wider filter would still not return to the messages it has skipped.
		why = fmt.Sprintf("has a filter that leaves out %s", left)
	default:
		return nil
	}
	return refuseConsumer(stream.Config.Name, c.Name, why)
}

func refuseConsumer(stream, name, why string) *RefusedError {
	return refuse("consumer %[1]s of stream %[2]s %[3]s; remove it, and it is made as it should be: nats consumer rm %[2]s %[1]s --force",
		name, stream, why)
}

// belowLogs is the part of a stream's subject that is below logs., or "".
func belowLogs(subject string) string {
	first, rest, more := strings.Cut(subject, ".")
	switch {
	case subject == ">":
		return subjects
	case more && (first == "logs" || first == "*"):
		return "logs." + rest
	}
	return ""
}

// untaken is a subject below logs. that no filter covers, or "". If there are no
// filters, all subjects are covered.
func untaken(of, filters []string) string {
	for _, subject := range of {
		subject = belowLogs(subject)
		if subject != "" && len(filters) > 0 && !slices.ContainsFunc(filters, func(f string) bool { return covers(f, subject) }) {
			return subject
		}
	}
	return ""
}

// covers reports whether a filter matches all that a subject matches.
func covers(filter, subject string) bool {
	for {
		f, filterRest, filterMore := strings.Cut(filter, ".")
		s, subjectRest, subjectMore := strings.Cut(subject, ".")
		switch {
		case f == ">":
			return true
		case s == ">", f != "*" && f != s, filterMore != subjectMore:
			return false
		case !filterMore:
			return true
		}
		filter, subject = filterRest, subjectRest
	}
}
