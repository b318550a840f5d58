package natssource

import "time"

// Wait sets how long a start waits for a server, and for information about the stream.
func (o *Options) Wait(d time.Duration) { o.wait = d }

// Survey sets the interval of looks for partitions that no ingester takes.
func (o *Options) Survey(d time.Duration) { o.survey = d }

// Most sets how many messages may be here and not settled before no more are asked for.
func (o *Options) Most(n int) { o.most = n }

// Pending sets how many messages of a consumer may be delivered and not acknowledged.
func (o *Options) Pending(n int) { o.pending = n }
