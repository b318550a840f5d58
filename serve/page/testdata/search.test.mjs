// The language of the search line: what is written is read back, and mistakes are named.

import assert from "node:assert/strict"
import { test } from "node:test"
import { Mistake, parse, print, questionOf, termFor, termOf } from "../files/search.js"
import { start } from "../files/state.js"
import { suggest, wordOf } from "../files/suggest.js"

const range = { from: "2026-11-20T00:00:00Z", to: "2026-11-21T00:00:00Z" }
/** @param {string} q @param {Partial<View>} [more] */
const question = (q, more) => questionOf({ ...start, q, ...more }, range)

let seed = 1
const random = (/** @type {number} */ n) => (seed = (seed * 48271) % 2147483647) % n
const one = (/** @type {any[]} */ list) => list[random(list.length)]
const pieces = [
	"a",
	"Zz",
	" ",
	"\t",
	"\n",
	'"',
	"\\",
	"\\n",
	"/",
	"-",
	"=",
	"!=",
	">",
	"<=",
	"*",
	"(",
	")",
	".",
	",",
	"'",
	"`",
	"$x",
	"{",
	"where:(",
	"level",
	"7",
	"1e3",
	"true",
	"null",
	"é",
	"日",
	"😀",
	"\u0000",
	"\u2028",
	"\ud800",
	"#",
	"@",
	"~",
]
const text = () => Array.from({ length: 1 + random(5) }, () => one(pieces)).join("")
const word = () =>
	one(["x", "200", "-5", "1e21", "true", "pre*", "*", "a,b", "/api/x", 'a"b', "web-1", "~"].slice(0, -1))
const term = () => {
	const head = { not: !random(2) }
	switch (random(5)) {
		case 0:
			return { ...head, kind: "text", value: text() }
		case 1:
			return { ...head, kind: "expr", value: one(["a", "^a b$", "\\d+", "a\\\\", "(a|b)", '"', "[^x]"]) }
		case 2:
			return { ...head, kind: "where", value: one(["a", 'a == ")"', "(a) or (b)", "a == ')('", 'x matches "\\\\)"']) }
		default:
			return {
				...head,
				kind: "field",
				name: one(["status", "a.b", "a b", "größe", "-x", 'q"', "=", "a-b.c", "$x"]),
				op: "=",
				...one([
					{ form: "text", value: text() },
					{ form: "text", value: "" },
					{ form: "word", value: word() },
					{ form: "re", value: "^a /b?$".replace("/", "") },
				]),
			}
	}
}

test("parse takes back what print writes", () => {
	for (let i = 0; i < 5000; i++) {
		const terms = Array.from({ length: 1 + random(4) }, term),
			line = terms.map(print).join(one([" ", "  ", "\t"]))
		const got = parse(line).map(({ begin, ...t }) => t)
		assert.deepEqual(
			got,
			terms.map((t) => ({ ...t })),
			line,
		)
	}
})

test("a term for a value is one term, and other values have other terms", () => {
	const values = [
		"200",
		200,
		"true",
		true,
		"null",
		null,
		"",
		" ",
		"a b",
		"a,b",
		"*",
		"/re/",
		"-x",
		'"',
		"\\",
		"\n",
		"\u0000",
		1e21,
		0.1,
		-5,
		[1],
		{},
		"where:(",
		"x=y",
		"200 ",
	]
	const seen = new Map()
	for (const name of ["status", "level", "service", "a b", "in"])
		for (const value of name === "level" ? values.filter((v) => typeof v === "string") : values)
			for (const out of [false, true]) {
				const line = termFor(name, value, out),
					terms = parse(line)
				assert.equal(terms.length, 1, line)
				assert.equal(terms[0].not, out, line)
				assert.ok(!seen.has(line), `${line} is for ${seen.get(line)} and ${value}`)
				seen.set(line, value)
				question(line)
			}
	assert.equal(termFor("status", undefined), "status=null")
	assert.equal(termOf("status", "200", true), "-status=200")
	assert.equal(termOf("host", "web-1"), "host=web-1")
})

