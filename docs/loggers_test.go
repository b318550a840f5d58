package docs

import (
	"testing"

	"blobtail/source/body/loggers"
)

// The known loggers are the rows in source/body/loggers/testdata: on the page, and as `ingest loggers`
// prints them.
func TestPrintedLoggers(t *testing.T) {
	rows, err := loggers.Read("../source/body/loggers/testdata")
	if err != nil {
		t.Fatal(err)
	}
	printed(t, "cmd/ingest/loggers.tsv", loggers.Lines(rows))
	printed(t, "docs/reference/loggers.md", "# Known loggers\n\n"+note("TestPrintedLoggers")+`
What a record has without any setting, by the logger that writes it. Each row is an example of
bytes that a test sends through every door. Look a logger up by words:
`+"`ingest loggers serilog`"+`. The rules are in [send/loggers.md](../send/loggers.md), and the way
out for another time or level in [send/time-and-level.md](../send/time-and-level.md).

- **time**: `+"`yes`"+` means that all records of the row have a time of their own, `+"`some`"+` that some have.
- **level**: the levels of the row's records.
- **message** and **service**: the member that has them; `+"`the lines`"+`: a record of several lines is one message.
- **from**: `+"`run`"+` means that the logger wrote the bytes, `+"`page`"+` that they are in the form of that page.
`+loggers.Table(rows))
}
