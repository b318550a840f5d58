package natssource

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"blobtail/storage/fanout"
)

// partitioned is the first token of the subjects that a stream's transform makes: behind it
// come the partition, the service and the rest of the publisher's subject. No subject below
// logs. is one of these, so a message is read alike with and without partitions, and a consumer
// of the ones overlaps with no consumer of the others.
const partitioned = "logs-partition"

// Share is the part of a fleet that takes its partitions by its number in it. Each partition
// goes to two ingesters, if there are two, so that one may be away.
type Share struct {
	// Ordinal is the number of this ingester, from 0. One beyond Ingesters helps a lower one.
	Ordinal int
	// Ingesters is the size of the fleet; 0: [Options.Partitions] has the partitions.
	Ingesters int
}

// of returns the partitions of a share, out of n.
func (s Share) of(n int) (taken []int) {
	own := s.Ordinal % s.Ingesters
	for p := range n {
		if p%s.Ingesters == own || (p+1)%s.Ingesters == own {
			taken = append(taken, p)
		}
	}
	return taken
}

// plain is the subject that a message was published to: that of the message, without its
// partition.
func plain(subject string) string {
	for {
		first, rest, _ := strings.Cut(subject, ".")
		number, published, more := strings.Cut(rest, ".")
		if _, err := strconv.ParseUint(number, 10, 31); first != partitioned || err != nil || !more {
			return subject
		}
		if subject = published; !strings.HasPrefix(published, partitioned+".") {
			return "logs." + published
		}
	}
}

// A queue is a part of the stream with a consumer of its own.
type queue struct {
	consumer string
	filter   string // of a new consumer
	number   int    // of the partition; -1: all messages that are in none
	apart    bool   // it must not have the messages in partitions
}

func numbersOf(queues []queue) (numbers []int) {
	for _, q := range queues {
		if q.number >= 0 {
			numbers = append(numbers, q.number)
		}
	}
	return numbers
}

// queues returns the parts of a stream that this ingester takes from. The consumer of all
// ingesters is always one: it has the messages that came before the partitions, and those that
// the transform does not match.
func (s *Source) queues(info *jetstream.StreamInfo) ([]queue, error) {
	shared := queue{consumer: s.o.Consumer, filter: filter(info.Config.Subjects), number: -1}
	numbers := s.o.Partitions
	n, err := partitionsOf(info)
	if err != nil {
		return nil, err
	}
	if n > 0 {
		shared.filter = subjects
	}
	had := s.queuesNow()
	if s.o.Share.Ingesters > 0 {
		if n == 0 && had != nil { // the transform was taken away: what waits in partitions is still ours
			return had, nil
		}
		if n == 0 {
			return nil, refuse("nats.partitions is auto, and stream %[1]s has no partitions to count; give it some: %[2]s (or give this ingester numbers)",
				s.o.Stream, transform(s.o.Stream, 40))
		}
		numbers = s.o.Share.of(n)
	}
	apart := n > 0 || len(numbers) > 0 || slices.ContainsFunc(info.Config.Subjects, func(subject string) bool {
		return strings.HasPrefix(subject, partitioned+".")
	})
	if apart && info.Config.Retention == jetstream.InterestPolicy {
		return nil, refuse("stream %[1]s has the retention interest, so it drops the messages of a partition that no ingester has taken yet; "+
			"partitions need a stream with the retention work, or limits", s.o.Stream)
	}
	if len(numbers) == 0 {
		return []queue{shared}, nil
	}
	all := []queue{{consumer: shared.consumer, filter: subjects, number: -1, apart: true}}
	for _, p := range numbers {
		if n > 0 && p >= n {
			return nil, refuse("nats.partitions has %[1]d, and stream %[2]s has the partitions 0 to %[3]d; take the number out, or make more: %[4]s "+
				"(if messages of more partitions still wait, take the transform away until they are stored: nats stream edit %[2]s --no-transform --force, while all its replicas are current)",
				p, s.o.Stream, n-1, transform(s.o.Stream, p+1))
		}
		all = append(all, queue{consumer: fmt.Sprintf("%s-%d", s.o.Consumer, p), filter: fmt.Sprintf("%s.%d.>", partitioned, p), number: p})
	}
	return all, nil
}

// transform is the command that makes n partitions, and when to give it: servers that fail
// meanwhile may lose messages.
func transform(stream string, n int) string {
	return fmt.Sprintf("nats stream edit %[1]s --transform-source 'logs.*' --transform-destination '%[2]s.{{partition(%[3]d,1)}}.{{wildcard(1)}}' --force, "+
		"while all replicas in nats stream info %[1]s are current", stream, partitioned, n)
}

