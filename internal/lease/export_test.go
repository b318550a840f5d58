package lease

import "context"

// Idle makes the row say Idle, without the wait.
func (a *Announcer) Idle(ctx context.Context) error {
	return a.write(ctx, func() claim { return a.rest(0) })
}
