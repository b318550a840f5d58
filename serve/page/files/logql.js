// The question of the view in LogQL, for Grafana.

import { glob, levelNames, levelsOf, quote, termsOf } from "./search.js"

const opposite = /** @type {Record<string, string>} */ ({ ">": "<=", ">=": "<", "<": ">=", "<=": ">" })

/** @param {View} view @param {Question} question */
export function logqlOf(view, { services, levels, logql }) {
	/** @type {Record<"first" | "texts" | "stages" | "left", Texts>} */
	const { first, texts, stages, left } = { first: [], texts: [], stages: [], left: [] }
	const among = (/** @type {string} */ label, /** @type {Texts} */ list, not = false) =>
		list.length > 1 || /[*?]/.test(list[0])
			? `${label}${not ? "!~" : "=~"}${quote(list.map(glob).join("|"))}`
			: `${label}${not ? "!=" : "="}${quote(list[0])}`
	const picks = [
		...(services.length ? [among("service_name", services)] : []),
		...(levels.length
			? [among("level", levels[0].endsWith("+") ? levelNames.slice(levelNames.indexOf(levels[0].slice(0, -1)), 6) : levels)]
			: []),
	]
	for (const term of logql ? [] : termsOf(view)) {
		const { kind, not, name = "", op = "=", form, value } = term,
			f = name.replace(/\W/g, "_").replace(/^\d/, "_$&"),
			is = not ? "!=" : "=",
			like = not ? "!~" : "=~"
		if (levelsOf(term)) continue
		if (kind === "where" || (op !== "=" && form === "text"))
			left.push(kind === "where" ? `where:(${value})` : name + op + quote(value))
		else if (kind === "expr" || (kind === "text" && view.fold))
			(kind === "expr" && /[$^]/.test(value) ? first : texts).push(
				`${not ? "!~" : "|~"} ${quote((view.fold ? "(?i)" : "") + (kind === "expr" ? value : glob(value.replaceAll("*", "\0")).replaceAll("\0", "\\*")))}`,
			)
		else if (kind === "text") texts.push(`${not ? "!=" : "|="} ${quote(value)}`)
		else if (name === "service" && form !== "re") not && picks.push(among("service_name", value.split(","), true))
		else if (op !== "=") stages.push(`| ${f} ${not ? `${opposite[op]} ${value} or ${f}=""` : `${op} ${value}`} | __error__=""`)
		else if (form === "re") stages.push(`| ${f}${like}${quote(`(?s).*(${value}).*`)}`)
		else if (form === "word" && /\*|^null$/.test(value))
			stages.push(
				value.length > 1 && value !== "null"
					? `| ${f}${like}${quote("(?s)" + glob(value))}`
					: `| ${f}${not === (value === "*") ? "=" : "!="}""`,
			)
		else stages.push(`| ${f}${is}${quote(value)}`)
	}
	// A text may be in a field too, so the fields come into the line.
	if (texts.length) texts.unshift('| line_format "{{__line__}} {{.}}"')
	return {
		text: logql || [`{${picks.join(", ")}}`, ...first, ...texts, ...stages].join(" "),
		notes: [
			texts.length && "Its lines have the fields too, since texts are looked for in them.",
			left.length && "LogQL cannot say this, so it is left out: " + left.join(" "),
		].filter(Boolean),
	}
}
