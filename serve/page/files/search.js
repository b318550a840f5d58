// The language of the search line and of the chips, and the Question that they make.
//
//	word  "two words"  /re/  -word  field=value  field!=value  field>10  level>=warn  service=web
//
// The browser runs no expression of a user: a Question goes to the server.

/** A mistake in a text, at a column (from 0). */
export class Mistake extends Error {
	/** @param {string} text @param {number} column */
	constructor(text, column) {
		super(text)
		this.column = column
	}
}

/**
 * @param {string} text
 * @returns {Term[]}
 */
export function parse(text) {
	/** @type {Term[]} */
	const terms = []
	for (const [word] of text.matchAll(/"(?:[^"\\]|\\.)*"|\S+/g)) {
		const value = word.startsWith('"') ? JSON.parse(word) : word
		terms.push(word.startsWith("-") ? { kind: "without", value: word.slice(1) } : { kind: "text", value })
	}
	return terms
}

/**
 * The term that wants records with a value in a field, or those without it.
 * @param {string} field
 * @param {unknown} value of JSON
 * @param {boolean} [out]
 */
export const termFor = (field, value, out) => `${out ? "-" : ""}${field}=${typeof value === "string" && /^[^\s"\\]+$/.test(value) ? value : JSON.stringify(value)}`

/**
 * The question of a view about a range of time.
 * @param {View} view
 * @param {{from: string, to: string}} range
 * @returns {Question}
 */
export function questionOf(view, range) {
	/** @type {Question} */
	const q = { services: view.services, ...range, levels: [], texts: [], without: [], exprs: [], where: [], fold: view.fold, logql: view.logql }
	for (const text of [view.q, ...view.chips.filter((c) => !c.off).map((c) => c.text)]) {
		for (const { kind, value } of parse(text)) {
			if (kind === "text") q.texts.push(value)
			if (kind === "without") q.without.push(value)
			if (kind === "expr") q.exprs.push(value)
			if (kind === "where") q.where.push(value)
			if (kind === "level") q.levels = [value]
			if (kind === "service") q.services = [value]
		}
	}
	return q
}
