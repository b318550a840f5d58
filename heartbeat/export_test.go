package heartbeat

import "context"

// Idle has the row say that nothing is held, without the wait.
func (a *Announcer) Idle(ctx context.Context) error {
	return a.write(ctx, func() State { return a.rest(0) })
}