// partitionsOf returns the number of partitions that a stream's own transform makes, and 0
// without one: an account may have mappings, which a client does not see. A transform that puts
// the partition in the place of the service is refused: all services would have numbers for names.
func partitionsOf(info *jetstream.StreamInfo) (n int, err error) {
	t := info.Config.SubjectTransform
	if t == nil {
		return 0, nil
	}
	tokens := strings.SplitN(t.Destination, ".", 3)
	ours := tokens[0] == partitioned
	var number string
	if len(tokens) > 1 {
		if m := regexp.MustCompile(`^{{\s*[pP]artition\(\s*([0-9]{1,6})\b.*}}$`).FindStringSubmatch(tokens[1]); m != nil {
			number = m[1]
		}
	}
	n, _ = strconv.Atoi(number)
	switch {
	case !ours && number == "":
		return 0, nil // of another kind
	case ours && len(tokens) == 3 && n > 0 && n <= 10_000:
		return n, nil
	}
	return 0, refuse("stream %[1]s has the transform of %[2]s to %[3]s, by which the number of a partition would be taken for the service; "+
		"the number belongs behind %[4]s., and the service behind that: %[5]s",
		info.Config.Name, t.Source, t.Destination, partitioned, transform(info.Config.Name, max(n, 40)))
}

// narrow has the shared consumer leave the messages in partitions to others. One that takes
// subjects of other kinds too is left as it is, with an error.
func (s *Source) narrow(stream *jetstream.StreamInfo, c jetstream.ConsumerConfig) (jetstream.ConsumerConfig, error) {
	of := stream.Config.Subjects
	if filters := filtersOf(c); len(filters) > 0 && !slices.Equal(filters, of) {
		return c, nil
	}
	if len(of) == 0 || slices.ContainsFunc(of, func(subject string) bool {
		return !strings.HasPrefix(subject, "logs.") && !strings.HasPrefix(subject, partitioned+".")
	}) {
		return c, refuse("consumer %[1]s takes all subjects of stream %[2]s, also those outside of logs.; beside partitions it may take those below logs. alone: "+
			"nats consumer edit %[2]s %[1]s --filter '%[3]s' --force", c.Name, stream.Config.Name, subjects)
	}
	setFilters(&c, subjects, of)
	return c, nil
}

// setFilters sets the filter of a consumer of a stream with these subjects. The server takes a
// consumer with exactly the subjects of its stream for one without a filter, and would keep the
// messages in partitions for it. One more subject, which no message has, prevents that.
func setFilters(c *jetstream.ConsumerConfig, filter string, of []string) {
	c.FilterSubject, c.FilterSubjects = filter, nil
	if slices.Equal(of, []string{filter}) {
		c.FilterSubject, c.FilterSubjects = "", []string{filter, "logs"}
	}
}

// Codes of the server's refusal of a consumer of a work queue: a second one without a filter,
// and one with a filter that overlaps.
const (
	codeUnfiltered  = 10099
	codeOverlapping = 10100
)

// overlapping explains the server's refusal of a consumer beside others.
func (s *Source) overlapping(ctx context.Context, q queue, err error) error {
	var refused *jetstream.APIError
	if !errors.As(err, &refused) || refused.ErrorCode != codeUnfiltered && refused.ErrorCode != codeOverlapping {
		return fmt.Errorf("consumer %s of stream %s: %w", q.consumer, s.o.Stream, err)
	}
	return s.refuseBeside(q, s.inTheWay(ctx, q))
}

// inTheWay returns a consumer that overlaps with that of a queue; nil if none is known. The
// shared consumer is not in the way of a partition: it is narrowed first.
func (s *Source) inTheWay(ctx context.Context, q queue) *jetstream.ConsumerInfo {
	stream, err := s.js.Stream(ctx, s.o.Stream)
	if err != nil {
		return nil
	}
	for c := range stream.ListConsumers(ctx).Info() {
		narrowed := q.number >= 0 && c.Name == s.o.Consumer && len(filtersOf(c.Config)) == 0
		if c.Name != q.consumer && !narrowed && overlaps(q.filter, filtersOf(c.Config)) {
			return c
		}
	}
	return nil
}

