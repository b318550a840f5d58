// The only module that knows the API. Everything else asks these functions, so that a page with
// another source of records replaces this file alone.
//
// An answer without its end is an error: a part of an answer never looks like all of it. Each
// function takes an AbortSignal, and the server stops when the question is given up.

import { msOf } from "./rows.js"

/** A refusal of the server, or a connection that broke. */
export class Failure extends Error {
	/**
	 * @param {string} text
	 * @param {{status?: number, title?: string, line?: string, column?: number}} [more] line: of the search, and the place in it
	 */
	constructor(text, { status = 0, title = "", line = "", column = 0 } = {}) {
		super(text)
		this.status = status
		this.title = title
		this.line = line
		this.column = column
	}
}

const base = "api/v1/"

/** The characters of a line, which has one record at most. */
const mostLine = 64 << 20

/**
 * @param {Question} q
 * @param {Record<string, string | number | undefined>} [more]
 */
export function params(q, more = {}) {
	const out = new URLSearchParams()
	const each = (/** @type {string} */ key, /** @type {string[]} */ values) => values.forEach((v) => out.append(key, v))
	if (q.logql) {
		out.set("logql", q.logql)
		out.set("parse", "stages")
	} else {
		each("service", q.services.length ? q.services : ["*"])
		each("q", q.q)
		if (q.fold) out.set("fold", "1")
	}
	if (q.from) out.set("from", q.from)
	if (q.to) out.set("to", q.to)
	for (const [key, value] of Object.entries(more)) if (value !== undefined && value !== "") out.set(key, String(value))
	return out
}

/**
 * @param {string} path
 * @param {RequestInit} [init]
 */
async function ask(path, init) {
	let answer
	try {
		answer = await fetch(base + path, { credentials: "same-origin", cache: "no-store", redirect: "manual", ...init })
	} catch (err) {
		if (init?.signal?.aborted) throw err
		throw new Failure("the server does not answer; is it running, and is the network there?")
	}
	if (answer.ok) return answer
	const { status } = answer,
		problem = await answer.json().catch(() => {})
	throw new Failure(
		problem?.detail?.replace(/^q: /, "") ||
			(status === 431 || status === 414
				? "the question is too long for the server; leave out some filters or services"
				: `the server, or a proxy before it, answers with ${status || "a redirect; reload the page"}`),
		{ ...problem, status },
	)
}

/** @param {string} text @returns {any} an object */
function parsed(text) {
	try {
		return Object(JSON.parse(text))
	} catch {
		throw new Failure("the answer was cut off, or is not of this server; try again")
	}
}

/** @param {Error} err @returns {never} */
const broke = (err) => {
	throw err.name === "AbortError" ? err : new Failure("the connection broke before the end of the answer; try again")
}

/**
 * An answer of one object that was made of records.
 * @param {string} path
 * @param {AbortSignal} [signal]
 */
async function object(path, signal) {
	const value = parsed(await (await ask(path, { signal })).text().catch(broke))
	if (typeof value.complete !== "boolean")
		throw new Failure("the answer does not say whether it is complete; the server is of another version than this page")
	return value
}

/** @param {AbortSignal} [signal] @returns {Promise<Whoami>} */
export async function whoami(signal) {
	const value = parsed(await (await ask("whoami", { signal })).text().catch(broke))
	if (!Date.parse(value.time)) throw new Failure("the answer is not of this server; try again")
	return value
}

/**
 * What a question says, or is typed; nothing is read.
 * @param {Record<string, string> | URLSearchParams} of
 * @param {AbortSignal} [signal]
 * @returns {Promise<Parsed>}
 */
export const parse = async (of, signal) =>
	parsed(await (await ask("parse?" + new URLSearchParams(of), { signal })).text().catch(broke))

/** @param {string} token */
export const login = (token) =>
	ask("login", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token }) })

export const logout = () => ask("login", { method: "DELETE" })

