package proc_test

import (
	"runtime"
	"strings"
	"testing"

	"blobtail/internal/count"
	"blobtail/internal/count/proc"
)

// The usual names are there, with numbers that can be true.
func TestShow(t *testing.T) {
	r := new(count.Registry)
	proc.Show(r)
	runtime.GC()
	page := r.Page()
	read := count.Read(page)
	for _, name := range []string{
		"go_goroutines", "go_threads", "go_gc_duration_seconds_count", "go_memstats_alloc_bytes", "go_memstats_heap_inuse_bytes",
		"go_memstats_sys_bytes", "go_memstats_mallocs_total", "go_memstats_last_gc_time_seconds", "go_sched_gomaxprocs_threads",
	} {
		if read[name] <= 0 {
			t.Errorf("%s is %v", name, read[name])
		}
	}
	if read[`go_info{version="`+runtime.Version()+`"}`] != 1 || read["go_memstats_heap_inuse_bytes"] > read["go_memstats_sys_bytes"] {
		t.Errorf("%s", page)
	}
	if n := strings.Count(string(page), "# TYPE go_memstats_"); n != 22 {
		t.Errorf("%d metrics of memory: does this version of Go call some otherwise?", n)
	}
	if runtime.GOOS != "linux" {
		return
	}
	for _, name := range []string{
		"cpu_seconds_total", "virtual_memory_bytes", "resident_memory_bytes", "start_time_seconds", "open_fds", "max_fds",
		"network_receive_bytes_total", "network_transmit_bytes_total",
	} {
		if v, ok := read["process_"+name]; !ok || v <= 0 && name != "cpu_seconds_total" && !strings.HasPrefix(name, "network") {
			t.Errorf("process_%s is %v", name, v)
		}
	}
}