// refuseBeside is the refusal of a queue's consumer beside another one.
func (s *Source) refuseBeside(q queue, other *jetstream.ConsumerInfo) error {
	name, takes := "another consumer", ""
	if other != nil {
		name, takes = "consumer "+other.Name, " with "+orAll(strings.Join(filtersOf(other.Config), ", "))
	}
	return refuse("consumer %[1]s of stream %[2]s has to take %[3]s, and %[4]s%[5]s takes some of that too: a work queue gives a message to one consumer alone. "+
		"Change the other one's filter (nats consumer edit %[2]s), or remove it (nats consumer rm %[2]s): its messages stay in the stream",
		q.consumer, s.o.Stream, orAll(q.filter), name, takes)
}

func orAll(filter string) string {
	if filter == "" {
		return "all subjects"
	}
	return filter
}

// filtersOf are the filters of a consumer; none: it takes all.
func filtersOf(c jetstream.ConsumerConfig) []string {
	return slices.DeleteFunc(append(slices.Clone(c.FilterSubjects), c.FilterSubject), func(f string) bool { return f == "" })
}

// overlaps reports whether a filter, "" for all, has a subject in common with filters.
func overlaps(filter string, filters []string) bool {
	return filter == "" || len(filters) == 0 || slices.ContainsFunc(filters, func(f string) bool { return collide(filter, f) })
}

// collide reports whether two filters match a subject in common.
func collide(a, b string) bool {
	for {
		first, restA, moreA := strings.Cut(a, ".")
		second, restB, moreB := strings.Cut(b, ".")
		switch {
		case first == ">" || second == ">":
			return true
		case first != second && first != "*" && second != "*", moreA != moreB:
			return false
		case !moreA:
			return true
		}
		a, b = restA, restB
	}
}

// survey warns of partitions that no ingester takes: their messages would wait for ever.
// before is how much the server had delivered of each at the last survey: one that is busy may
// just not have asked for more.
func (s *Source) survey(ctx context.Context, before map[int]uint64) {
	numbers, messages := s.untakenPartitions(ctx, before)
	s.metrics.untaken.Set(float64(messages))
	if messages > 0 {
		s.o.Log.Error().Str("stream", s.o.Stream).Ints("partitions", numbers).Int("messages", messages).
			Msg("no ingester asks for the messages of these partitions; start one with these numbers in nats.partitions")
	}
}

// untakenPartitions returns the partitions with messages that no ingester asks for, and the
// number of these messages. What the login may not know counts as taken.
func (s *Source) untakenPartitions(ctx context.Context, before map[int]uint64) (numbers []int, messages int) {
	limited, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	stream, err := s.js.Stream(limited, s.o.Stream)
	if err != nil {
		return nil, 0
	}
	info, err := stream.Info(limited, jetstream.WithSubjectFilter(partitioned+".>"))
	if err != nil {
		return nil, 0
	}
	waiting := map[int]int{}
	for subject, n := range info.State.Subjects {
		_, rest, _ := strings.Cut(subject, ".")
		number, _, _ := strings.Cut(rest, ".")
		if p, err := strconv.Atoi(number); err == nil {
			waiting[p] += int(n)
		}
	}
	queues := s.queuesNow()
	if len(queues) == 1 && !s.narrowed(limited) {
		return nil, 0 // the shared consumer has all
	}
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(waiting)), func(p int) bool { return slices.Contains(numbersOf(queues), p) })
	consumers := make([]jetstream.Consumer, len(others))
	errs := fanout.All(len(others), lookAtOnce, func(i int) (err error) {
		limited, cancel := context.WithTimeout(ctx, lookLimit) // one that does not answer hides no other
		defer cancel()
		consumers[i], err = s.js.Consumer(limited, s.o.Stream, fmt.Sprintf("%s-%d", s.o.Consumer, others[i]))
		return err
	})
	for i, p := range others {
		n, err := waiting[p], errs[i]
		switch {
		case errors.Is(err, jetstream.ErrConsumerNotFound):
		case err != nil:
			continue
		default:
			info := consumers[i].CachedInfo()
			was, known := before[p]
			before[p] = info.Delivered.Consumer
			if info.NumWaiting > 0 || !known || was != info.Delivered.Consumer {
				continue
			}
			n = int(info.NumPending) + info.NumAckPending // one that ended has left both
		}
		if n > 0 {
			numbers, messages = append(numbers, p), messages+n
		}
	}
	return numbers, messages
}

// narrowed reports whether the shared consumer leaves the messages in partitions to others.
func (s *Source) narrowed(ctx context.Context) bool {
	c, err := s.js.Consumer(ctx, s.o.Stream, s.o.Consumer)
	return err == nil && !overlaps(partitioned+".>", filtersOf(c.CachedInfo().Config))
}
