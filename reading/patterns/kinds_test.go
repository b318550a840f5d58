package patterns_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"blobtail/internal/dev/testkit"
)

// leastOfKinds is the least accuracy of each kind. docs/read/patterns.md has it, rounded, or a lower one.
var leastOfKinds = map[string]float64{
	"host": 0.99, "desktop": 0.875, "proxy": 0.99, "cluster": 0.99, "jobs": 0.99, "nodes": 0.93, "health": 0.99, "ras": 0.95,
}

// kinds are messages of kinds of systems that people read much, as templates. A name in braces is a
// value of [values].
var kinds = map[string][]string{
	"host": {
		"authentication failure; logname= uid=0 euid=0 tty=NODEVssh ruser= rhost={host} ",
		"authentication failure; logname= uid=0 euid=0 tty=NODEVssh ruser= rhost={host}  user={few}",
		"check pass; user unknown",
		"session opened for user {few} by (uid={n})",
		"session opened for user {few} by {few}(uid={n})",
		"session closed for user {few}",
		"connection from {ip} ({maybehost}) at {date}",
		"ALERT exited abnormally with [{n}]",
		"getpeername (ftpd): Transport endpoint is not connected",
		"Authentication failed from {ip} ({ip}): Permission denied in replay cache code",
		"couldn't add command channel {ip}#{port}: not found",
		"PCI: Using IRQ router PIIX/ICH [{n}/{n}] at 0000:00:{h2}.0",
		"CPU {n}: L1 I cache: {n}K, L1 D cache: {n}K",
		"{file}.conf: line {n}: unknown option ignored",
		"hda: max request size: {n}KiB",
		"hda: {n} sectors ({n} MB) w/{n}KiB Cache, CHS={n}/{n}/{n}, UDMA({n})",
		"usb {n}-{n}: new full speed USB device using address {n}",
		"Memory: {n}k/{n}k available ({n}k kernel code, {n}k reserved, {n}k data, {n}k init, {n}k highmem)",
		"Dentry cache hash table entries: {n} (order: {n}, {n} bytes)",
		"Inode-cache hash table entries: {n} (order: {n}, {n} bytes)",
		"BIOS-e820: {hex16} - {hex16} (usable)",
		"BIOS-e820: {hex16} - {hex16} (reserved)",
		"klogd {ver}, log source = {path} started.",
		"Out of Memory: Killed process {n} ({prog}).",
		"Kernel command line: ro root=LABEL=/ rhgb quiet",
		"{prog} startup succeeded",
		"{prog} shutdown failed",
		"{prog}: page allocation failure. order:{n}, mode:{hex0x}",
		"Did not receive identification string from {ip}",
		"restart.",
		"audit(:{n}): initialized",
	},
	"desktop": {
		"Wifi: {dec}: link down on en{n}. Reason {n} (disassociated)",
		"Wifi: {dec}: roamed from {mac} to {mac}",
		"Sleep reason: lid closed by user, {n} assertions held",
		"Wake after {n} s on {power}: cause={n}",
		"thermal level {n}, memory level {n}",
		"WARNING: the window {hex0x} asked for a layout while it was laid out. It is counted once.",
		"<{cls}: {hex0x}> took {n} ms to draw frame {n}",
		"-[{cls} {sel}]: unexpected state {n}, ignoring",
		"{cls}: cannot decode the attachment {uuid}.{ext}: Error Domain=StoreErrorDomain Code={n}",
		"tcp_timer: so={hex0x} retries {n} of {n}, flags=<{flags}>",
		"Sandbox: {prog}({n}) deny({n}) file-read-data {path}",
		"Sandbox: {prog}({n}) deny({n}) mach-lookup com.vendor.{name}",
		"[{time}] {prog} {n} pid {n} exited with signal {n}",
		"Bluetooth: device {mac} connected, rssi -{n}",
		"Bluetooth: device {mac} gone after {n} s",
		"hibernate image path: {path}",
		"hibernate done: {n} pages, {n} ms, {n} MB/s",
		"network changed: v4(en0:{ip}) DNS* Proxy",
		"network changed: v4(en0-:{ip}) DNS- Proxy-",
		"{cls} - the list has {n} entries, of which {n} are stale",
		"Unknown key for integer: {hex0x}",
		"Backup: {n} of {n} items copied ({size}), next at {date}",
		"QUICK CHECK {uuid} passed = {yesno}",
		"IOReg: {cls}@{n}::start failed with {hex0x}",
		"com.vendor.{name}: service only ran for {n} seconds. Pushing respawn out by {n} seconds.",
		"[com.vendor.sync.{name}]: BackoffTimer set to {dec} s",
		"RTC: alarm {date} set, now {date}",
		"DOM storage {yesno} for host {host}",
	},
	"proxy": {
		"{host}:{port} open through proxy {host}:{port} HTTPS",
		"{host}:{port} open through proxy {host}:{port} SOCKS5",
		"{host}:{port} close, {n} bytes{kb} sent, {n} bytes{kb} received, lifetime {life}",
		"{host}:{port} HTTPS proxy refused the connection: status code {n}",
		"{host}:{port} error : Could not connect through proxy {host}:{port} - Proxy server cannot establish a connection with the target, status code {n}",
		"{host}:{port} error : A connection request was canceled before the completion.",
		"open through proxy {host}:{port} failed after {n} tries",
	},
	"health": {
		"onStepTotalChanged {n}",
		"onScreenChanged on",
		"onScreenChanged off",
		"sumCaloriesFromCache calories={n}",
		"sumAltitudeFromCache altitude={n}",
		"getDayDetails = {n}##{n}##{n}##{n}##{n}##{n}",
		"putDayDetails={n}##{n}##{n}##{n}##{n}##{n}",
		"save day to map={n}",
		"flush the detail: {n}-{n}-{n}",
		"onEvent action: android.intent.action.SCREEN_ON",
		"onEvent action: android.intent.action.SCREEN_OFF",
		"onEvent action: android.intent.action.TIME_TICK",
		"day begins at {n} ms, offset {n}",
		"REPORT : {n} {n} {n} {n}",
		"processed, diff:{n} {n} {n}",
		"writeDay rows={n} end={n} type={n}",
		"checkInsert value status = {n} time={n}",
		"init sensors, code {n}",
		"init sensors failed",
		"uploadFitness() type={n},{n}",
		"screen status unknown, think screen on",
	},
	"ras": {
		"generating core.{n}",
		"instruction cache parity error corrected",
		"data TLB error interrupt",
		"{n} double-hummer alignment exceptions",
		"{n} floating point alignment exceptions",
		"CE sym {n}, at {hex0x}, mask {hex0x}",
		"total of {n} ddr error(s) detected and corrected on rank {n}, symbol {n}, bit {n}",
		"ciod: Error reading message prefix after LOGIN_MESSAGE on CioStream socket to {ip}:{port}: Link has been severed",
		"ciod: LOGIN chdir({path}) failed: No such file or directory",
		"ciod: LOGIN chdir({path}) failed: Input/output error",
		"ciod: failed to read message prefix on control stream (CioStream socket to {ip}:{port}",
		"ciod: Error loading {path}: invalid or missing program image, Exec format error",
		"rts: kernel terminated for reason {n}",
		"r{n2}={hex0x} r{n2}={hex0x} r{n2}={hex0x} r{n2}={hex0x}",
		"lr:{hex8} cr:{hex8} xer:{hex8} ctr:{hex8}",
		"iar {hex8} dear {hex8}",
		"machine state register: {hex0x}",
		"exception syndrome register: {hex0x}",
		"program interrupt: illegal instruction.....{n}",
		"program interrupt: privileged instruction..{n}",
		"store operation.............{n}",
		"data address: {hex0x}",
		"instruction address: {hex0x}",
		"Node card VPD check: U{n} node in processor card slot J{n} do not match. VPD ecid {hex32}, found {hex32}",
		"NodeCard is not fully functional",
		"MidplaneSwitchController performing bit sparing on R{n}-M{n}-L{n}-U{n} bit {n}",
		"ido packet timeout",
		"idoproxydb hit ASSERT condition: ASSERT expression={n} Source file={file}.cpp Source line={n} Function={name}",
		"L{n} ecc counts: {n} single, {n} double",
		"{n} torus receiver x+ input pipe error(s) (dcr {hex0x}) detected and corrected",
		"{n} torus receiver y- input pipe error(s) (dcr {hex0x}) detected and corrected",
	},
	"nodes": {
		"boot (command {n})",
		"boot (command {n}) Error: machine check on {node}",
		"halt (command {n})",
		"wait (command {n}) done",
		"Link error on broadcast tree Interconnect-{n}T{h2}:{n2}:{n2}:{n2}",
		"Link ok",
		"Temperature ({n}C) exceeds warning threshold",
		"ambient={n}",
		"Fan speeds ( {n} {n} {n} {n} {n} {n} )",
		"PSU status ( {onoff} {onoff} )",
		"ServerFileSystem: An ServerFileSystem domain panic has occurred on storage{n}",
		"{node} is not responding",
		"node {node} has detected an available network connection on network {ip} via interface alt{n}",
		"ClusterFileSystem: There is no server for ServerFileSystem domain storage{n}",
		"risBoot command ERROR, code {n}",
		"Targeting domains:{node} and nodes:{node} child of command {n}",
		"configured out",
		"running",
		"scsi{n}: reset bus {n}, {n} targets",
	},
	"cluster": {
		"(root) CMD (run-parts {path})",
		"({few}) CMD ({path} -q {n})",
		"session opened for user root by (uid={n})",
		"session closed for user {few}",
		"DHCPDISCOVER from {mac} via eth{n}",
		"DHCPDISCOVER from {mac} via eth{n}: network A_net: no free leases",
		"DHCPREQUEST for {ip} ({ip}) from {mac} via eth{n}",
		"DHCPACK on {ip} to {mac} via eth{n}",
		"data_thread() got not answer from any [{name}] datasource",
		"Accepted publickey for {few} from {ip} port {port} ssh2",
		"Connection closed by ::ffff:{ip}",
		"synchronized to {ip}, stratum {n}",
		"kernel time sync enabled {hex4}",
		"removing device node '{path}'",
		"creating device node '{path}'",
		"{qid}: from=<{few}@{host}>, size={n}, class={n}, nrcpts={n}, msgid=<{qid}.{n}@{host}>, proto=ESMTP, relay={few}@{host} [{ip}]",
		"{qid}: to={few}, ctladdr={few} ({n}/{n}), delay={life}, xdelay={life}, mailer=relay, pri={n}, dsn={dsn}, stat=Sent (ok)",
		"[{name}:{n}]: Sweep took {n} us: {n} nodes, {n} ports",
		"mptscsih: ioc{n}: attempting task abort! (sc={hex0xn})",
		"Losing some ticks... checking if CPU frequency changed.",
		"ACPI: LAPIC (acpi_id[{hex0x2}] lapic_id[{hex0x2}] enabled)",
		"ACPI: LAPIC (acpi_id[{hex0x2}] lapic_id[{hex0x2}] disabled)",
		"CPU{n}: Physical Processor ID: {n}",
		"imklog {ver}, log source = {path} started.",
		"Node {n}: {n} pages of {n}k free",
		"{name} startup succeeded",
		"pbs_mom: Bad file descriptor ({n}) in tm_request, job {n}.{host} not running",
		"kernel panic on cpu {n} at {hex16}",
	},
	"jobs": {
		"attempt_{n13}_{n4}_m_{n6}_{n} TaskAttempt Transitioned from {STATE} to {STATE}",
		"task_{n13}_{n4}_m_{n6} Task Transitioned from NEW to SCHEDULED",
		"task_{n13}_{n4}_m_{n6} Task Transitioned from SCHEDULED to RUNNING",
		"Progress of TaskAttempt attempt_{n13}_{n4}_m_{n6}_{n} is : {frac}",
		"JVM with ID : jvm_{n13}_{n4}_m_{n6} asked for a task",
		"JVM with ID: jvm_{n13}_{n4}_m_{n6} given task: attempt_{n13}_{n4}_m_{n6}_{n}",
		"Assigned container container_{n13}_{n4}_{n2}_{n6} to attempt_{n13}_{n4}_m_{n6}_{n}",
		"Received completed container container_{n13}_{n4}_{n2}_{n6}",
		"Retrying connect to server: {host}:{port}. Already tried {n} time(s); retry policy is RetryUpToMaximumCountWithFixedSleep(maxRetries={n}, sleepTime={n} MILLISECONDS)",
		"Address change detected. Old: {host}/{ip}:{port} New: {host}:{port}",
		"ERROR IN CONTACTING RM.",
		"Failed to renew lease for [DFSClient_NONMAPREDUCE_{n}_{n}] for {n} seconds.  Will retry shortly ...",
		"After Scheduling: PendingReds:{n} ScheduledMaps:{n} ScheduledReds:{n} AssignedMaps:{n} AssignedReds:{n} CompletedMaps:{n} HostLocal:{n} RackLocal:{n}",
		"Recalculating schedule, headroom=<memory:{n}, vCores:{nneg}>",
		"Reduce slow start threshold not met. completedMapsForReduceSlowstart {n}",
		"Opening proxy : {host}:{port}",
		"KILLING attempt_{n13}_{n4}_m_{n6}_{n}",
		"Event Writer setup for JobId: job_{n13}_{n4}, File: hdfs://{host}:{port}{path}",
		"Started SelectChannelConnector@{ip}:{port}",
		"Added global filter 'safety' (class=org.example.http.HttpServer2$QuotingInputFilter)",
		"adding path spec: {glob}",
		"Diagnostics report from attempt_{n13}_{n4}_m_{n6}_{n}: Error: java.net.NoRouteToHostException: No Route to Host from  {host}/{ip} to {host}:{port} failed on socket timeout exception",
		"Processing the event EventType: CONTAINER_REMOTE_LAUNCH for container container_{n13}_{n4}_{n2}_{n6} taskAttempt attempt_{n13}_{n4}_m_{n6}_{n}",
		"loaded properties from {name}.properties",
		"Scheduled snapshot period at {n} second(s).",
	},
}

