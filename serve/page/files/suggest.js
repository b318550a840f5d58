// What the search line suggests: services, levels, fields, values, signs, and earlier questions.

import { levels } from "./format.js"
import { nameOf, valueOf } from "./term.js"

/**
 * @param {Word} word that is typed
 * @param {{fields: Texts, services: Texts, values?: Field}} known
 * @returns {{text: string, note: string}[]} texts for what stands behind the begin of the word
 */
export function suggest({ name, sign, value }, { fields, services, values }) {
	const has = (v = "", part = "") => v.toLowerCase().includes(part.toLowerCase())
	if (sign) {
		const list = /** @type {Record<string, Texts>} */ ({ level: levels, service: services })[name]
		return (
			list?.map((v) => ({ value: v, text: v, note: name })) ??
			values?.values.map((v) => ({ value: v.value, text: valueOf(v), note: String(v.count) })) ??
			[]
		)
			.filter((v) => v.text && has(v.value, value))
			.slice(0, 12)
	}
	return ["level", "service", ...fields]
		.filter((f, i, all) => name && has(f, name) && all.indexOf(f) === i)
		.sort((a, b) => Number(b.startsWith(name)) - Number(a.startsWith(name)))
		.flatMap((f) =>
			(f === name ? ["=", "!=", ">=", "<="] : ["="]).map((op) => ({ text: nameOf(f) + op, note: "field" })),
		)
		.slice(0, 8)
}
