// The language of the search line and of filters, and the Question that they make. All terms must
// hold. "-" before one turns it round, and keeps the records without the field.
//
//	word  "two words"  /re/      is in a text of the record; -/re/: in none of its fields
//	field=502  field!=502        the number or the text; so are true, false and null
//	field="502"                  the text alone
//	field=pre*  field=/re/       the value as text; field=* is any value
//	field>10  >=  <  <=          numbers, also as texts; field>"b" compares texts
//	level=error,warn  level>=warn  service=web,db-*
//	where:(status > 499 or ok)   as in logquery --where
//
// Quotes take a name or a text as it is, as in "a=b"; \" \\ \n \t and \u00e9 are escapes there.

export class Mistake extends Error {
	/** @param {string} text @param {number} column from 0 */
	constructor(text, column) {
		super(text)
		this.column = column
	}
}

const ranks = ["trace", "debug", "info", "warn", "error", "critical"]
export const levelNames = [...ranks, "other"]
const aliases = /** @type {Record<string, string>} */ ({
	warning: "warn",
	err: "error",
	crit: "critical",
	fatal: "critical",
})
const isNumber = (v = "") =>
	/^-?(0|[1-9][\d_]*)(\.\d+)?(e[+-]?\d+)?$/i.test(v) && isFinite(Number(v.replaceAll("_", "")))
/** @type {Fn} */
const number = (v) => (/^-?\d{1,18}(\.\d+)?$/.test((v = v.replaceAll("_", ""))) ? v : Number(v).toExponential())
/** @type {Fn} */
export const quote = (v) => JSON.stringify(v.replace(/\p{Surrogate}/gu, "\ufffd"))
/** @type {Fn} RE2 for a text with * in it. */
export const glob = (v) => v.replace(/[\\^$.|?+()[\]{}]/g, "\\$&").replaceAll("*", ".*")

