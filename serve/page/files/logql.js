// The question of the view in LogQL, for Grafana.

import { levelsOf, levelNames, oneOf, quote, termsOf } from "./search.js"

/**
 * @param {View} view @param {Question} question
 * @returns {{text: string, notes: string[]}}
 */
export function logqlOf(view, { services, levels, logql }) {
	if (logql) return { text: logql, notes: [] }
	/** @type {string[]} */
	const picks = [], stages = []
	/** @type {Set<string>} */
	const notes = new Set()
	const among = (/** @type {string} */ label, /** @type {string[]} */ list, not = false) => list.length === 1 && !/[*?[\\]/.test(list[0]) ? `${label}${not ? "!=" : "="}${quote(list[0])}` : `${label}${not ? "!~" : "=~"}${quote(oneOf(list))}`
	if (services.length) picks.push(among("service_name", services))
	if (levels.length) picks.push(among("level", levels[0].endsWith("+") ? levelNames.slice(levelNames.indexOf(levels[0].slice(0, -1)), -1) : levels))
	for (const term of termsOf(view)) {
		const { kind, not, name = "", op, form, value } = term
		if (levelsOf(term)) continue
		if (kind === "where") notes.add(`LogQL has no where:(${value}): it is left out.`)
		else if (kind !== "field") {
			const re = kind === "expr", fold = view.fold ? "(?i)" : ""
			notes.add("In Grafana a text is looked for in the message alone, and not in fields.")
			stages.push(`${not ? "!" : "|"}${re || fold ? "~" : "="} ${quote(re || !fold ? fold + value : fold + escaped(value))}`.replace(/^\|=/, "|=").replace(/^!=/, "!="))
		} else if (name === "service" && form !== "re") {
			if (not) picks.push(among("service_name", value.split(","), true))
		} else {
			const label = name.replace(/[^a-zA-Z0-9_]/g, "_").replace(/^\d/, "_$&")
			if (op !== "=" && form === "text") notes.add(`LogQL does not compare texts: ${name}${op} is left out.`)
			else if (op !== "=") stages.push(not ? `| ${label} ${opposite(op)} ${value} or ${label}=""` : `| ${label} ${op} ${value}`)
			else if (form === "word" && /^(\*|null)$/.test(value)) stages.push(`| ${label}${(value === "*") === not ? "=" : "!="}""`)
			else if (form === "re" || (form === "word" && value.includes("*"))) stages.push(`| ${label}${not ? "!~" : "=~"}${quote(form === "re" ? `(?s).*(?:${value}).*` : "(?s)" + value.split("*").map(escaped).join(".*"))}`)
			else stages.push(`| ${label}${not ? "!=" : "="}${quote(value)}`)
		}
	}
	return { text: [`{${picks.join(", ")}}`, ...stages].join(" "), notes: [...notes] }
}

const escaped = (/** @type {string} */ v) => v.replace(/[\\^$.|?+()[\]{}*]/g, "\\$&")
/** @param {string} [op] */
const opposite = (op = "") => ({ ">": "<=", ">=": "<", "<": ">=", "<=": ">" })[op]