// values makes a value of each name in the templates.
func values(r *rand.Rand) map[string]func() string {
	f := func(format string, n ...int) func() string {
		return func() string {
			args := make([]any, len(n))
			for i := range n {
				args[i] = r.IntN(n[i])
			}
			return fmt.Sprintf(format, args...)
		}
	}
	of := func(words string) func() string {
		all := strings.Fields(words)
		return func() string { return all[min(r.IntN(len(all)), r.IntN(len(all)))] }
	}
	names := of("music calendar mail photos maps notes news stocks weather search finder dock safari keychain")
	host := func() string {
		return of("www api mail cdn ns1 p3-d12 70-32-1-9 static")() + "." + of("acme contoso fabrikam northwind tailspin")() + of(".com .net .org .ne.jp .edu.cn .com.tw")()
	}
	date := func() string {
		return f("Sun Jul  %d 0%d:1%d:2%d 2005", 9, 9, 9, 9)()
	}
	size := func() string { return fmt.Sprintf(" (%d.%02d %s)", r.IntN(900)+1, r.IntN(100), of("KB MB")()) }
	number := func() string { return fmt.Sprint(r.IntN([]int{4, 20, 100, 9000, 1 << 30}[r.IntN(5)])) }
	path := func() string {
		return of("/p/gb1 /home/ann /usr/lib /var/spool/q /dev/bus /etc/cron.d")() + "/" + names() + of(" /run /bin/a.out /0 .rts .conf")()
	}
	return map[string]func() string{
		"n": number, "n2": f("%02d", 32), "n4": f("%04d", 40), "n6": f("%06d", 900), "n13": f("14450%08d", 99999999), "nneg": f("-%d", 80),
		"dec": f("%d.%06d", 900000, 999999), "frac": f("0.%d", 99999), "life": func() string {
			return []string{"<1 sec", f("%02d:%02d", 60, 60)(), f("%02d:%02d:%02d", 9, 60, 60)()}[r.IntN(3)]
		}, "dsn": f("2.0.%d", 4),
		"kb": func() string {
			if r.IntN(2) == 0 {
				return ""
			}
			return size()
		},
		"size": f("%d.%d GB", 90, 9), "ip": f("%d.%d.%d.%d", 255, 255, 255, 255), "port": f("%d", 65000), "host": host, "glob": of("/mapreduce/* /ws/* /static/* /logs/*"), "maybehost": func() string { return []string{"", host()}[r.IntN(2)] }, "date": date,
		"few": of("root ann news cyrus test"), "prog": of("ntpd sshd crond named cups httpd xinetd portmap syslogd klogd"), "name": names, "file": names,
		"h2": f("%02x", 255), "hex4": f("%04x", 65535), "hex8": f("%08x", 1<<31), "hex16": f("%08x%08x", 1<<31, 1<<31), "hex32": f("%08X%08X%08X%08X", 1<<31, 1<<31, 1<<31, 1<<31),
		"hex0x": f("0x%08x", 1<<31), "hex0xn": f("%08x%08x", 1<<31, 1<<31), "hex0x2": f("0x%02x", 255),
		"mac": f("%02x:%02x:%02x:%02x:%02x:%02x", 255, 255, 255, 255, 255, 255), "uuid": f("%08X-%04X-%04X-%04X-%04X%08X", 1<<31, 65535, 65535, 65535, 65535, 1<<31),
		"path": path, "ver": f("%d.%d.%d", 3, 9, 9), "time": f("%02d:%02d:%02d.%03d", 24, 60, 60, 999), "qid": func() string {
			return fmt.Sprintf("j9%c%c%d%c%06d", 'A'+r.IntN(26), 'g'+r.IntN(19), r.IntN(10), 'A'+r.IntN(26), r.IntN(1e6))
		},
		"cls": of("NSView TabController PhotoBrowser StoreKit MailAccount AVPlayer IOHub GPUDevice NetAgent CloudSync"), "sel": of("viewDidLoad update: reload fetchAll close: sync"),
		"power": of("AC BATT"), "yesno": of("YES NO"), "onoff": of("on off"), "ext": of("png jpg mov"), "flags": of("UP ACK SYN|ACK RST FIN|ACK"),
		"STATE": of("NEW UNASSIGNED ASSIGNED RUNNING COMMIT_PENDING SUCCEEDED FAIL_CONTAINER_CLEANUP"), "node": f("node-%d", 255),
	}
}

