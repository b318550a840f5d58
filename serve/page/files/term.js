// The terms that a click adds: a field with its value, as the search of the server reads them. What
// somebody types is read by the server alone.

import { levels } from "./format.js"

/** @type {Fn} */
export const nameOf = (name) => (/^[\p{L}\p{N}_.$#][\p{L}\p{N}_.@$#-]*$/u.test(name) ? name : JSON.stringify(name))

/** @type {Fn} A text, in quotes if it would be more than one. */
const quoted = (text) =>
	/^[\p{L}\p{N}_.][\p{L}\p{N}_.:@/-]*$/u.test(text) && !/^([\d_.]+(e[+-]?\d+)?|true|false|null)$/i.test(text)
		? text
		: JSON.stringify(text.replace(/\p{Surrogate}/gu, "\ufffd"))

/** @param {string} name @param {string} value as it is written @param {boolean} [not] */
const term = (name, value, not) => `${not ? "-" : ""}${nameOf(name)}=${value}`

/** A value of a record, which is JSON. @param {string} name @param {string} raw @param {boolean} [not] */
export const termFor = (name, raw, not) =>
	term(
		name,
		raw[0] !== '"' || (name === "level" && !levels.includes(JSON.parse(raw))) ? raw : quoted(JSON.parse(raw)),
		not,
	)

/**
 * A value of the API, as it is written, by the types that it has in records; "" for one that is cut or no value
 * of its own. A text that is a number in other records is either.
 * @param {Counted} of
 */
export function valueOf({ value, types = ["string"] }) {
	if (!types[0] || types.some((t) => t === "object" || t === "array") || new TextEncoder().encode(value).length >= 256)
		return ""
	return types[0] !== "string" || (types.length > 1 && /^[\w.+-]+$/.test(value)) ? value : quoted(value)
}

/** @param {string} name @param {Counted} of @param {boolean} [not] */
export function termOf(name, of, not) {
	const value = valueOf(of)
	return value && term(name, name === "level" && !levels.includes(of.value) ? JSON.stringify(of.value) : value, not)
}

/** The question of a view about a range of time. @param {View} view @param {Times} range @returns {Question} */
export const questionOf = ({ services, q, chips, fold, logql }, range) => ({
	services,
	...range,
	q: logql ? [] : [q, ...chips.filter((c) => !c.off).map((c) => c.text)].filter((line) => line.trim()),
	fold,
	logql,
})