/** @param {{from: string, to: string}} range @param {AbortSignal} signal @returns {Promise<Outcome & {services: Service[]}>} */
export function services(range, signal) {
	const times = new URLSearchParams()
	if (range.from) times.set("from", range.from)
	if (range.to) times.set("to", range.to)
	return object("services?" + times, signal)
}

/** @param {Question} q @param {{buckets?: number, by?: string, split?: string, top?: number}} how @param {AbortSignal} signal @returns {Promise<Histogram>} */
export const histogram = (q, how, signal) => object("histogram?" + params(q, how), signal)

/** @param {Question} q @param {{top?: number, sample?: number, fields?: string}} how @param {AbortSignal} signal @returns {Promise<Facets>} */
export const facets = (q, how, signal) => object("facets?" + params(q, how), signal)

/** @param {Question} q @param {Record<string, string | number | undefined>} how @param {AbortSignal} signal @returns {Promise<any>} */
export const patterns = (q, how, signal) => object("patterns?" + params(q, how), signal)

/** A record as it is stored, and the ids of its neighbours. @param {string} service @param {string} id @param {AbortSignal} signal @returns {Promise<Outcome & {row: Row, previous?: string, next?: string}>} */
export async function record(service, id, signal) {
	/** @type {Row[]} */
	const rows = []
	const end = await context(
		{ service, id, before: 1, after: 1, services: "same", each: (more) => rows.push(...more) },
		signal,
	).catch((err) => {
		if (err.title !== "No such record") throw err
		throw new Failure(
			`${service} has no such record any more: it is of ${new Date(msOf(id)).toISOString().slice(0, 10)} (UTC), and that day may have expired`,
			err,
		)
	})
	const at = rows.findIndex((r) => r.anchor)
	return { ...end, row: rows[at], previous: rows[at - 1]?.id, next: rows[at + 1]?.id }
}

/** The address of one record. @param {string[]} sel its service and id */
export const recordURL = (sel) => `${base}records/${sel.map(encodeURIComponent).join("/")}`

/** The link of a file with the records of a question, straight to disk. @param {Question} q @param {{oldest: boolean, fields?: string[]}} how fields: as CSV */
export const download = (q, { oldest, fields }) =>
	base +
	"records?" +
	params(q, {
		limit: 0,
		order: oldest ? "asc" : "desc",
		download: 1,
		...(fields ? { form: "csv", fields: fields.join(",") } : {}),
	})

/**
 * Passes records on as they come, and returns the end of the stream.
 * @param {Question} q
 * @param {{limit: number, oldest?: boolean, before?: string, after?: string, each: (rows: Row[]) => void}} how
 * @param {AbortSignal} signal
 * @returns {Promise<End>}
 */
export function records(q, { limit, oldest, before, after, each }, signal) {
	const more = { form: "events", order: oldest ? "asc" : "desc", [oldest ? "first" : "limit"]: limit, before, after }
	return events("records?" + params(q, more), each, signal)
}

/**
 * The outcome of an event of a tail, which tells one thing. Its problems and gaps say that records are missing.
 * @param {Exclude<Told, Row>} e
 * @returns {Outcome}
 */
export const outcomeOf = ({ problem, warning, note, absent, gap }) => ({
	complete: !problem && !gap,
	problems: problem ? [problem] : [],
	warnings: warning ? [warning] : [],
	notes: note ? [note] : absent ? [`there is no service ${absent} yet`] : [],
	gaps: gap ? [gap] : [],
	cost: { requests: 0, bytes: 0 },
})

/**
 * The outcome of an answer that came in parts. What several of them tell counts once.
 * @template {Outcome} T
 * @param {T | undefined} was
 * @param {T} end
 * @returns {T}
 */
export function joined(was, end) {
	if (!was) return end
	const both = (/** @type {any[]} */ a, /** @type {any[]} */ b) =>
		[...new Map([...a, ...b].map((one) => [JSON.stringify(one), one])).values()].slice(-50)
	return {
		...end,
		complete: was.complete && end.complete,
		problems: both(was.problems, end.problems),
		warnings: both(was.warnings, end.warnings),
		notes: both(was.notes, end.notes),
		gaps: both(was.gaps, end.gaps),
		cost: { requests: was.cost.requests + end.cost.requests, bytes: was.cost.bytes + end.cost.bytes },
	}
}

