// The types of the page's modules. tsc reads them; browsers do not get them.

/** A filter that the reader has added: a line of the search. */
interface Chip {
	text: string
	/** It is kept, and does not count. */
	off: boolean
}

/** The state of the page. All of it stands in the fragment of the URL (state.js). */
interface View {
	/** Names or globs; none: all. */
	services: string[]
	/** A duration before now, as "1h"; "" if from and to count. */
	since: string
	/** Times (RFC 3339, UTC, ns); "" is open. */
	from: string
	to: string
	/** Times are shown in UTC, else in the zone of the browser. */
	utc: boolean
	/** The text of the search line. */
	q: string
	/** Upper and lower case are equal. */
	fold: boolean
	chips: Chip[]
	/** A query in LogQL, in place of services, q and chips; "": none. */
	logql: string
	/** By what the histogram is divided: level, service, FIELD or FIELD,FIELD. */
	split: string
	/** The oldest record is first. */
	oldest: boolean
	/** Long messages take several lines. */
	wrap: boolean
	/** Fields with a column of their own. */
	columns: string[]
	/** The chosen record, as SERVICE/ID; "": none. */
	sel: string
	/** The context of the chosen record: "same" service, "all", or "=FIELD" for the records with the same value there; "": it is not shown. */
	around: string
	tab: string
	/** New records come by themselves. */
	live: boolean
	/** How often a range that ends now is asked again, as "10s"; "": when told to. */
	every: string
	/** The second window of the patterns: "before", "yesterday" or FROM/TO. */
	against: string
	/** What is wrong with the link that it came from. */
	wrong?: string
}

/** Which records are wanted, as any source of records understands it. */
interface Question {
	services: string[]
	from: string
	to: string
	/** Lines of the search (docs/read/command.md), which all count. The server reads them. */
	q: string[]
	fold: boolean
	/** In place of all but the times; "": none. */
	logql: string
}

interface Times {
	from: string
	to: string
}

/** How a read went. */
interface Outcome {
	complete: boolean
	problems: string[]
	warnings: string[]
	notes: string[]
	gaps: { service: string; records: number; at_most?: boolean; from: string; to: string }[]
	cost: { requests: number; bytes: number }
}

interface End extends Outcome {
	more: boolean
	records: number
}

/** A record: its id, and its line as it is stored. */
interface Row {
	id: string
	line: string
	anchor?: boolean
}

interface Service {
	name: string
	records: number
	unflushed: number
	levels: Record<string, number>
	first: string
	last: string
	system: boolean
}

interface Bucket {
	t: string
	total: number
	counts: Record<string, number>
	/** Of values beyond the most frequent ones. */
	others?: number
}

interface Histogram extends Outcome {
	by: string
	split: string
	buckets: Bucket[]
	/** Of a split by fields: the most frequent values first. */
	values?: { key: string; values: string[]; types: string[]; records: number }[]
}

interface Field {
	name: string
	type: string
	present: number
	distinct: number
	capped: boolean
	exact?: boolean
	values: (Counted & { count: number })[]
}

/** A value of records: a text as it is, or JSON; the types that it has in them. None: records without one. */
interface Counted {
	value: string
	types?: string[]
}

interface Basis {
	records: number
	of?: number
	newest: boolean
}

interface Facets extends Outcome {
	basis: Basis
	fields: Field[]
	/** There are others. */
	more?: boolean
}

interface Pattern {
	id: string
	template: string
	count: number
	share: number
	first: string
	last: string
	levels: Record<string, number>
	services: Record<string, number>
	buckets: { t: string; n: number }[]
	example: { id: string; service: string; msg: string }
	/** A condition that is true for its records. */
	where: string
}

interface Patterns extends Outcome {
	basis: Basis
	by: string
	patterns: Pattern[]
	/** Records of patterns beyond those. */
	others: number
	/** The second window; lacks: records of it are missing. */
	against?: {
		basis: Basis
		from: string
		to: string
		lacks?: boolean
		new: string[]
		gone: Pattern[]
		more: { id: string; count: number; before: number }[]
		less: { id: string; count: number; before: number }[]
	}
}

