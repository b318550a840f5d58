// What the search line suggests: services, levels, fields, values, signs, and earlier questions.

import { levelNames, nameOf, termOfCounted } from "./search.js"

/** The word before the caret; name and value are those of a field. @param {string} text */
export function wordOf(text) {
	let from = 0
	for (const { 1: blank, index } of text.matchAll(/"(?:[^"\\]|\\.)*"?|(\s)|[^\s"]+/g)) if (blank) from = index + 1
	const [, dash, name, sign, value] = /^(-?)"?([^"=<>!]*)"?(!=|[<>]=?|=)?(.*)/s.exec(text.slice(from)) ?? []
	return { from, dash, name, sign, value }
}

/**
 * @param {string} text up to the caret
 * @param {{fields: Texts, services: Texts, values?: Field, past: Texts}} known
 * @returns {{text: string, note: string, from: number}[]} texts for what stands behind from
 */
export function suggest(text, { fields, services, values, past }) {
	const { from, dash, name, sign, value } = wordOf(text),
		lists = /** @type {Record<string, Texts>} */ ({ level: levelNames, service: services }),
		list = lists[name]
	const has = (v = "", part = "") => v.toLowerCase().includes(part.toLowerCase()),
		field = (/** @type {string} */ f, op = "=") => dash + nameOf(f) + op
	if (sign) {
		const comma = list ? value.lastIndexOf(",") + 1 : 0,
			part = value.slice(comma).replace('"', "")
		const found =
			list?.map((v) => ({ value: v, text: v, note: name })) ??
			values?.values
				.map((v) => ({ value: v.value, text: termOfCounted("x", v).slice(2), note: String(v.count) }))
				.filter((v) => v.text) ??
			[]
		return found
			.filter((v) => has(v.value, part))
			.slice(0, 12)
			.map(({ text, note }) => ({ text: field(name, sign) + value.slice(0, comma) + text, note, from }))
	}
	const names = !name
		? []
		: ["level", "service", ...fields]
				.filter((f, i, all) => has(f, name) && all.indexOf(f) === i)
				.sort((a, b) => Number(b.startsWith(name)) - Number(a.startsWith(name)))
	return [
		...names
			.flatMap((f) =>
				(f === name ? ["=", "!=", ">=", "<="] : ["="]).map((op) => ({ text: field(f, op), note: "field", from })),
			)
			.slice(0, 8),
		...past.filter((t) => t !== text && has(t, text)).map((text) => ({ text, note: "asked before", from: 0 })),
	].slice(0, 12)
}