test("mistakes have a column, and say what to write", () => {
	for (const [line, column, says] of /** @type {[string, number, RegExp][]} */ ([
		['basket "no end', 7, /write "two words"/],
		["status>", 7, /a value is missing/],
		["status=", 7, /write ""/],
		["took>>3", 5, /is no number/],
		['a "b"c', 5, /blank/],
		["a=~b", 2, /=\/re\//],
		['""', 0, /leave it out/],
		["x where:(a == 1", 15, /\) is missing/],
		["x level=loud", 2, /level=error,warn/],
		["level=error level=warn", 12, /no level/],
		["level>other", 0, /levels are/],
		["f>=x", 3, /">?"?x"/],
	]))
		assert.throws(
			() => question(line),
			(err) =>
				(err instanceof Mistake && err.column === column && says.test(err.message)) ||
				assert.fail(`${line}: ${err} ${err.column}`),
		)
	assert.throws(() => question("", { chips: [{ text: 'a="', off: false }] }), /in the filter a=": /)
	question("", { chips: [{ text: 'a="', off: true }] })
})

test("levels and services go to the index", () => {
	assert.deepEqual(question("level>=warn").levels, ["warn+"])
	assert.deepEqual(question("level>=info -level=error").levels, ["info", "warn", "critical"])
	assert.deepEqual(question("level=Warning,fatal").levels, ["warn", "critical"])
	assert.deepEqual(question("-level=other").levels, ["trace+"])
	assert.deepEqual(question("level>=trace level!=other").where, [])
	assert.deepEqual(question("service=web service=db-*").services, ["web", "db-*"])
	assert.deepEqual(question("service=web", { services: ["web", "db"] }), { ...question(""), services: ["web"] })
	assert.deepEqual(question("x", { logql: "{}", services: ["web"] }).texts, [])
})

test("words that look like more are texts", () => {
	for (const line of ["/api/users", "https://x.example/y?a=b", "-", "<div>", "a:b", "(x)", "{a=b}", "/health", "a/b/"])
		assert.deepEqual(question(line).texts, [line])
	assert.deepEqual(question('"a=b" "-x" "/re/"').texts, ["a=b", "-x", "/re/"])
	assert.deepEqual(question('"C:\\path\\new" "\\Users\\Tom\\u12"').texts, ["C:\\path\new", "\\Users\\Tom\\u12"])
	assert.deepEqual(question("f=1e999").where, ['f == "1e999"'])
})

test("suggestions replace the word before the caret", () => {
	const known = { fields: ["status", "path", "a b"], services: ["web", "orders"], past: ["basket status=502"] }
	const texts = (/** @type {string} */ line, more = {}) =>
		suggest(line, { ...known, ...more }).map((s) => line.slice(0, s.from) + s.text)
	assert.deepEqual(texts("x stat"), ["x status="])
	assert.deepEqual(texts("basket"), ["basket status=502"])
	assert.deepEqual(texts("-level>=wa"), ["-level>=warn"])
	assert.deepEqual(texts("service=web,or"), ["service=web,orders"])
	assert.deepEqual(texts("a b"), ['a "a b"='])
	const values = {
		name: "status",
		type: "int",
		present: 1,
		distinct: 2,
		capped: false,
		values: [
			{ value: "502", count: 3, types: ["int"] },
			{ value: "200", count: 1, types: ["string", "int"] },
		],
	}
	assert.deepEqual(texts("status=5", { values }), ["status=502"])
	assert.deepEqual(
		texts("status=", {
			values: { ...values, values: [{ value: "502", count: 3, types: ["string"] }, values.values[1]] },
		}),
		['status="502"', "status=200"],
	)
	assert.equal(wordOf('x "a b"=c').name, "a b")
})