interface Whoami {
	id: string
	read: string[]
	version: string
	time: string
}

/** How a question fares. The value is kept while the next one loads, and is stale then. */
interface Answer<T> {
	value?: T
	error?: Error
	loading: boolean
	stale: boolean
}

/** A part of the page that asks, as it reports to the bar and the foot. */
interface Part {
	outcome?: Outcome
	error?: Error
	loading: boolean
}

type Reporter = (part: string, state: Part) => () => void

/** All that a part of the page gets. It changes the view by `set`, and nothing else. */
interface Props {
	view: View
	set: (change: Partial<View>, how?: { quiet?: boolean }) => void
	question: Question
	/** What the server says of its lines, once it does. */
	parsed: Parsed | undefined
	/** Of these; at first those of the question before. */
	terms: Term[]
	/** Those that are texts which records have. */
	texts: Texts
	/** In the link. */
	mistake: Error | undefined
	/** The times of the question, which do not move until it is asked again. */
	range: Times
	/** Differs whenever the question, or the time of asking, does. */
	asked: string
	/** Asks everything again, with the times of now. */
	again: () => void
	report: Reporter
	who: Whoami | undefined
	/** The login has ended: the page asks for a token. */
	left: () => void
	shared: Shared
}

/** What parts tell each other and no link has. */
interface Shared {
	/** Those of the list, for keys and the record. */
	rows: Row[]
	/** Those of the context. */
	near: Row[]
	/** How many records the question has; -1: it is not known. */
	total: number
	/** The names of the fields of the newest records. */
	fields: string[]
	/** The colours (classes) of the values that the histogram is divided by. */
	tints: Map<string, string>
	/** How the records lie in time, from the histogram (ms). */
	spans: { at: number; by: number; n: number }[]
	/** Calls a function that a part offers, as for keys. */
	act: (name: string, ...args: any[]) => void
	offer: (name: string, call: (...args: any[]) => void) => void
}

/** What a row of the list shows of a record. */
interface RowParts {
	ts: string
	level: string
	service: string
	msg: string
	/** The other fields, as key=value. */
	rest: string
	/** Not all of the record is shown. */
	long: boolean
	/** Values that were looked up, by name. */
	fields: Map<string, string | undefined>
}

/** A part of a search that is not divided further. */
interface Term {
	kind: "all" | "text" | "expr" | "field" | "where"
	/** Records with it are not wanted. */
	not: boolean
	value: string
	/** Of a field. */
	name?: string
}

/** What is typed before the caret: a field, or a value of one behind its sign. */
interface Word {
	/** So many characters are before it. */
	from: number
	name: string
	sign?: string
	value: string
}

/** What a question says. */
interface Parsed {
	range?: Partial<Times>
	/** Its lines as one, and those terms for which the index is enough. */
	line: string
	index: string
	terms: Term[]
	logql: string
	lacks?: Texts
	word?: Word
	mistake?: { parameter: string; line?: string; column?: number; text: string }
}

/** Of texts. */
type Fn = (text: string) => string
type Texts = string[]

/** A value within the text of a record (tree.js). */
interface Value {
	raw: string
	/** Its path, as filters know it. */
	name: string
	label: string
	/** It is in a list, where no filter finds it. */
	listed: boolean
	depth: number
	/** The place of the next one in the text of its parent, and its number. */
	at: number
	n: number
}

/** What parts of a tree get: the newest props of the page, since they are not drawn again with it. */
interface Now {
	now: { current: Props }
}

/** The members of a value behind one of them. */
interface Step extends Now {
	of: Value
	after?: Value
}

type Button = (name: string, run: () => void, sign?: string, more?: object) => any

/** So many records before and after one, within so many hours. */
interface Reach {
	before: number
	after: number
	hours: number
}

/** A pattern, and how it differs from the second window. */
interface Line extends Pattern {
	mark: string
	was: number
}