/** @param {string} text @returns {Term[]} */
export function parse(text) {
	let at = 0
	/** @param {RegExp} re sticky @param {string} [or] the mistake if it is not there */
	const take = (re, or) => {
		re.lastIndex = at
		const [all, part = all] = re.exec(text) ?? []
		if (all === undefined && or) throw new Mistake(or, at)
		at += all?.length ?? 0
		return /** @type {string} */ (part)
	}
	const quoted = () =>
		text[at] !== '"'
			? undefined
			: JSON.parse(
					`"${take(/"((?:[^"\\]|\\[^])*)"/y, 'this quote has no end: write "two words"').replace(/(\\(?:["\\bfnrt]|u[\da-fA-F]{4}))|[\\\0-\x1f]/g, (c, known) => known ?? JSON.stringify(c).slice(1, -1))}"`,
				)
	// A slash within a word is no end: /api/users is a text.
	const regex = () => take(/\/((?:[^/\\]|\\[^])+)\/(?!\S)/y)
	/** @returns {Omit<Term, "begin">} */
	const term = (not = !!take(/-(?=\S)/y), start = at) => {
		if (take(/where:\(/y)) {
			for (let depth = 1, from = at; ;) {
				const part = take(/"(?:[^"\\]|\\[^])*"|'(?:[^'\\]|\\[^])*'|[^]/y, "a ) is missing: write where:(status > 499)")
				depth += part === "(" ? 1 : part === ")" ? -1 : 0
				if (!depth) return { kind: "where", not, value: text.slice(from, at - 1) }
			}
		}
		const re = regex()
		if (re) return { kind: "expr", not, value: re }
		const exact = quoted(),
			name = exact ?? take(/[\p{L}\p{N}_.@$#-]+/uy),
			sign = name && take(/!=|==?|[<>]=?/y)
		if (!sign) {
			if (exact === undefined) at = start
			return { kind: "text", not, value: exact ?? take(/\S+/y) }
		}
		const op = /=$/.test(sign) && !/[<>]/.test(sign) ? "=" : sign,
			field = { kind: /** @type {const} */ ("field"), not: not !== (sign === "!="), name, op },
			from = at,
			match = op === "=" && regex()
		if (match) return { ...field, form: "re", value: match }
		const value = quoted()
		if (value !== undefined) return { ...field, form: "text", value }
		const word = take(
			/\S+/y,
			`a value is missing behind ${sign}: write "" for an empty one, and quotes around a text with ${sign}`,
		)
		if (word[0] === "~") throw new Mistake("for an expression write =/re/", from)
		if (op !== "=" && !/^(level|ts)$/.test(name) && !isNumber(word))
			throw new Mistake(
				`${word} is no number: write ${sign}"${word}" to compare texts, and quotes around a text with ${sign}`,
				from,
			)
		return { ...field, form: "word", value: word }
	}
	/** @type {Term[]} */
	const terms = []
	for (take(/\s*/y); at < text.length; take(/\s+/y, "a blank is missing here")) {
		const one = { begin: at, ...term() }
		if (!one.value && one.kind !== "field")
			throw new Mistake("an empty text is in every record: leave it out", one.begin)
		levelsOf(one)
		terms.push(one)
		if (at === text.length) break
	}
	return terms
}

/** @type {Fn} */
export const nameOf = (name) => (/^[\p{L}\p{N}_.@$#][\p{L}\p{N}_.@$#-]*$/u.test(name) ? name : JSON.stringify(name))
export const isConstant = (v = "") => isNumber(v) || /^(true|false|null)$/.test(v)

/** The text of a term, which parse takes back. @param {Omit<Term, "begin">} term */
export function print({ kind, not, name = "", op, form, value }) {
	const re = kind === "expr" || form === "re" ? `/${value.replace(/\\[^]|\//g, (c) => (c === "/" ? "\\/" : c))}/` : ""
	return (
		(not ? "-" : "") +
		(kind === "where"
			? `where:(${value})`
			: kind === "field"
				? nameOf(name) + op + (re || (form === "text" ? JSON.stringify(value) : value))
				: re || (/^[\p{L}\p{N}_]+$/u.test(value) ? value : JSON.stringify(value)))
	)
}

/**
 * The term that wants records with a value in a field, or those without it. The text "200" is not
 * the number 200; termOf is for a value that may be either.
 * @param {string} name @param {unknown} value of JSON; undefined is null @param {boolean} [not]
 */
export function termFor(name, value = null, not = false) {
	if (value instanceof Object) return print({ kind: "where", not, value: `${path(name)} == ${JSON.stringify(value)}` })
	const text =
		typeof value === "string" &&
		(!/^[\p{L}\p{N}_.][\p{L}\p{N}_.:@/-]*$/u.test(value) ||
			isConstant(value) ||
			(name === "level" && !levelNames.includes(value)))
	return print({ kind: "field", not, name, op: "=", form: text ? "text" : "word", value: String(value) })
}

/** @param {string} name @param {string | undefined} text @param {boolean} [not] */
export const termOf = (name, text, not = false) =>
	text !== undefined && isConstant(text)
		? print({ kind: "field", not, name, op: "=", form: "word", value: text })
		: termFor(name, text, not)

/**
 * The term of a value of the API, by the types that it has in records; "" for one that is cut or no value of its own.
 * @param {string} name
 * @param {Counted} of
 * @param {boolean} [not]
 */
export function termOfCounted(name, { value, types = ["string", "int"] }, not = false) {
	if (!types[0] || types.some((t) => t === "object" || t === "array") || new TextEncoder().encode(value).length >= 256)
		return ""
	if (types.length > 1) return termOf(name, value, not)
	return types[0] === "string"
		? termFor(name, value, not)
		: print({ kind: "field", not, name, op: "=", form: "word", value })
}

/** @type {Fn} The field a.b in a condition: the one of that name, or else b in the object a. */
function path(name) {
	const [first, ...rest] = name.split("."),
		all = [first, ...rest].map((p) => `[${quote(p)}]`)
	if (
		/^[\p{L}_][\p{L}\p{Nd}_]*$/u.test(first) &&
		!/^([A-Z]+|[Tt]rue|[Ff]alse|[Nn]ull|[Nn]il|None|undefined|in|not|and|or|let|if|else|matches|contains|startsWith|endsWith)$/.test(
			first,
		)
	)
		return rest.every((p) => /^[a-z_]\w*$/i.test(p)) ? name : `${first}[${quote(rest.join("."))}]`
	return rest.length ? `($env[${quote(name)}] ?? $env${all.join("?.")})` : "$env" + all
}

/** The condition of a term of a field. @param {Term} term */
function where({ name = "", op, not, form, value }) {
	const f = path(name),
		is = not ? "!=" : "==",
		all = (c = "") => (not ? `not (${c})` : c)
	const matches = (re = "") =>
		all(`${f} != nil and (type(${f}) == "string" ? ${f} : toJSON(${f})) matches ${quote(re)}`)
	if (op !== "=")
		return (
			(not ? `${f} == nil or ` : "") +
			all(form === "text" || name === "ts" ? `${f} ${op} ${quote(value)}` : `float(${f}) ${op} ${number(value)}`)
		)
	if (form === "re") return matches(value)
	if (form === "text") return `${f} ${is} ${quote(value)}`
	if (value === "*") return `${f} ${not ? "==" : "!="} nil`
	if (value.includes("*")) return matches(`(?s)^${glob(value)}$`)
	if (isNumber(value)) return all(`${f} in [${number(value)}, ${quote(value)}]`)
	if (/^(\[\]|\{\})$/.test(value)) return `${f} ${is} ${value}`
	return /^(true|false)$/.test(value)
		? all(`${f} in [${value}, "${value}"]`)
		: `${f} ${is} ${value === "null" ? "nil" : quote(value)}`
}

/** The levels that a term leaves; undefined: it is none of levels. @param {Term} term @returns {Texts | undefined} */
export function levelsOf({ name, op = "=", not, form, value, begin }) {
	if (name !== "level" || form === "re" || /\*|^null$/.test(value) || (form === "text" && !levelNames.includes(value)))
		return
	const found = value
		.toLowerCase()
		.split(",")
		.flatMap((word) => {
			const short = word.replace(/\+$/, ""),
				level = aliases[short] ?? short,
				rank = ranks.indexOf(level),
				of = short === word ? op : ">="
			if (of === "=" ? !levelNames.includes(level) : rank < 0)
				throw new Mistake(
					`no level "${word}": write level=error,warn or level>=warn; levels are ${levelNames.join(", ")}`,
					begin,
				)
			return of === "="
				? level
				: ranks.filter((_, i) =>
						of[0] === ">" ? i > rank || (of[1] && i === rank) : i < rank || (of[1] && i === rank),
					)
		})
	return levelNames.filter((l) => found.includes(l) !== not)
}

/** @param {Texts} list */
const inServices = (list) => `service matches ${quote(`^(${list.map(glob).join("|").replaceAll("\\?", ".")})$`)}`

/** The terms of a view that count. @param {View} view */
export const termsOf = (view) =>
	parse(view.q).concat(
		...view.chips
			.filter((c) => !c.off)
			.map(({ text }) => {
				try {
					return parse(text)
				} catch (err) {
					throw new Mistake(
						`in the filter ${text}: ${/** @type {Mistake} */ (err).message}`,
						/** @type {Mistake} */ (err).column,
					)
				}
			}),
	)

/**
 * The question of a view about a range of time. Terms service=… are a union, within the services
 * of the view.
 * @param {View} view @param {Times} range @returns {Question}
 */
export function questionOf(view, range) {
	/** @type {Question} */
	const q = {
		services: view.services,
		...range,
		levels: [],
		texts: [],
		without: [],
		exprs: [],
		where: [],
		fold: view.fold,
		logql: view.logql,
	}
	if (q.logql) return q
	let left = levelNames
	/** @type {Texts} */
	const services = []
	for (const term of termsOf(view)) {
		const { kind, not, name, form, value } = term,
			levels = levelsOf(term)
		if (kind === "text") (not ? q.without : q.texts).push(value)
		else if (kind === "where") q.where.push(not ? `not (${value})` : value)
		else if (kind === "expr")
			not
				? q.where.push(
						`not any(values($env), type(#) == "string" and # matches ${quote((view.fold ? "(?i)" : "") + value)})`,
					)
				: q.exprs.push(value)
		else if (levels) {
			left = left.filter((l) => levels.includes(l))
			if (!left.length) throw new Mistake("this leaves no level: write level=error,warn for one of two", term.begin)
		} else if (name === "service" && form !== "re" && value !== "null")
			not ? q.where.push(`not (${inServices(value.split(","))})`) : services.push(...value.split(","))
		else q.where.push(where(term))
	}
	if (services.length) {
		if (q.services.length && !services.every((s) => q.services.includes(s))) q.where.push(inServices(q.services))
		q.services = services
	}
	if (left.length < levelNames.length)
		q.levels =
			left.length > 1 && left.at(-1) === "critical" && left.length === 6 - ranks.indexOf(left[0])
				? [left[0] + "+"]
				: left
	return q
}

/** A refusal of the server, at the term that it is about. @param {string} text @param {Error} err */
export function placed(text, err) {
	const what = err.message.replace(
			/; (to search text as it is: -F$|contains is for a part.*)/s,
			"; quotes are for a text as it is",
		),
		part = /`(.+)`/.exec(what)?.[1] ?? "\0"
	try {
		const term = parse(text).find((t) => (t.kind === "where" ? /^where: column/.test(what) : t.value.includes(part)))
		return term
			? new Mistake(
					what.replace(/^where: column \d+: /, (c) => (term.kind === "where" ? c : "")),
					term.begin,
				)
			: err
	} catch {
		return err
	}
}
