// JSON read as it is stored, a part at a time: numbers keep their digits, a key may come twice, and
// what is not shown is passed over.

/** The place behind the string that begins at i. @param {string} text @param {number} i */
function quoted(text, i) {
	for (;;) {
		i = text.indexOf('"', i + 1)
		if (i < 0) return text.length
		let n = i
		while (text[n - 1] === "\\") n--
		if ((i - n) % 2 === 0) return i + 1
	}
}

/** The place behind the value that begins at i. @param {string} text @param {number} i */
function ending(text, i) {
	if (text[i] === '"') return quoted(text, i)
	const next = isBranch(text[i]) ? /["{}[\]]/g : /[\s,}\]]/g
	next.lastIndex = i
	let depth = 0
	for (let m; (m = next.exec(text)); ) {
		if (m[0] === '"') next.lastIndex = quoted(text, m.index)
		else if (isBranch(m[0])) depth++
		else if (--depth <= 0) return m.index + (depth ? 0 : 1)
	}
	return text.length
}

/** @param {string} text @param {number} i */
function skip(text, i) {
	while (text.charCodeAt(i) <= 32) i++
	return i
}

/** @param {string} raw */
export const isBranch = (raw) => /^[{[]/.test(raw)

/** A string without quotes and escapes; other values as they are. @param {string} raw @returns {string} */
export const decode = (raw) => (raw[0] === '"' ? JSON.parse(raw) : raw)

/**
 * The members of an object or a list; from a place on, which the member before it has as `at`, `n`.
 * @param {Value} of
 * @returns {Generator<Value>}
 */
export function* members({ raw: text, name: path, listed, depth }, at = 1, n = 0) {
	const list = text[0] === "["
	for (at = skip(text, at); at < text.length && text[at] !== "}" && text[at] !== "]"; ) {
		let label = String(n++), end = at
		if (!list) {
			end = quoted(text, at)
			label = decode(text.slice(at, end))
			at = skip(text, skip(text, end) + 1)
		}
		end = ending(text, at)
		const raw = text.slice(at, end)
		at = skip(text, end)
		if (text[at] === ",") at = skip(text, at + 1)
		yield { label, raw, name: list ? `${path}[${label}]` : path ? `${path}.${label}` : label, listed: listed || list, depth: depth + 1, at, n }
	}
}

/** The root of a stored line. @param {string} raw @returns {Value} */
export const root = (raw) => ({ raw, name: "", label: "", listed: false, depth: 0, at: 1, n: 0 })

/** The values below a node. @param {Value} node @returns {Generator<Value>} */
export function* leaves(node) {
	for (const m of members(node)) {
		if (isBranch(m.raw) && m.depth < 50) yield* leaves(m)
		else yield m
	}
}
