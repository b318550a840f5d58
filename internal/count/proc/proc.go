// Package proc has the usual metrics of a process and of Go, go_* and process_*, with the
// names, the kinds and the help that programs in Go give them. Servers of metrics and
// dashboards know them.
//
// [Show] adds them to a registry. They are read when a page is made, without stopping the
// program.
package proc

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"time"

	"github.com/prometheus/procfs"

	"blobtail/internal/count"
)

// Show adds the metrics of this process to a registry.
func Show(r *count.Registry) {
	r.Collect(pauses)
	r.Collect(memory)
	r.Collect(kernel)
	r.GaugeFunc("go_goroutines", "Number of goroutines that currently exist.", func() float64 { return float64(runtime.NumGoroutine()) })
	r.GaugeFunc("go_threads", "Number of OS threads created.", func() float64 {
		n, _ := runtime.ThreadCreateProfile(nil)
		return float64(n)
	})
	r.Collect(func(p *count.Page) {
		p.Family("go_info", "gauge", "Information about the Go environment.")
		p.Value(1, "version", runtime.Version())
	})
}

// pauses tells how long the collector of garbage stopped the program.
func pauses(p *count.Page) {
	s := debug.GCStats{PauseQuantiles: make([]time.Duration, 5)}
	debug.ReadGCStats(&s)
	p.Family("go_gc_duration_seconds", "summary", "A summary of the wall-time pause (stop-the-world) duration in garbage collection cycles.")
	last := len(s.PauseQuantiles) - 1
	for i, pause := range s.PauseQuantiles {
		p.Value(pause.Seconds(), "quantile", strconv.FormatFloat(float64(i)/float64(last), 'g', -1, 64))
	}
	p.Part("_sum", s.PauseTotal.Seconds())
	p.Part("_count", float64(s.NumGC))
	p.Family("go_memstats_last_gc_time_seconds", "gauge", "Number of seconds since 1970 of last garbage collection.")
	p.Value(float64(s.LastGC.UnixNano()) / 1e9)
}

// sum is a metric that is the sum of metrics of the runtime.
type sum struct {
	name, kind, help string
	of               []string
}

// sums are the metrics of memory.
func sums() []sum {
	const classes, heap, metadata = "/memory/classes/", "/memory/classes/heap/", "/memory/classes/metadata/"
	return []sum{
		{"go_gc_gogc_percent", "gauge", "Heap size target percentage configured by the user, otherwise 100.", []string{"/gc/gogc:percent"}},
		{"go_gc_gomemlimit_bytes", "gauge", "Go runtime memory limit configured by the user, otherwise math.MaxInt64.", []string{"/gc/gomemlimit:bytes"}},
		{"go_sched_gomaxprocs_threads", "gauge", "The number of operating system threads that can execute user-level Go code simultaneously.", []string{"/sched/gomaxprocs:threads"}},
		{"go_memstats_alloc_bytes", "gauge", "Number of bytes allocated in heap and currently in use.", []string{heap + "objects:bytes"}},
		{"go_memstats_alloc_bytes_total", "counter", "Total number of bytes allocated in heap until now, even if released already.", []string{"/gc/heap/allocs:bytes"}},
		{"go_memstats_buck_hash_sys_bytes", "gauge", "Number of bytes used by the profiling bucket hash table.", []string{classes + "profiling/buckets:bytes"}},
		{"go_memstats_frees_total", "counter", "Total number of heap objects frees.", []string{"/gc/heap/frees:objects", "/gc/heap/tiny/allocs:objects"}},
		{"go_memstats_gc_sys_bytes", "gauge", "Number of bytes used for garbage collection system metadata.", []string{metadata + "other:bytes"}},
		{"go_memstats_heap_alloc_bytes", "gauge", "Number of heap bytes allocated and currently in use, same as go_memstats_alloc_bytes.", []string{heap + "objects:bytes"}},
		{"go_memstats_heap_idle_bytes", "gauge", "Number of heap bytes waiting to be used.", []string{heap + "released:bytes", heap + "free:bytes"}},
		{"go_memstats_heap_inuse_bytes", "gauge", "Number of heap bytes that are in use.", []string{heap + "objects:bytes", heap + "unused:bytes"}},
		{"go_memstats_heap_objects", "gauge", "Number of currently allocated objects.", []string{"/gc/heap/objects:objects"}},
		{"go_memstats_heap_released_bytes", "gauge", "Number of heap bytes released to OS.", []string{heap + "released:bytes"}},
		{"go_memstats_heap_sys_bytes", "gauge", "Number of heap bytes obtained from system.", []string{heap + "objects:bytes", heap + "unused:bytes", heap + "released:bytes", heap + "free:bytes"}},
		{"go_memstats_mallocs_total", "counter", "Total number of heap objects allocated, both live and gc-ed.", []string{"/gc/heap/allocs:objects", "/gc/heap/tiny/allocs:objects"}},
		{"go_memstats_mcache_inuse_bytes", "gauge", "Number of bytes in use by mcache structures.", []string{metadata + "mcache/inuse:bytes"}},
		{"go_memstats_mcache_sys_bytes", "gauge", "Number of bytes used for mcache structures obtained from system.", []string{metadata + "mcache/inuse:bytes", metadata + "mcache/free:bytes"}},
		{"go_memstats_mspan_inuse_bytes", "gauge", "Number of bytes in use by mspan structures.", []string{metadata + "mspan/inuse:bytes"}},
		{"go_memstats_mspan_sys_bytes", "gauge", "Number of bytes used for mspan structures obtained from system.", []string{metadata + "mspan/inuse:bytes", metadata + "mspan/free:bytes"}},
		{"go_memstats_next_gc_bytes", "gauge", "Number of heap bytes when next garbage collection will take place.", []string{"/gc/heap/goal:bytes"}},
		{"go_memstats_other_sys_bytes", "gauge", "Number of bytes used for other system allocations.", []string{classes + "other:bytes"}},
		{"go_memstats_stack_inuse_bytes", "gauge", "Number of bytes obtained from system for stack allocator in non-CGO environments.", []string{heap + "stacks:bytes"}},
		{"go_memstats_stack_sys_bytes", "gauge", "Number of bytes obtained from system for stack allocator.", []string{heap + "stacks:bytes", classes + "os-stacks:bytes"}},
		{"go_memstats_sys_bytes", "gauge", "Number of bytes obtained from system.", []string{classes + "total:bytes"}},
	}
}