// labelledOf makes messages of templates, the first ones often, as systems do.
func labelledOf(r *rand.Rand, templates []string, n int) (all []labelled) {
	value := values(r)
	templates = append([]string(nil), templates...)
	r.Shuffle(len(templates), func(i, j int) { templates[i], templates[j] = templates[j], templates[i] })
	for i := range n {
		at := i
		if at >= len(templates) {
			at = int(float64(len(templates)) * r.Float64() * r.Float64() * r.Float64())
		}
		var b strings.Builder
		rest := templates[at]
		for {
			before, after, ok := strings.Cut(rest, "{")
			b.WriteString(before)
			if !ok {
				break
			}
			name, behind, _ := strings.Cut(after, "}")
			b.WriteString(value[name]())
			rest = behind
		}
		all = append(all, labelled{Message: b.String(), Label: templates[at]})
	}
	return all
}

// Messages of many kinds of systems have the templates that they were made of, nearly always. These
// kinds are not those of loghub that the rules were tried on.
func TestKinds(t *testing.T) {
	testkit.FullOnly(t, "each pattern over all messages")
	const rounds = 2
	for kind, templates := range kinds {
		total := 0.0
		for seed := range uint64(rounds) {
			total += grouped(t, kind, labelledOf(rand.New(rand.NewPCG(seed, 7)), templates, 2000))
		}
		t.Logf("%-8s %.3f", kind, total/rounds)
		if least, ok := leastOfKinds[kind]; !ok || total/rounds < least {
			t.Errorf("%s: group accuracy %.3f, less than %.2f", kind, total/rounds, least)
		}
	}
}
