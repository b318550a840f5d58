package main

import "context"

// reads measures the reads of the reference corpus.
func (c *comparison) reads(ctx context.Context, p pair) error { return nil }

func (c *comparison) selectsReads() bool { return c.o.rows == "" }