/** What the legend of the histogram has: a key of the counts, and the field and value of its filter. */
interface Key {
	key: string
	label: string
	color: string
	n: number
	field?: string
	value?: Counted
}

/** An event of a tail: a record, or one of the others. */
type Told =
	| Row
	| {
			id?: undefined
			cursor?: string
			problem?: string
			warning?: string
			note?: string
			absent?: string
			gap?: Outcome["gaps"][0]
	  }

/** What live knows of one time of following. */
interface Following {
	/** Where the tail goes on. */
	cursor: string
	/** The list has the first records. */
	begun: boolean
	/** The state of the connection; "": it is well. */
	word: string
	/** Why no rows are shown: "scroll", "key"; "": they are. */
	paused: string
	/** Rows since the pause, since the beginning, and since they were said. */
	news: number
	came: number
	unsaid: number
	said: string
	/** Rows were dropped between the list and what comes. */
	cut: boolean
	waiting: Row[]
	/** Ids since the cursor, and those of earlier connections that have not come again. */
	seen: Set<string>
	before: Set<string>
	error?: Error
	told?: Outcome
}

/** What the list holds. Places are those among all records of the question. */
interface Held {
	/** In the order of the list. */
	rows: Row[]
	/** The place of the first. */
	start: number
	/** There are more above, below. */
	up: boolean
	down: boolean
	/** Some were dropped. */
	dropped: boolean
	/** The px above the view if all rows were there, and where the element was scrolled to for it. */
	top: number
	put: number
	/** The row with the focus. */
	current: string
	/** It is to get the focus; the list has it. */
	focus: boolean
	held: boolean
	/** The name of the row that has the focus until that of current comes; "": none. */
	strayed: string
	/** The rows are those of the question before. */
	old: boolean
	/** What was asked for: the chosen record, the question. */
	sought: string
	asked: string
	/** The question but for its times; that of the rows, and how many such questions there were. */
	same: string
	of: string
	turn: number
	/** Why a record that was asked for is not there. */
	lost: string
	/** The start is to be estimated once the histogram is there. */
	guess: boolean
	loading: "" | "all" | "more"
	error?: Error
	end?: End
	/** Of a row and of the view, in px. */
	height: number
	inView: number
	/** -1: not known. */
	total: number
}

interface AskHow {
	limit?: number
	more?: Partial<Question>
}

/** What the list does. Below is downwards, from a row or an end. */
interface ListActs {
	/** Takes all rows away, for those of an answer. */
	renew(more: Partial<Held>): void
	places(): number
	tall(): number
	drawn(): number
	/** px of all rows for one of the element. */
	ratio(): number
	/** Scrolls to px of all rows. */
	to(top: number): void
	/** Gives the first row another place; what is in view stays there. */
	move(start: number): void
	drop(below: boolean, n: number): void
	/** The places of the first row in view, and behind the last one. */
	sight(): [number, number]
	/** Takes rows, the nearest first. Those that are too many go at the other end, and none in view. */
	add(rows: Row[], below: boolean): void
	ask(below: boolean, id: string | undefined, each: (rows: Row[]) => void, how?: AskHow): Promise<End | undefined>
	/** One load at a time: a new one gives the one before up. */
	loads(what: "all" | "more", load: () => Promise<void>): void
	ended(end: End | undefined, below: boolean): void
	extend(below: boolean): void
	/** Begins anew at the first record, the last one, or an estimated place. */
	begin(below: boolean, place: number, more?: Partial<Question>): void
	/** Loads a record with others around it. */
	around(name: string, anew?: boolean, offset?: number): void
	/** Estimates the place of the first row. */
	settle(): void
	home(): void
	end(): void
	jump(place: number): void
	/** Makes a row the current one. */
	go(i: number): void
	step(by: number): void
	open(): void
	nextLevel(level: string, back?: boolean): void
	scroll(by: number): void
	/** Follows at the newest row, and pauses elsewhere. */
	follow(after?: void): void
}
