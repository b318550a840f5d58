// A record as a row: what a row shows of its stored line, made safe to look at. A line is read up
// to what is shown, and not parsed: it may have some MiB.

import { h } from "./preact.js"

const shown = 4096

/** @type {WeakMap<Row, RowParts>} */
const known = new WeakMap()

/** @param {Row} row @returns {RowParts} */
export function partsOf(row) {
	let parts = known.get(row)
	if (!parts) known.set(row, (parts = read(row.line)))
	return parts
}

/** @param {string} line */
function read(line) {
	/** @type {RowParts} */
	const parts = { ts: "", level: "", service: "", msg: "", rest: "", long: false, fields: new Map() }
	let room = shown
	members(line, 0, (name, from, to) => {
		if (room <= 0) return (parts.long = true)
		const text = clean(valueOf(line, from, to, room))
		room -= text.length + name.length + 2
		parts.long ||= to - from > shown
		if (name === "ts" || name === "level" || name === "service" || name === "msg") parts[name] = text
		else parts.rest += `${parts.rest && " "}${clean(name)}=${text}`
	})
	return parts
}

/** @param {Row} row */
export const nameOf = (row) => `${partsOf(row).service}/${row.id}`

/**
 * The value of a field as a text; undefined if there is none. A dot leads into an object, unless
 * it is part of the name.
 * @param {Row} row @param {string} name
 */
export function fieldOf(row, name) {
	const { fields } = partsOf(row)
	if (!fields.has(name)) fields.set(name, find(row.line, 0, name))
	return fields.get(name)
}

/** @param {string} line @param {number} at @param {string} name @returns {string | undefined} */
function find(line, at, name) {
	/** @type {string | undefined} */
	let found
	members(line, at, (key, from, to) => {
		if (key === name) found = clean(valueOf(line, from, to, 512))
		else if (line[from] === "{" && name.startsWith(key + ".")) found ??= find(line, from, name.slice(key.length + 1))
		return key === name
	})
	return found
}

/**
 * Visits the members of the object that begins at a place, until visit returns true.
 * @param {string} line @param {number} at @param {(name: string, from: number, to: number) => boolean | void} visit
 */
function members(line, at, visit) {
	while (line[at + 1] === '"') {
		const from = quote(line, at + 2) + 2, to = end(line, from)
		if (visit(text(line, at + 2, 256), from, to) || line[to] !== ",") return
		at = to
	}
}

/** Where a string ends. @param {string} line @param {number} at */
export function quote(line, at) {
	for (;; at++) {
		at = line.indexOf('"', at)
		if (at < 0) return line.length
		let back = at
		while (line[back - 1] === "\\") back--
		if ((at - back) % 2 === 0) return at
	}
}

/** Where a value ends. @param {string} line @param {number} at */
export function end(line, at) {
	for (let deep = 0; at < line.length; at++) {
		const c = line[at]
		if (c === '"') at = quote(line, at + 1)
		else if (c === "{" || c === "[") deep++
		else if (c === "}" || c === "]" ? !deep-- : c === "," && !deep) break
	}
	return at
}

/** @param {string} line @param {number} from @param {number} to @param {number} most */
const valueOf = (line, from, to, most) => (line[from] === '"' ? text(line, from + 1, most) : line.slice(from, Math.min(to, from + most)))

/** @type {Record<string, string>} */
const escapes = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f" }

/** The beginning of a string without its escapes. @param {string} line @param {number} at @param {number} most */
function text(line, at, most) {
	let out = ""
	for (let from = at; ; at++) {
		const c = line.charCodeAt(at)
		if (c === 34 || c !== c || out.length + at - from >= most) return out + line.slice(from, at)
		if (c !== 92) continue
		const e = line[at + 1], hex = e === "u"
		out += line.slice(from, at) + (hex ? String.fromCharCode(parseInt(line.slice(at + 2, at + 6), 16)) : escapes[e] ?? e)
		at += hex ? 5 : 1
		from = at + 1
	}
}

const colours = /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])/g
const hidden = /\r?\n|[\0-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu
const names = "200eLRM 200fRLM 202aLRE 202bRLE 202cPDF 202dLRO 202eRLO 2066LRI 2067RLI 2068FSI 2069PDI 061cALM"

/**
 * A text of a record as it can be shown: without the colours of terminals, with signs for what
 * cannot be seen, turns others round or climbs over them.
 * @param {string} text
 */
export const clean = (text) => text.replace(colours, "").replace(hidden, sign).replace(/(\p{M}{4})\p{M}+/gu, "$1")

/** @param {string} c */
function sign(c) {
	const code = /** @type {number} */ (c.codePointAt(0)), hex = code.toString(16).padStart(4, "0"), at = names.indexOf(hex)
	if (c.endsWith("\n")) return "↵"
	if (code < 33) return String.fromCharCode(0x2400 + code)
	return code === 127 ? "␡" : `⟨${at < 0 ? "U+" + hex.toUpperCase() : names.slice(at + 4, at + 7)}⟩`
}

/**
 * The text with marks where others occur in it.
 * @param {string} text @param {string[]} wanted @param {boolean} fold
 */
export function marked(text, wanted, fold) {
	const lower = (/** @type {string} */ s) => (fold ? s.toLowerCase() : s), all = wanted.map(lower).filter(Boolean), out = []
	const low = lower(text).length === text.length ? lower(text) : text
	let at = 0
	while (all.length && out.length < 100) {
		let first = text.length, length = 0
		for (const want of all) {
			const i = low.indexOf(want, at)
			if (i >= 0 && (i < first || (i === first && want.length > length))) [first, length] = [i, want.length]
		}
		if (!length) break
		out.push(text.slice(at, first), h("mark", null, text.slice(first, first + length)))
		at = first + length
	}
	return [...out, text.slice(at)]
}

/**
 * The order of records by their ids: time, origin, index.
 * @param {string} a @param {string} b
 */
export function compare(a, b) {
	const x = a.slice(0, a.lastIndexOf("-")), y = b.slice(0, b.lastIndexOf("-"))
	return x.length - y.length || (x < y ? -1 : x > y ? 1 : Number(a.slice(x.length + 1)) - Number(b.slice(y.length + 1)))
}

/**
 * Rows with others among them, each once, in the order of the list.
 * @param {Row[]} rows @param {Row[]} fresh @param {boolean} oldest the first is the oldest
 */
export function merge(rows, fresh, oldest) {
	const order = (/** @type {Row} */ a, /** @type {Row} */ b) => (oldest ? compare(a.id, b.id) : compare(b.id, a.id))
	fresh.sort(order)
	const all = oldest ? [...rows, ...fresh] : [...fresh, ...rows], seam = oldest ? rows.length : fresh.length
	if (seam && seam < all.length && order(all[seam - 1], all[seam]) < 0) return all
	return all.sort(order).filter((row, i) => row.id !== all[i - 1]?.id)
}
