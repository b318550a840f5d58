package trace

// A language is how a runtime or a logger writes lines that are one record. The columns are forms of
// lines, in the signs of [Joiner.fits]. Lines that go on are those that are not indented. TestForms
// wants an example of each form in the texts of the tests; index has the rows by the bytes that show them.
type language struct {
	as      tongue   // a family: its lines go on
	first   []string // lines that begin a trace
	hinted  []string // others, which the last byte or the line behind shows
	message []string // of these: the message is on the next line
	end     []string // lines behind a message of several lines
	lead    []string // behind it another trace follows, or lines of a record of any level
	on      []string // lines that go on
	call    []string // calls: they go on in a trace of any language
	placed  []string // calls that begin with a place: what is behind it
}

// A tongue is the number of a row of languages.
type tongue uint8

const (
	none tongue = iota // a text without a trace: its lines go on in each of them
	golang
	rust
	php    // and Monolog
	node   // the line of the source in front of an error
	jvm    // its report of a crash
	report // of Erlang
	thrown // the family of an exception with its calls, of many runtimes
	java   // Kotlin, Scala
	dotnet
	javascript
	ruby
	elixir
	dart
	clojure
	lua
	haskell
	julia
	rlang
	tcl
	perl
	python // and Nim
	native // the family of C, C++, Swift, Objective-C and the sanitizers
	zig
	ocaml
	clickHouse
	zap
	sidekiq
	slow    // the slow log of MySQL
	gorm    // a query behind its place
	tongues = iota
)

