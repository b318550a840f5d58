package elastic

import (
	"regexp"
	"slices"
	"strings"

	"blobtail/record"
)

// longestIndex is how many bytes of the name of an index count, as in Elasticsearch.
const longestIndex = 255

// suffixOfIndex matches the suffixes that shippers append to the name of an index: a date from the
// year down to the hour, a week, a version of three numbers, a number of six digits.
func suffixOfIndex() *regexp.Regexp {
	return regexp.MustCompile(`(?:[-_.](?:(?:19|20)\d\d(?:[-._]?[wW]?\d\d){0,4}|v?\d+\.\d+\.\d+|\d{6}))+$`)
}

// service returns the folded service for documents of an index that name none themselves:
// the index without its date, version and number; of a data stream, the data set. It is ""
// if there is no index.
func (p *Protocol) service(index string) string {
	if index == "" {
		return ""
	}
	name := string(record.CutText([]byte(index), longestIndex))
	if math, ok := strings.CutPrefix(name, "<"); ok { // <logs-{now/d}-000001>
		name, _, _ = strings.Cut(strings.TrimSuffix(math, ">"), "{")
		name = strings.TrimRight(name, "-")
	}
	name = strings.TrimPrefix(name, ".ds-")
	if short := p.suffix.ReplaceAllString(name, ""); short != "" {
		name = short
	}
	if parts := strings.Split(name, "-"); len(parts) == 3 && isStreamType(parts[0]) && parts[1] != "" {
		name = parts[1]
	}
	return record.FoldService(name)
}

// isStreamType reports whether a data stream TYPE-DATASET-NAMESPACE may begin with a type.
func isStreamType(s string) bool {
	return slices.Contains([]string{"logs", "metrics", "traces", "synthetics", "profiling"}, s)
}
