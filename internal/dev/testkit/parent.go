package testkit

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
)

// Parent starts processes that the kernel kills when the tests end, however they end. The kernel
// kills a child with the thread that started it, so a thread of its own starts them all.
type Parent struct{ tasks chan func() }

// NewParent returns a Parent. Its thread lives as long as the process.
func NewParent() *Parent {
	p := &Parent{make(chan func())}
	go func() {
		runtime.LockOSThread()
		for task := range p.tasks {
			task()
		}
	}()
	return p
}

// Start starts a command.
func (p *Parent) Start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	done := make(chan error, 1)
	p.tasks <- func() { done <- cmd.Start() }
	return <-done
}

// Environ returns the environment without what would lead the commands of the product elsewhere:
// their variables, and the contexts of the person who runs the tests.
func Environ() []string {
	var env []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "BLOBTAIL_") && !strings.HasPrefix(e, "AZURE_") {
			env = append(env, e)
		}
	}
	return append(env, "XDG_CONFIG_HOME=/nonexistent")
}
