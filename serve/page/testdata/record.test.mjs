// The tree of a record shows what is stored, its fields become filters, and patterns get their marks.

import assert from "node:assert/strict"
import { test } from "node:test"
import { linesOf, second } from "../files/patterns.js"
import { find, ids, leaves, root, visible } from "../files/record.js"
import { start } from "../files/state.js"
import { termFor } from "../files/term.js"

const read = (/** @type {string} */ line) => [...leaves(root(line))]
const names = (/** @type {string} */ line) => read(line).map((m) => `${m.name}=${m.raw}`)

test("numbers keep their digits, and keys come as often as they stand", () => {
	assert.deepEqual(names('{"a":12345678901234567890,"b":1.0,"c":-1e-5,"a":1}'), [
		"a=12345678901234567890",
		"b=1.0",
		"c=-1e-5",
		"a=1",
	])
})

test("brackets, commas and quotes in texts divide nothing", () => {
	const line = JSON.stringify({
		a: '},"b":[',
		'k"ey\\': '\\"\\\\',
		list: ["]", { x: "{" }, [], {}],
		deep: { "a.b": null, e: "" },
	})
	assert.deepEqual(names(line), [
		'a="},\\"b\\":["',
		'k"ey\\="\\\\\\"\\\\\\\\"',
		'list[0]="]"',
		'list[1].x="{"',
		"list[2]=[]",
		"list[3]={}",
		"deep.a.b=null",
		'deep.e=""',
	])
	assert.deepEqual(
		read(line).map((m) => m.listed),
		[false, false, true, true, true, true, false, false],
	)
})

test("every value of a random object is found where JSON.parse has it", () => {
	let seed = 7
	const random = (/** @type {number} */ n) => (seed = (seed * 48271) % 2147483647) % n
	const text = () =>
		Array.from(
			{ length: random(6) },
			() => ['"', "\\", "{", "]", ",", ":", "a", "é", "😀", "\n", "\u0000", " "][random(12)],
		).join("")
	/** @returns {any} */
	const value = (depth = 0) =>
		[
			text,
			() => random(1e9) - 5e8,
			() => null,
			() => true,
			() => Array.from({ length: 1 + random(3) }, () => value(depth + 1)),
			() => object(depth + 1),
		][random(depth > 3 ? 4 : 6)]()
	const object = (depth = 0) =>
		Object.fromEntries(Array.from({ length: 1 + random(4) }, () => ["k" + text(), value(depth)]))
	const flat = (/** @type {any} */ v) => (v && typeof v === "object" ? Object.values(v).flatMap(flat) : [v])
	for (let i = 0; i < 2000; i++) {
		const o = object()
		assert.deepEqual(
			read(JSON.stringify(o)).map((m) => JSON.parse(m.raw)),
			flat(o),
		)
	}
})

test("a very deep value does not end the page", () => {
	assert.equal(read(`{"a":${"[".repeat(100_000)}1${"]".repeat(100_000)}}`).length, 1)
})

test("fields that name a request are offered, those of requests first", () => {
	const line =
		'{"ts":"2026-11-20T00:00:00Z","service":"web","user_id":12345678,"paid":"12345678","id":"7","trace":"a9c0ffee00","ctx":{"request_id":"req-8f2a91"},"list":[{"span_id":"a1b2c3d4e5"}],"session":"nodigits","orderId":"A-1234567"}'
	assert.deepEqual(
		ids(line).map((m) => m.name),
		["ctx.request_id", "user_id", "trace", "orderId"],
	)
})

test("a value becomes a filter for itself", () => {
	const term = (/** @type {string} */ line, not = false) => {
		const { name, raw } = read(line)[0]
		return termFor(name, raw, not)
	}
	assert.equal(term('{"a":{"b":"x y"}}'), 'a.b="x y"')
	assert.equal(term('{"n":12345678901234567890}'), "n=12345678901234567890")
	assert.equal(term('{"n":null}', true), "-n=null")
	assert.equal(term('{"level":"error"}'), "level=error")
	assert.equal(term('{"level":"odd"}'), 'level="odd"')
})

test("texts are shown in lines, without colours and with signs for controls", () => {
	assert.equal(visible("Error: x\r\n\tat \x1b[31my\x1b[0m\n\0"), "Error: x\n\tat y\n␀")
	assert.ok(!visible("a\u202eb").includes("\u202e"))
})

test("a record is found in the context first, with the one before it", () => {
	const row = (/** @type {number} */ n) => ({
			id: `${n}-a-0`,
			line: `{"ts":"","level":"info","service":"web","msg":""}`,
		}),
		near = [1, 2, 3].map(row),
		rows = [9, 8, 7, 2].map(row)
	const look = (/** @type {number} */ n, oldest = false) =>
		find(/** @type {any} */ ({ near, rows }), { ...start, sel: `web/${n}-a-0`, oldest })
	assert.deepEqual(look(2), [near[1], near[0]])
	assert.deepEqual(look(8), [rows[1], rows[2]])
	assert.deepEqual(look(8, true), [rows[1], rows[0]])
	assert.deepEqual(look(5), [])
})

test("the second window is of the same length, and ends where it must", () => {
	const range = { from: "2026-11-20T10:00:00.000000000Z", to: "2026-11-20T11:00:00.000000000Z" },
		of = (/** @type {string} */ against, r = range) => second({ ...start, against }, r)
	assert.deepEqual(of("before"), ["2026-11-20T09:00:00.000000000Z", range.from])
	assert.deepEqual(of("yesterday"), ["2026-11-19T10:00:00.000000000Z", "2026-11-19T11:00:00.000000000Z"])
	assert.deepEqual(of("A/B"), ["A", "B"])
	assert.deepEqual(of(""), [])
	assert.deepEqual(of("before", { from: "", to: range.to }), [])
	assert.deepEqual(of("yesterday", { from: "", to: range.to }), [])
})

test("patterns get the mark of their change", () => {
	const p = (/** @type {string} */ id, count = 1) => /** @type {any} */ ({ id, count })
	const lines = linesOf(
		/** @type {any} */ ({
			patterns: [p("a"), p("b", 9), p("c")],
			against: { new: ["a"], gone: [p("d", 5)], more: [{ id: "b", count: 9, before: 2 }], less: [] },
		}),
	)
	assert.deepEqual(
		lines.map((l) => [l.id, l.mark, l.was, l.count]),
		[
			["a", "new", 0, 1],
			["b", "more", 2, 9],
			["c", "", 0, 1],
			["d", "gone", 0, 5],
		],
	)
	assert.deepEqual(
		linesOf(/** @type {any} */ ({ patterns: [p("a")] })).map((l) => l.mark),
		[""],
	)
})
