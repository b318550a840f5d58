package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Usage is the cost of one run of a command.
type Usage struct {
	WallMS, CPUs, RSSMB float64
	Code                int // of the exit
}

// Launch is the child's half of [Runner.Run]: it runs a command and writes its usage to
// file descriptor 3. The kernel counts the memory of the process that forks as the child's,
// up to the exec, and this process has little.
func Launch(args []string) error {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // the main thread, to which main is locked
	begun := time.Now()
	err := cmd.Run()
	u := Usage{WallMS: time.Since(begun).Seconds() * 1000}
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return err
	}
	s := cmd.ProcessState
	u.Code = s.ExitCode()
	u.CPUs = (s.UserTime() + s.SystemTime()).Seconds()
	u.RSSMB = float64(s.SysUsage().(*syscall.Rusage).Maxrss) / 1024
	return json.NewEncoder(os.NewFile(3, "usage")).Encode(u)
}

// Runner runs commands and measures them. Its runs are one after another.
type Runner struct {
	Self string // path of this program, which calls [Launch] if its first argument is launch
	out  []byte // the last command's stdout; the memory is used again
}

// Run runs a command and returns its stdout, valid until the next run, and its usage. An
// exit code is no error.
func (r *Runner) Run(ctx context.Context, env []string, args ...string) (out []byte, u Usage, errs string, err error) {
	outR, outW, err := os.Pipe()
	if err != nil {
		return nil, u, "", err
	}
	defer outR.Close()
	usageR, usageW, err := os.Pipe()
	if err != nil {
		outW.Close()
		return nil, u, "", err
	}
	defer usageR.Close()
	// A large pipe, so that a command that writes much rarely waits for this process.
	_, _, _ = syscall.Syscall(syscall.SYS_FCNTL, outW.Fd(), setPipeSize, 1<<20)
	cmd := exec.CommandContext(ctx, r.Self, append([]string{"launch"}, args...)...)
	var stderr bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = env, outW, &stderr, []*os.File{usageW}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err = cmd.Start()
	outW.Close()
	usageW.Close()
	if err != nil {
		return nil, u, "", err
	}
	if cap(r.out) > 256<<20 {
		r.out = nil // it was for an output that is rare
	}
	to := bytes.NewBuffer(r.out[:0])
	_, copied := io.Copy(to, outR)
	r.out = to.Bytes()
	told := json.NewDecoder(usageR).Decode(&u)
	if err := errors.Join(copied, cmd.Wait(), told); err != nil {
		return nil, u, stderr.String(), fmt.Errorf("%q: %w: %s", args, err, stderr.String())
	}
	return r.out, u, stderr.String(), nil
}

const setPipeSize = 1031 // F_SETPIPE_SZ of Linux
