// The language of the search line and of the filters, and the Question that they make. All terms
// must hold; "-" before a term turns it round.
//
//	word  "two words"  /re/     the text, or a match of RE2, in a text of the record
//	field=502  field!=502       the number or the text; so are true, false and null
//	field="502"                 the text alone
//	field=pre*  field=/re/      of the value as text; field=*: the record has the field
//	field>10  >=  <  <=         numbers, also as texts; field>"b" compares texts
//	level=error,warn  level>=warn  service=web,db-*
//	where:(status > 499 or ok)  a condition of logquery --where
//
// Records without the field are kept by -field=value. Quotes take names and texts as they are:
// "a=b" is a text, and \" in it a quote, \\ a backslash, \n a new line. The browser runs no
// expression of a reader.

/** A mistake in a text, at a column (from 0). */
export class Mistake extends Error {
	/** @param {string} text @param {number} column */
	constructor(text, column) {
		super(text)
		this.column = column
	}
}

const ranks = ["trace", "debug", "info", "warn", "error", "critical"]
export const levelNames = [...ranks, "other"]
/** @type {Record<string, string>} */
const aliases = { warning: "warn", err: "error", crit: "critical", fatal: "critical" }
/** @type {Record<string, string>} */
const escapes = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f" }

const isNumber = (/** @type {string} */ v) => /^-?(0|[1-9][\d_]*)(\.\d+)?(e[+-]?\d+)?$/i.test(v) && isFinite(Number(v.replaceAll("_", "")))
const isGlob = (/** @type {string} */ v) => /[*?[\\]/.test(v)
export const quote = (/** @type {string} */ v) => JSON.stringify(v.replace(/\p{Surrogate}/gu, "\ufffd"))

/** @param {string} text @returns {Term[]} */
export function parse(text) {
	let at = 0
	/** @param {RegExp} re sticky */
	const take = (re) => {
		re.lastIndex = at
		const found = re.exec(text)
		if (found) at += found[0].length
		return found
	}
	/** @returns {never} */
	const fail = (/** @type {string} */ what, column = at) => { throw new Mistake(what, column) }
	const quoted = () => text[at] !== '"' ? undefined : (take(/"((?:[^"\\]|\\[^])*)"/y) ?? fail('the quote that begins here has no end; write "two words"'))[1]
		.replace(/\\(?:u([\da-fA-F]{4})|([^]))/g, (all, hex, c) => hex ? String.fromCharCode(parseInt(hex, 16)) : escapes[c] ?? ('"\\'.includes(c) ? c : all))
	// A slash within a word is none of an expression: /api/users is a text.
	const regex = () => take(/\/((?:[^/\\]|\\[^])+)\/(?!\S)/y)?.[1].replace(/\\[^]/g, (two) => two === "\\/" ? "/" : two)
	const condition = () => {
		const begin = at
		for (let depth = 1; depth;) {
			const [part] = take(/"(?:[^"\\]|\\[^])*"|'(?:[^'\\]|\\[^])*'|`[^`]*`|[^]/y) ?? fail("the parenthesis before this has no end; write where:(status > 499)", begin)
			depth += part === "(" ? 1 : part === ")" ? -1 : 0
		}
		return text.slice(begin, at - 1)
	}
	/** @returns {Omit<Term, "begin" | "end" | "not"> & {not?: boolean}} */
	const term = () => {
		if (take(/where:\(/y)) return { kind: "where", value: condition() }
		const re = regex(), start = at
		if (re !== undefined) return { kind: "expr", value: re }
		const exact = quoted(), name = exact ?? take(/[\p{L}\p{N}_.@$#-]+/uy)?.[0], sign = name === undefined ? "" : take(/!=|==?(?!~)|[<>]=?/y)?.[0]
		if (name === undefined || !sign) {
			if (take(/[=!]~/y)) fail("for an expression write field=/re/ or field!=/re/", at - 2)
			if (exact === "") fail("an empty text is in every record; leave it out", start)
			if (exact === undefined) at = start
			return { kind: "text", value: exact ?? /** @type {string[]} */ (take(/\S+/y))[0] }
		}
		const here = at, not = sign === "!=", op = sign[0] === "=" || not ? "=" : sign, field = { kind: /** @type {const} */ ("field"), not, name, op }
		const match = regex()
		if (match !== undefined) return op === "=" ? { ...field, form: "re", value: match } : fail(`${op} compares; write =/re/`, here)
		const value = quoted()
		if (value !== undefined) return { ...field, form: "text", value }
		const [word] = take(/\S+/y) ?? fail(`a value is missing here; an empty text is ""; a text that has ${sign} needs quotes`)
		if (op !== "=" && name !== "level" && name !== "ts" && !isNumber(word)) fail(`${word} is no number; write ${sign}"${word}" to compare texts; a text that has ${sign} needs quotes`, here)
		return { ...field, form: "word", value: word }
	}
	/** @type {Term[]} */
	const terms = []
	for (take(/\s*/y); at < text.length; take(/\s*/y)) {
		const begin = at, dash = !!take(/-(?=\S)/y), one = term()
		if (/^\S/.test(text.slice(at))) fail("a blank is missing here, between two terms")
		terms.push({ ...one, not: dash !== !!one.not, begin, end: at })
		levelsOf(terms[terms.length - 1])
	}
	return terms
}

/** The text of a term, which parse takes back. @param {Omit<Term, "begin" | "end">} term */
export function print({ kind, not, name = "", op, form, value }) {
	const re = () => `/${value.replace(/\\[^]|\//g, (c) => c === "/" ? "\\/" : c)}/`, bare = (/** @type {string} */ v) => /^[\p{L}\p{N}_][\p{L}\p{N}_.@$#-]*$/u.test(v) ? v : JSON.stringify(v)
	return (not ? "-" : "") + (kind === "where" ? `where:(${value})` : kind === "expr" ? re() : kind === "text" ? bare(value) : bare(name) + op + (form === "re" ? re() : form === "text" ? JSON.stringify(value) : value))
}

/**
 * The term that wants records with a value in a field, or those without it. The text "200" and the
 * number 200 are different: see termOf.
 * @param {string} name
 * @param {unknown} value of JSON; undefined is null
 * @param {boolean} [not]
 */
export function termFor(name, value, not = false) {
	if (typeof value === "object" && value) return print({ kind: "where", not, value: `${path(name)} == ${literal(value)}` })
	const text = typeof value === "string", plain = text && /^[\p{L}\p{N}_.][\p{L}\p{N}_.:@/-]*$/u.test(value) && !isNumber(value) && !/^(true|false|null)$/.test(value) && (name !== "level" || levelNames.includes(value))
	return print({ kind: "field", not, name, op: "=", form: text && !plain ? "text" : "word", value: String(value ?? null) })
}

/** The same for a value of which only the text is known: 200 is a number or a text. @param {string} name @param {string | undefined} text @param {boolean} [not] */
export const termOf = (name, text, not) => termFor(name, text !== undefined && isNumber(text) ? Number(text) : text, not)

/** @param {unknown} v @returns {string} */
const literal = (v) => Array.isArray(v) ? `[${v.map(literal).join(", ")}]` : typeof v === "string" ? quote(v) : typeof v === "number" ? number(String(v), ".0")
	: typeof v === "object" && v ? `{${Object.entries(v).map(([k, one]) => `${quote(k)}: ${literal(one)}`).join(", ")}}` : v === null ? "nil" : String(v)

/** @param {string} text @param {string} [end] of a short number without a fraction */
function number(text, end = "") {
	const digits = text.replaceAll("_", ""), long = String(Number(digits))
	return /^-?\d{1,18}$/.test(digits) ? digits + end : /^-?\d+$/.test(long) ? long + ".0" : long
}

/** A field in a condition: a.b is the field of that name, or else b in the object a. @param {string} name */
export function path(name) {
	const parts = name.split("."), isName = (/** @type {string} */ p) => /^[\p{L}_][\p{L}\p{Nd}_]*$/u.test(p)
	if (isName(parts[0]) && !/^([A-Z]+|true|false|nil|null|undefined|None|True|False|Nil|Null|in|not|and|or|let|if|else|matches|contains|startsWith|endsWith)$/.test(parts[0])) {
		return parts.every(isName) ? name : `${parts[0]}[${quote(name.slice(parts[0].length + 1))}]`
	}
	const ways = [`$env[${quote(name)}]`]
	for (let i = 1; i < parts.length; i++) ways.push(`$env[${quote(parts.slice(0, i).join("."))}]?.[${quote(parts.slice(i).join("."))}]`)
	if (parts.length > 2) ways.push(`$env${parts.map((p) => `[${quote(p)}]`).join("?.")}`)
	return ways.length > 1 ? `(${ways.join(" ?? ")})` : ways[0]
}

const textOf = (/** @type {string} */ f) => `(type(${f}) == "string" ? ${f} : toJSON(${f}))`

/** The condition of a term of a field. @param {Term} term */
function where({ name = "", op, not, form, value }) {
	const f = path(name), is = not ? "!=" : "==", all = (/** @type {string} */ c) => not ? `not (${c})` : c, guard = (/** @type {string} */ c) => not ? c + " and " : ""
	const matches = (/** @type {string} */ re) => all(`${f} != nil and ${textOf(f)} matches ${quote(re)}`)
	if (op !== "=") return all(form === "text" || name === "ts" ? guard(`type(${f}) == "string"`) + `${f} ${op} ${quote(value)}` : guard(`string(${f}) matches "^-?[0-9]+([.][0-9]+)?(e[+-]?[0-9]+)?$"`) + `float(${f}) ${op} ${number(value)}`)
	if (form === "re") return matches(value)
	if (form === "text") return `${f} ${is} ${quote(value)}`
	if (value === "*") return `${f} ${not ? "==" : "!="} nil`
	if (value.includes("*")) return matches(`(?s)^${value.replace(/[\\^$.|?+()[\]{}]/g, "\\$&").replaceAll("*", ".*")}$`)
	if (isNumber(value)) return all(`${f} in [${number(value)}, ${quote(value)}]`)
	return value === "true" || value === "false" ? all(`${f} in [${value}, "${value}"]`) : `${f} ${is} ${value === "null" ? "nil" : quote(value)}`
}

/** The levels that a term leaves; undefined: it is none of levels. @param {Term} term @returns {string[] | undefined} */
export function levelsOf({ name, op = "=", not, form, value, begin }) {
	if (name !== "level" || form === "re" || /\*|^null$/.test(value) || (form === "text" && !levelNames.includes(value))) return undefined
	const found = value.toLowerCase().split(",").flatMap((word) => {
		const short = word.replace(/\+$/, ""), level = aliases[short] ?? short, rank = ranks.indexOf(level), of = short === word ? op : ">="
		if (!levelNames.includes(level) || (of !== "=" && rank < 0)) throw new Mistake(`no level "${word}"; write level=error,critical or level>=warn; levels are ${levelNames.join(", ")}`, begin)
		return of === "=" ? [level] : ranks.filter((_, i) => (of[0] === ">" ? i > rank : i < rank) || (of[1] && i === rank))
	})
	return levelNames.filter((l) => found.includes(l) !== not)
}

/** RE2 for one of some names and globs. @param {string[]} list */
export const oneOf = (list) => list.map((s) => s.replace(/[.+(){}|$]/g, "\\$&").replaceAll("*", ".*").replaceAll("?", ".")).join("|")
/** @param {string[]} list */
const inServices = (list) => list.some(isGlob) ? `service matches ${quote(`^(?:${oneOf(list)})$`)}` : `service in ${literal(list)}`

/** The terms of a view that count. @param {View} view */
export const termsOf = (view) => parse(view.q).concat(...view.chips.filter((c) => !c.off).map(({ text }) => {
	try {
		return parse(text)
	} catch (err) {
		const { message, column } = /** @type {Mistake} */ (err)
		throw new Mistake(`in the filter ${text}: ${message}`, column)
	}
}))

/**
 * The question of a view about a range of time. Several terms service=… are a union, within the
 * services of the view.
 * @param {View} view
 * @param {{from: string, to: string}} range
 * @returns {Question}
 */
export function questionOf(view, range) {
	/** @type {Question} */
	const q = { services: view.services, ...range, levels: [], texts: [], without: [], exprs: [], where: [], fold: view.fold, logql: view.logql }
	if (q.logql) return q
	let left = levelNames
	/** @type {string[]} */
	const services = []
	for (const term of termsOf(view)) {
		const { kind, not, name, form, value } = term, levels = levelsOf(term)
		if (kind === "text") (not ? q.without : q.texts).push(value)
		else if (kind === "where") q.where.push(not ? `not (${value})` : value)
		else if (kind === "expr") not ? q.where.push(noMatch((view.fold ? "(?i)" : "") + value)) : q.exprs.push(value)
		else if (levels) {
			left = left.filter((l) => levels.includes(l))
			if (!left.length) throw new Mistake("no level is left by this and the other terms; write level=error,warn for one of two", term.begin)
		} else if (name === "service" && form !== "re" && value !== "null") not ? q.where.push(`not (${inServices(value.split(","))})`) : services.push(...value.split(","))
		else q.where.push(where(term))
	}
	if (services.length) {
		const both = [...services, ...view.services].some(isGlob) ? [] : services.filter((s) => view.services.includes(s))
		q.services = both.length ? both : services
		if (view.services.length && !both.length) q.where.push(inServices(view.services))
	}
	if (left.length < levelNames.length) q.levels = left.length > 1 && left.join() === ranks.slice(ranks.indexOf(left[0])).join() ? [left[0] + "+"] : left
	return q
}

/** That neither a text of the record nor a key=value matches. @param {string} re */
const noMatch = (re) => `not any(toPairs($env), (type(#[1]) == "string" and #[1] matches ${quote(re)}) or (#[0] not in ["ts", "level", "service", "msg"] and (#[0] + "=" + ${textOf("#[1]")}) matches ${quote(re)}))`