/**
 * The records around one.
 * @param {{service: string, id: string, before: number, after: number, services: string, each: (rows: Row[]) => void}} how
 * @param {AbortSignal} signal
 */
export function context({ each, ...how }, signal) {
	return events("context?" + new URLSearchParams(Object.entries(how).map(([k, v]) => [k, String(v)])), each, signal)
}

/**
 * Reads a stream of events in slices, so that drawing goes on.
 * @param {string} path
 * @param {(rows: Row[]) => void} each
 * @param {AbortSignal} signal
 * @returns {Promise<End>}
 */
async function events(path, each, signal) {
	const answer = await ask(path, { signal })
	/** @type {End | undefined} */
	let end
	for await (const lines of slices(answer, signal)) {
		/** @type {Row[]} */
		const rows = []
		for (const line of lines) {
			const row = rowOf(line)
			if (row) rows.push(row)
			else end = parsed(line).end ?? end
		}
		if (rows.length) each(rows)
	}
	if (!end) throw new Failure("the answer was cut off before its end; try again")
	return end
}

/**
 * The lines of an answer, in slices of at most 8 ms of work.
 * @param {Response} answer
 * @param {AbortSignal} signal
 */
export async function* slices(answer, signal) {
	const reader = /** @type {ReadableStream<Uint8Array>} */ (answer.body).getReader(),
		decoder = new TextDecoder()
	let rest = "",
		done = false
	try {
		while (!done) {
			const next = await reader.read(),
				value = next.value
			done = next.done
			rest += done ? decoder.decode() : decoder.decode(value, { stream: true })
			/** @type {string[]} */
			let lines = []
			let at = 0,
				began = performance.now()
			for (let n; (n = rest.indexOf("\n", at)) >= 0; at = n + 1) {
				if (n > at) lines.push(rest.slice(at, n))
				if (performance.now() - began < 8) continue
				yield lines
				lines = []
				await new Promise((go) => setTimeout(go))
				began = performance.now()
			}
			rest = rest.slice(at)
			if (lines.length) yield lines
			if (rest.length > mostLine) throw new Failure("the answer has a line without an end; is it of this server?")
		}
		if (rest) throw new Failure("the answer was cut off within a line; try again")
	} catch (err) {
		if (err instanceof Failure || signal.aborted) throw err
		broke(/** @type {Error} */ (err))
	} finally {
		if (!done) reader.cancel().catch(() => {})
	}
}

/**
 * The record of an event, cut out of its text: a line is parsed when it is shown.
 * @param {string} text
 * @returns {Row | undefined}
 */
function rowOf(text) {
	const head = '{"record":{"id":"',
		next = '","line":'
	if (!text.startsWith(head)) return undefined
	const id = text.indexOf('"', head.length),
		anchor = text.endsWith(',"anchor":true}}')
	return {
		id: text.slice(head.length, id),
		line: text.slice(id + next.length, anchor ? -',"anchor":true}}'.length : -2),
		...(anchor && { anchor }),
	}
}

/**
 * Passes new records on as they come, and what else the tail says: a cursor, a problem, a note.
 * It ends when the server does.
 * @param {Question} q
 * @param {{n?: number, after?: string}} how
 * @param {(events: Told[]) => void} each
 * @param {AbortSignal} signal
 */
export async function tail(q, how, each, signal) {
	const answer = await ask("tail?" + params({ ...q, to: "", from: how.after ? "" : q.from }, how), { signal })
	let told = false
	for await (const lines of slices(answer, signal)) {
		told ||= lines.some((line) => line.startsWith("data: "))
		each(
			lines.flatMap((line) =>
				line.startsWith("id: ")
					? [{ cursor: line.slice(4) }]
					: line.startsWith("data: ")
						? [rowOf(line.slice(6)) ?? parsed(line.slice(6))]
						: [],
			),
		)
	}
	if (!told) throw new Failure("the answer ended before it began.")
}
