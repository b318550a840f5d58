// What the search line suggests: services, levels, fields, their values, signs, and the questions
// that this browser asked before. No result of a question is kept.

import { levelNames, print, termFor } from "./search.js"

const most = 100, shown = 12

/** The questions of this browser, the newest first; undefined: it keeps none. @returns {string[] | undefined} */
export function history() {
	try {
		const kept = JSON.parse(localStorage.getItem("history") ?? "[]")
		return Array.isArray(kept) ? kept.map(String) : undefined
	} catch {
		return undefined // no storage
	}
}

/** @param {string[] | undefined} list */
export function keep(list) {
	try {
		localStorage.setItem("history", JSON.stringify(list ?? "off"))
	} catch { /* no storage: nothing is kept */ }
}

/** @param {string} text */
export function remember(text) {
	const list = history()
	if (list && text) keep([text, ...list.filter((t) => t !== text)].slice(0, most))
}

/** The word at the caret, and if it is a field with a sign, their parts. @param {string} text @param {number} caret */
export function wordAt(text, caret) {
	let from = 0
	for (const part of text.slice(0, caret).matchAll(/"(?:[^"\\]|\\.)*"?|(\s)|[^\s"]+/g)) if (part[1]) from = part.index + 1
	const word = text.slice(from, caret), [, dash, name, sign, value] = /^(-?)(?:(".*"|[\p{L}\p{N}_.@$#-]+?)(!=|[<>]=?|=)(.*))?$/su.exec(word) ?? [word, word.startsWith("-") ? "-" : ""]
	return { from, word, dash, name: name?.startsWith('"') ? name.slice(1, -1) : name, sign, value }
}

/**
 * @param {string} text @param {number} caret
 * @param {{fields: string[], services: string[], values?: Field, history: string[]}} of
 * @returns {{text: string, note: string, from: number}[]} text takes the place of what is from there to the caret
 */
export function suggest(text, caret, { fields, services, values, history }) {
	const { from, word, dash, name, sign, value = "" } = wordAt(text, caret)
	const like = (/** @type {string} */ v, /** @type {string} */ part) => v.toLowerCase().includes(part.toLowerCase())
	if (name) {
		const comma = name === "level" || name === "service" ? value.lastIndexOf(",") + 1 : 0, head = word.slice(0, word.length - value.length + comma), part = value.slice(comma).replace(/^"/, "")
		const known = name === "level" ? levelNames.map((v) => ({ value: v, note: "level" })) : name === "service" ? services.map((v) => ({ value: v, note: "service" }))
			: (values?.values ?? []).map((v) => ({ value: values?.type === "string" || !/^[-\w.]+$/.test(v.value) ? v.value : v.value, note: String(v.count) }))
		return known.filter((v) => like(v.value, part)).slice(0, shown).map((v) => ({ text: head + valueOf(name, v.value, values?.type), note: v.note, from }))
	}
	const bare = word.slice(dash.length), names = ["level", "service", ...fields.filter((f) => f !== "level" && f !== "service")].filter((f) => bare && like(f, bare)).sort((a, b) => Number(b.startsWith(bare)) - Number(a.startsWith(bare)))
	const whole = text.slice(0, caret).trim()
	return [
		...names.slice(0, shown).map((f) => ({ text: dash + print({ kind: "field", not: false, name: f, op: "=", form: "word", value: "" }), note: "field", from })),
		...(names.includes(bare) ? ["!=", ">=", "<="].map((s) => ({ text: dash + bare + s, note: "sign", from })) : []),
		...history.filter((t) => t !== text && like(t, whole)).map((t) => ({ text: t, note: "asked before", from: 0 })),
	].slice(0, shown)
}

/** @param {string} name @param {string} value @param {string} [type] of the field */
function valueOf(name, value, type) {
	if (name === "level" || name === "service") return value
	return termFor("x", type && type !== "string" && /^[-\d.e+]+$|^(true|false|null)$/.test(value) ? JSON.parse(value) : value).slice(2)
}