// memory writes the runtime's figures of memory. It leaves out those that this version of Go does
// not know.
func memory(p *count.Page) {
	for _, s := range sums() {
		samples, all, known := make([]metrics.Sample, len(s.of)), 0.0, true
		for i, name := range s.of {
			samples[i].Name = name
		}
		metrics.Read(samples)
		for _, one := range samples {
			if one.Value.Kind() != metrics.KindUint64 {
				known = false
				break
			}
			all += float64(one.Value.Uint64())
		}
		if known {
			p.Family(s.name, s.kind, s.help)
			p.Value(all)
		}
	}
}

// kernel writes the kernel's figures of this process. It leaves out those that the kernel does not
// tell.
func kernel(p *count.Page) {
	proc, err := procfs.NewProc(os.Getpid())
	if err != nil {
		return
	}
	one := func(name, kind, help string, v float64) {
		p.Family("process_"+name, kind, help)
		p.Value(v)
	}
	if stat, err := proc.Stat(); err == nil {
		one("cpu_seconds_total", "counter", "Total user and system CPU time spent in seconds.", stat.CPUTime())
		one("virtual_memory_bytes", "gauge", "Virtual memory size in bytes.", float64(stat.VirtualMemory()))
		one("resident_memory_bytes", "gauge", "Resident memory size in bytes.", float64(stat.ResidentMemory()))
		if begun, err := stat.StartTime(); err == nil {
			one("start_time_seconds", "gauge", "Start time of the process since unix epoch in seconds.", begun)
		}
	}
	if n, err := proc.FileDescriptorsLen(); err == nil {
		one("open_fds", "gauge", "Number of open file descriptors.", float64(n))
	}
	if limits, err := proc.Limits(); err == nil {
		one("max_fds", "gauge", "Maximum number of open file descriptors.", float64(limits.OpenFiles))
		one("virtual_memory_max_bytes", "gauge", "Maximum amount of virtual memory available in bytes.", float64(limits.AddressSpace))
	}
	if traffic, err := proc.Netstat(); err == nil {
		if in := traffic.InOctets; in != nil {
			one("network_receive_bytes_total", "counter", "Number of bytes received by the process over the network.", *in)
		}
		if out := traffic.OutOctets; out != nil {
			one("network_transmit_bytes_total", "counter", "Number of bytes sent by the process over the network.", *out)
		}
	}
}
