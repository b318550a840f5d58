// The values in a stored line, which has no blanks between them. Only what is asked for is read, and
// numbers keep their digits.

/** Where a string ends, from its first character on. @param {string} line @param {number} at */
function quote(line, at) {
	for (;; at++) {
		at = line.indexOf('"', at)
		if (at < 0) return line.length
		let back = at
		while (line[back - 1] === "\\") back--
		if ((at - back) % 2 === 0) return at
	}
}

/** Where a value ends. @param {string} line @param {number} at */
function end(line, at) {
	const next = /["{}[\],]/g
	next.lastIndex = at
	let deep = 0
	for (let m; (m = next.exec(line)); ) {
		const c = m[0]
		if (c === '"') next.lastIndex = quote(line, m.index + 1) + 1
		else if (c === "{" || c === "[") deep++
		else if (c === "," ? !deep : !deep--) return m.index
	}
	return line.length
}

export const isBranch = (/** @type {string} */ raw) => /^[{[]./.test(raw) && raw.length > 2

/** A string without quotes and escapes; other values as they are. @param {string} raw @returns {string} */
export const decode = (raw) => (raw[0] === '"' ? JSON.parse(raw) : raw)

/** @param {string} raw @returns {Value} */
export const root = (raw) => ({ raw, name: "", label: "", listed: false, depth: 0, at: 1, n: 0 })

/** The members of an object or a list, from a place on; each has the place of the next. @param {Value} of @returns {Generator<Value>} */
export function* members({ raw: text, name: path, listed, depth }, at = 1, n = 0) {
	const list = text[0] === "["
	while (at < text.length - 1) {
		let label = String(n++)
		if (!list) {
			const to = quote(text, at + 1) + 1
			label = decode(text.slice(at, to))
			at = to + 1
		}
		const to = end(text, at), raw = text.slice(at, to)
		at = to + 1
		yield { raw, name: list ? `${path}[${label}]` : path ? `${path}.${label}` : label, label, listed: listed || list, depth: depth + 1, at, n }
	}
}

/** The values below one that have none below them. @param {Value} of @returns {Generator<Value>} */
export function* leaves(of) {
	for (const m of members(of)) {
		if (isBranch(m.raw) && m.depth < 50) yield* leaves(m)
		else yield m
	}
}
