// The question of the view in LogQL, for Grafana. It selects the records of the question; the notes
// name each term for which it may not.

import { glob, isConstant, levelNames, levelsOf, print, quote, termsOf } from "./search.js"

const opposite = /** @type {Record<string, string>} */ ({ ">": "<=", ">=": "<", "<": ">=", "<=": ">" })

/** What each line has beside the texts of the record, once the fields are in it. */
const scaffold = "map[detected_level:unknown level_extracted: service_name:"

/** Whether a text may be elsewhere in a record: a=b is a field and its value there. @param {string} text */
const elsewhere = (text) => /[=:"{}[\]\\]/.test(text.replaceAll("://", "")) || scaffold.includes(text.toLowerCase())

/** @param {string} re @param {boolean} fold */
function ofScaffold(re, fold) {
	try {
		return new RegExp(re, fold ? "i" : "").test(scaffold)
	} catch {
		return true
	}
}

/** Whether the value of a term may be one that LogQL has not: an object, an empty text, a type. @param {Term} term */
const vague = ({ form, value }) =>
	form === "re"
		? !/^\^[\w/-](?![*?{])[^|]*$/.test(value)
		: form === "text"
			? isConstant(value) || /^$|^[[{]/.test(value)
			: /^(null)?$|^[*[{]/.test(value) || (isConstant(value) && /[_.e]/i.test(value) && !/^(true|false)$/.test(value))

/** @param {View} view @param {Question} question */
export function logqlOf(view, { services, levels, logql }) {
	/** @type {Record<"first" | "texts" | "stages" | "left" | "near", Texts>} */
	const { first, texts, stages, left, near } = { first: [], texts: [], stages: [], left: [], near: [] }
	const among = (/** @type {string} */ label, /** @type {Texts} */ list, not = false) =>
		list.length > 1 || /[*?]/.test(list[0])
			? `${label}${not ? "!~" : "=~"}${quote(list.map((one) => glob(one).replaceAll("\\?", ".")).join("|"))}`
			: `${label}${not ? "!=" : "="}${quote(list[0])}`
	const ranks = levels[0]?.endsWith("+") ? levelNames.slice(levelNames.indexOf(levels[0].slice(0, -1)), 6) : levels
	const picks = [
		...(services.length ? [among("service_name", services)] : []),
		...(view.services.length && !logql && services !== view.services ? [among("service_name", view.services)] : []),
		...(ranks.length
			? [
					among(
						"level",
						ranks.map((l) => (l === "other" ? "unknown" : l)),
					),
				]
			: []),
	]
	for (const term of logql ? [] : termsOf(view)) {
		const { kind, not, name = "", op = "=", form, value } = term,
			f = name.replace(/\W/gu, "_").replace(/^\d/, "_$&"),
			is = not ? "!=" : "=",
			like = not ? "!~" : "=~",
			fold = view.fold ? "(?i)" : ""
		const drop = () => left.push(print(term))
		const put = (/** @type {string} */ stage, /** @type {boolean} */ maybe, to = stages) => {
			to.push(stage)
			if (maybe) near.push(print(term))
		}
		if (levelsOf(term)) continue
		if (kind === "where" || name === "ts" || (op !== "=" && form === "text")) drop()
		else if (kind === "expr") {
			if (/[$^]/.test(value.replaceAll("[^", "")))
				put(`${not ? "!~" : "|~"} ${quote(fold + "(?m)" + value)}`, true, first)
			else if (/[=:"]|\\[[\]{}\\]/.test(value) || ofScaffold(value, view.fold)) drop()
			else put(`${not ? "!~" : "|~"} ${quote(fold + value)}`, /[.\])][*+?{]|\\[SWDs]|\[\^/.test(value), texts)
		} else if (kind === "text") {
			if (elsewhere(value)) drop()
			else if (fold)
				texts.push(`${not ? "!~" : "|~"} ${quote(fold + glob(value.replaceAll("*", "\0")).replaceAll("\0", "\\*"))}`)
			else texts.push(`${not ? "!=" : "|="} ${quote(value)}`)
		} else if (name === "service" && form !== "re" && value !== "null")
			not && picks.push(among("service_name", value.split(","), true))
		else if (op !== "=") {
			const n = value.replaceAll("_", "")
			put(`| ${f} ${not ? `${opposite[op]} ${n} or ${f}=""` : `${op} ${n}`} | __error__=""`, not)
		} else if (form === "re") put(`| ${f}${like}${quote(`(?s:.*)(?:${value})(?s:.*)`)}`, vague(term))
		else if (form === "word" && /\*|^null$/.test(value))
			put(
				value.length > 1 && value !== "null"
					? `| ${f}${like}${quote("(?s)" + glob(value))}`
					: `| ${f}${not === (value === "*") ? "=" : "!="}""`,
				vague(term),
			)
		else
			put(`| ${f}${is}${quote(form === "word" && isConstant(value) ? value.replaceAll("_", "") : value)}`, vague(term))
	}
	// A text may be in a field too, or in the time, so they come into the line.
	if (texts.length)
		texts.unshift('| line_format "{{__timestamp__ | date \\"2006-01-02T15:04:05.000000000Z\\"}} {{__line__}} {{.}}"')
	return {
		text: logql || [`{${picks.join(", ")}}`, ...first, ...texts, ...stages].join(" "),
		notes: [
			texts.length && "Its lines have the time and the fields too, since texts are looked for in them.",
			left.length && "LogQL cannot say this, so it is left out: " + left.join(" "),
			near.length &&
				"LogQL has no types, no value of an object or of an empty text, and ^ and $ for the message alone. So records may be left out, or come besides, by: " +
					near.join(" "),
		].filter(Boolean),
	}
}
