package fanout

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Panic is a panic of a goroutine, for the caller that waits for it. The caller panics with it, so
// that a server answers the request and goes on, as after a panic of its own.
type Panic struct {
	Value any
	Stack []byte // of the goroutine
}

// Error implements error. It has the stack, for a command that ends by the panic.
func (p *Panic) Error() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// Origin returns the value and the stack.
func (p *Panic) Origin() (value any, stack []byte) { return p.Value, p.Stack }

// Again panics with p, unless it is nil.
func (p *Panic) Again() {
	if p != nil {
		panic(p)
	}
}

// Keep calls do, and returns its panic; nil: it had none.
func Keep(do func()) (p *Panic) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case *Panic:
			p = v
		default:
			p = &Panic{v, debug.Stack()}
		}
	}()
	do()
	return nil
}

// kept is do with its panic as its error.
func kept(do func() error) (err error) {
	if p := Keep(func() { err = do() }); p != nil {
		return p
	}
	return err
}

// again panics if an error is a panic.
func again(err error) {
	if p, ok := err.(*Panic); ok {
		p.Again()
	}
}

// A Crew is a [sync.WaitGroup] for calls of several kinds. Wait panics if one of them has.
type Crew struct {
	work   sync.WaitGroup
	failed atomic.Pointer[Panic]
}

// Go calls do in a goroutine.
func (c *Crew) Go(do func()) {
	c.work.Go(func() {
		if p := Keep(do); p != nil {
			c.failed.CompareAndSwap(nil, p)
		}
	})
}

// Wait waits for all calls.
func (c *Crew) Wait() {
	c.work.Wait()
	c.failed.Load().Again()
}