// languages are the rows. Where two fit, the first one counts.
var languages = [tongues]language{
	none: {
		first: []string{ // indented lines that begin a record: of consola, Flask, koa
			" ERROR  ", " FATAL  ", ` \* Running on `, ` \* Serving Flask app`, ` \* Debug mode: `, ` \* Restarting with `,
			` \* Debugger is active`, ` \* Debugger PIN: `, ` \* Environment: `, ` \* Detected change in `, ` \* Tip: `,
			"  <-- ~ /", "  --> ~ /", "  xxx ~ /",
		},
		message: []string{ // java.util.logging
			"~ &, & &:&:&*\nSEVERE:", "~ &, & &:&:&*\nWARNING:", "~ &, & &:&:&*\nINFO:", "~ &, & &:&:&*\nCONFIG:",
			"~ &, & &:&:&*\nFINE:", "~ &, & &:&:&*\nFINER:", "~ &, & &:&:&*\nFINEST:",
		},
		on: []string{
			"Caused by: ", "Caused by:$", "Caused: ^", "Suppressed: ", "Wrapped by: ", "Location:$", "Stack backtrace:$",
			"stack backtrace:$", "Stack trace:$", "stack traceback:$", "CallStack (from HasCallStack):$", "HasCallStack backtrace:$",
			"Stacktrace:$", "error stack:$", "--- End of stack trace", "--- End of inner ", "--- End of managed ", "---> ",
			"in expression starting at ",
			"Execution halted$", "Calls: *\nExecution halted$", "\"*\n    (",
		},
	},
	golang: {
		first: []string{
			"panic: ", "fatal error: ", "unexpected fault address ", "runtime: goroutine stack exceeds ", "http: panic serving ",
			"goroutine &*]:$", "SIG*\nPC=",
		},
		hinted:  []string{"*panic recovered:$", "^\n\t^.go:&$"}, // Gin, zap
		message: []string{"*panic recovered:$"},
		end:     []string{"% (0x*)$"},
		on: []string{
			"fatal error: ", "unexpected fault address ", "runtime: ", "http: panic serving ", "goroutine &*]:$", "SIG*\nPC=",
			"*panic recovered:$", "^\n\t^.go:&$", "*(*)\n\t*:", "created by ^\n\t*:", "created by ^ in goroutine *\n\t*:",
			"[signal SIG", "[originating from goroutine ", "PC=0x", "runtime stack:$", "...additional frames elided...$",
			"...& frames elided...$", "exit status &$", "~ _0x",
		},
		placed: []string{" +0x", " (0x*)$"},
	},
	rust: {
		first: []string{
			"thread '*' panicked at ", "thread '*' (&) panicked at ", "thread '*' has overflowed its stack",
			"thread '*' (&) has overflowed its stack", "fatal runtime error: ",
		},
		message: []string{"*:$"},
		end:     []string{"note: run with `RUST", "stack backtrace:$", "thread caused non-unwinding panic. aborting.$"},
		on: []string{
			"note: run with `RUST", "note: Some details are omitted", "note: we would appreciate a bug report",
			"thread panicked while processing panic", "thread caused non-unwinding panic. aborting.$", "fatal runtime error: ",
		},
	},
	php: {
		first: []string{"PHP Fatal error: ", "PHP Parse error: ", "Fatal error: Uncaught "},
		end:   []string{"[stacktrace]$"},
		on:    []string{"PHP Stack trace:$", "PHP   ", "Next ", "thrown in * on line ", "[stacktrace]$", "[previous exception] ", `"}`},
		call:  []string{"#& _{main}$", "#& _[internal function]: ", "#& *): "},
	},
	node: {
		end: []string{"!", "[", "Thrown at:"},
		on:  []string{"Node.js v", "(Use `node --trace-"},
	},
	python: {
		first: []string{
			"Traceback (most recent call last)", "+*Traceback (most recent call last)", "╭*Traceback (most recent call last)",
			"Fatal Python error: ", "Exception ignored in", "Exception in thread ", `File "*", line &` + "\n ",
		},
		hinted: []string{"^ \n\"\"\"\nTraceback (most recent call last)"}, // of another process
		lead: []string{
			"Exception ignored in", "Exception in thread ", "During handling of the above exception, ", "The above exception was the ",
			"\"\"\"\nTraceback (most recent call last)",
		},
		on: []string{
			"During handling of the above exception, another exception occurred:$", `File "*", line &$`,
			"The above exception was the direct cause of the following exception:$", "\"\"\"\nTraceback (most recent call last)",
			"Current thread 0x", "Thread 0x", "Python runtime state: ", "Extension modules: ", "(Background on this error at: ",
			"│", "╰", "*.nim(", "~\n _*type=",
		},
		call: []string{
			`File "*", line &$`, `File "*", line &,`, `File "*", line & in `,
			`> File "*", line &,`,
		},
	},
	jvm: {
		first: []string{
			"# A fatal error has been detected by the Java", "#\n# A fatal error has been detected by the Java",
			"# There is insufficient memory for the Java", "#\n# There is insufficient memory for the Java",
		},
		on: []string{"#"},
	},
	report: {
		first:   []string{"=~ REPORT==== "},
		message: []string{"="},
		end:     []string{"=~ REPORT==== "},
		on:      []string{`\*\* `, "Error in process <", "{", "[{"},
	},
	thrown: {
		first:   []string{"Uncaught exception", "Unhandled exception: "},
		message: []string{"Uncaught exception:$", "Unhandled exception:$", "Execution error ("},
		lead:    []string{"Also:   ^"},
		on: []string{
			"Also:   ^", `\*\* ~`, "ClientConnectionId:", "Error Number:", "Node.js v", "(Use `node --trace-", "<asynchronous suspension>$",
			"Last message: ", "Last message (from ", "State: ", "Initial Call: ", "Ancestors: ", "Function: ", "Full report at:$",
		},
	},
	java: {
		as:    thrown,
		first: []string{`Exception in thread "`, "Uncaught Kotlin exception: ", "Also:   "},
		call:  []string{"... & more$", "... & common frames "},
	},
	dotnet: {
		as: thrown,
		first: []string{
			"Unhandled exception. ", "Unhandled Exception: ", "Unhandled exception at ", "Unhandled exception in ", "Process terminated. ",
			"Stack overflow.",
		},
	},
	javascript: {
		as: thrown,
		first: []string{
			"Uncaught !", "Uncaught '", "Uncaught \"", "Uncaught #", "Uncaught (in promise)", "error: Uncaught ",
			"UnhandledPromiseRejection",
		},
		call: []string{"... & lines matching "},
	},
	ruby: {
		as:     thrown,
		hinted: []string{"~ (*):\n*rb:&:in ", "%:in *: *)$"},
		call:   []string{"... & levels", "from %:in '", "from %:in `", "from % in '"},
		placed: []string{":in '", ":in `"},
	},
	elixir:  {as: thrown, first: []string{`\*\* (`}},
	dart:    {as: thrown, first: []string{"Unhandled exception:$"}, call: []string{"#& *%)$", "#& * (*%$"}},
	clojure: {as: thrown, first: []string{"Execution error ("}},
	lua: {
		as:     thrown,
		hinted: []string{"*\nstack traceback:$"},
		call:   []string{"[C]: in "},
		placed: []string{
			": in function ", ": in main chunk", ": in local ", ": in upvalue ", ": in method ", ": in field ",
		},
	},
	haskell: {as: thrown, hinted: []string{"*\nCallStack (from HasCallStack):$"}},
	julia:   {as: thrown, hinted: []string{"*\nStacktrace:$"}, call: []string{"@ *%$"}},
	rlang:   {as: thrown, first: []string{"Error*\nCalls: ", "Error*\nExecution halted$"}},
	tcl:     {call: []string{"while executing$", "invoked from within$"}},
	perl:    {call: []string{"* called at * line &"}},
	native: {
		first: []string{
			"Fatal error: ", "terminate called ", "libc++abi: terminating ", `\*\*\* Terminating app due to `,
			`\*\*\* stack smashing detected \*\*\*`, "Segmentation fault", "==&==ERROR: ", "==*=\n==&==ERROR: ",
		},
		on: []string{
			"Fatal error: ", "terminate called ", "thread & panic: ", "Aborted", "Abort trap", "libc++abi: ", `\*\*\* `, "Thread ",
			"Segmentation fault", "READ of size ", "WRITE of size ", "freed by thread ", "previously allocated by ", "allocated by thread ",
			"0x", "=>0x", "SUMMARY: ", "Shadow byte", "Address 0x", "Direct leak of ", "Indirect leak of ", "HINT: ", "==",
			"Current stack trace:$", "($", "Registers:$", "Images (", "&* 0x", "&* [inlined] ",
		},
		call: []string{"#& _0x"},
	},
	zig:   {as: native, first: []string{"thread & panic: "}, placed: []string{": 0x* in "}},
	ocaml: {call: []string{`Called from *file "*", line `, `Raised *file "*", line `, `Re-raised at *file "*", line `}},
	clickHouse: {
		lead: []string{"*, Stack trace:$", "*, Stack trace (when copying this message, always include the lines below):$"},
		call: []string{"&. *@ 0x", "&. inlined from ", "&. 0x", "&. *) [0x"},
	},
	zap:     {lead: []string{"*\t*\n^\n\t^.go:&$"}},
	sidekiq: {lead: []string{"*rb:&:in *'$"}},
	slow: {
		lead: []string{"# Time: *\n# User@Host: ", "# User@Host: *\n# Query", "# User@Host: *\n# *\n# Query"},
		on:   []string{"use *;$", "SET timestamp=*;$"},
	},
	gorm: {
		lead: []string{"^.go:&"},
		on:   []string{"\x1b[0m\x1b[", "[info] ", "[warn] ", "[error] ", "[&.&ms] [rows:"},
	},
}
