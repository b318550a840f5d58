// A record as a row: what a row shows of its stored line, made safe to look at. A line may have some
// MiB: it is read up to what is shown, and not parsed.

import { h } from "./preact.js"

const shown = 4096

/** @type {WeakMap<Row, RowParts>} */
const known = new WeakMap()

/** @param {Row} row */
export function partsOf(row) {
	const had = known.get(row)
	if (had) return had
	let room = shown
	/** @type {RowParts} */
	const p = { ts: "", level: "", service: "", msg: "", rest: "", long: false, fields: new Map() }
	known.set(row, p)
	members(row.line, 0, (name, from) => {
		const { text, size } = read(row.line, from, Math.max(room, 0))
		if (name === "ts" || name === "level" || name === "service" || name === "msg") p[name] = clean(text)
		else if (name === "level_extracted")
			p.level = clean(text) // of a form
		else p.rest += `${p.rest && " "}${clean(name)}=${clean(text)}`
		room -= size + name.length
		return room <= 0 && (p.long = true)
	})
	return p
}

/** @param {Row} row */
export const nameOf = (row) => `${partsOf(row).service}/${row.id}`

/** The text of a field. A dot leads into an object, unless it is part of a name. @param {Row} row @param {string} name */
export function fieldOf(row, name) {
	const { fields } = partsOf(row)
	if (!fields.has(name)) fields.set(name, find(row.line, 0, name))
	return fields.get(name)
}

/** @param {string} line @param {number} at @param {string} name @returns {string | undefined} */
function find(line, at, name) {
	/** @type {string | undefined} */
	let found
	members(line, at, (key, from) => {
		if (key === name) found = clean(read(line, from, 512).text)
		else if (line[from] === "{" && name.startsWith(key + ".")) found ??= find(line, from, name.slice(key.length + 1))
		return key === name
	})
	return found
}

/**
 * Visits the members of the object that begins at a place, until visit returns true.
 * @param {string} line @param {number} at @param {(name: string, from: number) => boolean | void} visit
 */
function members(line, at, visit) {
	while (line[at + 1] === '"') {
		const from = quote(line, at + 2) + 2
		if (visit(read(line, at + 1, 256).text, from)) return
		at = end(line, from)
	}
}

/** Where a string ends. @param {string} line @param {number} at */
export function quote(line, at) {
	const first = line.indexOf('"', at)
	if (first < 0 || line.charCodeAt(first - 1) !== 92) return first < 0 ? line.length : first
	for (let c; at < line.length && (c = line.charCodeAt(at)) !== 34; at++) if (c === 92) at++
	return Math.min(at, line.length)
}

/** Where a value ends. @param {string} line @param {number} at */
export function end(line, at) {
	for (let deep = 0; at < line.length; at++) {
		const c = line.charCodeAt(at)
		if (c === 34) at = quote(line, at + 1)
		else if (c === 123 || c === 91) deep++
		else if (c === 125 || c === 93 ? !deep-- : c === 44 && !deep) break
	}
	return at
}

/**
 * The value at a place without quotes and escapes, read up to so many characters. The size is beyond that if there are more.
 * @param {string} line @param {number} from @param {number} most
 */
function read(line, from, most) {
	const raw = line.slice(from, from + most + 2),
		quoted = raw[0] === '"',
		size = quoted ? quote(raw, 1) + 1 : end(raw, 0)
	if (!quoted) return { text: raw.slice(0, Math.min(size, most)), size }
	// It may be cut, even within an escape.
	for (let some = raw.slice(0, size); some; some = some.slice(0, -1))
		for (const last of ["", '"'])
			try {
				return { text: String(JSON.parse(some + last)), size }
			} catch {}
	return { text: "", size }
}

const colours = /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])/g
export const hidden =
	/\r?\n|[\0-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu
const names = "200eLRM 200fRLM 202aLRE 202bRLE 202cPDF 202dLRO 202eRLO 2066LRI 2067RLI 2068FSI 2069PDI 061cALM"

/**
 * A text of a record as it can be shown: without the colours of terminals, with signs for what
 * cannot be seen or turns others round, and at most four marks over a letter.
 * @param {string} text
 */
export const clean = (text) =>
	text
		.replace(colours, "")
		.replace(hidden, sign)
		.replace(/(\p{M}{4})\p{M}+/gu, "$1")

/** @param {string} c */
function sign(c) {
	const code = c.codePointAt(0) ?? 0,
		hex = code.toString(16).padStart(4, "0"),
		at = names.indexOf(hex)
	return c.endsWith("\n")
		? "↵"
		: c === "\t"
			? "→"
			: code < 32
				? String.fromCharCode(0x2400 + code)
				: code === 127
					? "␡"
					: `⟨${at < 0 ? "U+" + hex.toUpperCase() : names.slice(at + 4, at + 7)}⟩`
}

/** The text with marks where others occur in it. @param {string} text @param {string[]} wanted @param {boolean} fold */
export function marked(text, wanted, fold) {
	const lower = (/** @type {string} */ s) => (fold ? s.toLowerCase() : s),
		all = wanted.map(lower),
		out = []
	const low = lower(text).length === text.length ? lower(text) : text
	let at = 0
	while (out.length < 100) {
		let first = text.length,
			length = 0
		for (const want of all) {
			const i = low.indexOf(want, at)
			if (want && i >= 0 && (i < first || (i === first && want.length > length))) [first, length] = [i, want.length]
		}
		if (!length) break
		out.push(text.slice(at, first), h("mark", null, text.slice(first, (at = first + length))))
	}
	return [...out, text.slice(at)]
}

/** When a record was, in ms since 1970. @param {string} id */
export const msOf = (id) => parseInt(id) / 1e6

/** The order of records by their ids: time, origin, index. @param {string} a @param {string} b */
export function compare(a, b) {
	const x = a.slice(0, a.lastIndexOf("-")),
		y = b.slice(0, b.lastIndexOf("-"))
	return x.length - y.length || (x < y ? -1 : x > y ? 1 : Number(a.slice(x.length + 1)) - Number(b.slice(y.length + 1)))
}

/** Rows with others among them, each once, in the order of the list. @param {Row[]} rows @param {Row[]} fresh @param {boolean} oldest */
export function merge(rows, fresh, oldest) {
	const order = (/** @type {Row} */ a, /** @type {Row} */ b) => (oldest ? compare(a.id, b.id) : compare(b.id, a.id))
	const parts = [rows, fresh.sort(order)],
		[a, b] = oldest ? parts : parts.reverse(),
		all = [...a, ...b]
	if (!a.length || !b.length || order(a[a.length - 1], b[0]) < 0) return all
	return all.sort(order).filter((row, i) => row.id !== all[i - 1]?.id)
}
