// Package fanout makes many equal calls, some at once, and waits for all of them.
//
//   - The calls are numbered from 0, and begin in that order. Each keeps its result at its number,
//     so results have the order of the calls.
//   - [Each] ends with the first error: the context of the calls that are under way ends, and no
//     other call begins.
//   - [All] makes every call, and has an error for each.
//   - A panic of a call is one of its caller, with the stack of the call. [Crew] and [Keep] do the
//     same for other goroutines.
//
// A pipeline, as of blocks that are decoded for a merge, has an order and bounds of its own. So
// have calls that race for the first answer.
package fanout

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// Each calls do for 0 to n-1, with at most so many calls at once; 0: with all. It returns the first
// error. If ctx ends before all calls have begun, that is an error too.
func Each(ctx context.Context, n, atOnce int, do func(ctx context.Context, i int) error) error {
	if n == 1 { // most calls are one, and a goroutine of its own takes longer than an answer from memory
		ctx, end := context.WithCancel(ctx)
		defer end()
		if err := ctx.Err(); err != nil {
			return err
		}
		return do(ctx, 0)
	}
	work, ctx := errgroup.WithContext(ctx)
	limit(work, atOnce)
	for i := range n {
		work.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return kept(func() error { return do(ctx, i) })
		})
	}
	err := work.Wait()
	again(err)
	return err
}

// All calls do for 0 to n-1, with at most so many calls at once; 0: with all. It returns the
// errors by the numbers of the calls.
func All(n, atOnce int, do func(i int) error) []error {
	errs := make([]error, n)
	if n == 1 {
		errs[0] = do(0)
		return errs
	}
	var work errgroup.Group
	limit(&work, atOnce)
	for i := range n {
		work.Go(func() error {
			errs[i] = kept(func() error { return do(i) })
			return nil
		})
	}
	_ = work.Wait() // no call returns one
	for _, err := range errs {
		again(err)
	}
	return errs
}

func limit(work *errgroup.Group, atOnce int) {
	if atOnce > 0 {
		work.SetLimit(atOnce)
	}
}
