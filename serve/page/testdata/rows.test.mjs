// What a row shows of a stored line: as much as a parser would, made safe, and no more than 4 KiB.

import assert from "node:assert/strict"
import { test } from "node:test"
import { clean, compare, fieldOf, marked, merge, nameOf, partsOf } from "../files/rows.js"

const head = '{"ts":"2026-11-26T17:30:59.123456789Z","level":"info","service":"web","msg":'
const row = (msg, more = "", id = "1795714259123456789-00000000000000000000000000000001-0") => ({
	id,
	line: `${head}${JSON.stringify(msg)}${more}}`,
})

test("the parts of a line are those of the record", () => {
	const msg = 'say "hi" \\ {"a":[1,2]},\t\u00e9 \u{1f600}',
		r = row(msg, ',"n":12345678901234567890,"deep":{"a":{"b":"},\\"x"},"list":["]",{}]},"empty":"","k\\"ey":true')
	const p = partsOf(r)
	assert.equal(p.msg, msg.replace("\t", "→"))
	assert.equal(p.rest, 'n=12345678901234567890 deep={"a":{"b":"},\\"x"},"list":["]",{}]} empty= k"ey=true')
	assert.equal(p.long, false)
	assert.equal(nameOf(r), "web/" + r.id)
})

test("a field is found by its name, and in objects by a path", () => {
	const r = row("m", ',"a.b":"flat","a":{"b":"deep","c":{"d":"x"}},"empty":"","constructor":"c"')
	assert.deepEqual(
		["a.b", "a.c.d", "empty", "none", "a.none", "constructor", "service", "toString"].map((f) => fieldOf(r, f)),
		["flat", "x", "", undefined, undefined, "c", "web", undefined],
	)
})

test("at most 4 KiB of a row are read, wherever it is cut", () => {
	for (const unit of ['"', "\\", "\n", "\u0001", "x", "\u{1f600}", 'ab\\"']) {
		for (let shift = 0; shift < 8; shift++) {
			const p = partsOf(row("y".repeat(shift) + unit.repeat(100_000), ',"n":1'))
			assert.ok(
				p.long && p.msg.length > 600 && p.msg.length + p.rest.length <= 4096,
				`${JSON.stringify(unit)} ${shift}: ${p.msg.length}`,
			)
		}
	}
	const wide = row("wide", Array.from({ length: 10_000 }, (_, i) => `,"field_${i}":"value ${i}"`).join(""))
	assert.ok(partsOf(wide).rest.length <= 4096 && partsOf(wide).long)
	assert.equal(fieldOf(wide, "field_9999"), "value 9999")
})

test("a field behind a long one is found", () => {
	for (const unit of ['"', "\\", "x", "{", '\\"', "\n"])
		assert.equal(fieldOf(row(unit.repeat(900_000), ',"n":1'), "n"), "1")
})

test("nothing in a text is hidden, and nothing turns others round or climbs over them", () => {
	assert.equal(clean("a\0b\x07\x7f\x85"), "a␀b␇␡⟨U+0085⟩")
	assert.equal(clean("\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x1b\\ \x1b(B."), "red link .")
	assert.equal(clean("one\ntwo\r\nthree\tfour"), "one↵two↵three→four")
	assert.equal(
		clean("\u202egpj.exe\u202c \u2066x\u2069 \u200f\u061c\ufeff"),
		"⟨RLO⟩gpj.exe⟨PDF⟩ ⟨LRI⟩x⟨PDI⟩ ⟨RLM⟩⟨ALM⟩⟨U+FEFF⟩",
	)
	assert.equal(clean("a" + "\u0301".repeat(40_000) + "b"), "a" + "\u0301".repeat(4) + "b")
})

test("matches are marked, as plain text", () => {
	const shown = (...args) =>
		marked(...args)
			.map((p) => (typeof p === "string" ? p : `[${p.props.children}]`))
			.join("")
	assert.equal(shown("GET /a.b?x=.*", [".*", "/a"], false), "GET [/a].b?x=[.*]")
	assert.equal(shown("Basket basket", ["BASKET"], true), "[Basket] [basket]")
	assert.equal(shown("Basket", ["BASKET"], false), "Basket")
	assert.equal(shown("aaa", ["a", "aa", ""], false), "[aa][a]")
	assert.equal(shown("\u0130x \u0130x", ["x"], true), "\u0130[x] \u0130[x]")
})

test("records are in the order of time, origin and index, each once", () => {
	const o = "0".repeat(31),
		ids = [`999-${o}1-5`, `1000-${o}1-9`, `1000-${o}1-10`, `1000-${o}2-0`, `1001-${o}0-0`]
	assert.deepEqual([...ids].reverse().sort(compare), ids)
	const rows = ids.map((id) => ({ id, line: "" })),
		names = (list) => list.map((r) => r.id)
	assert.deepEqual(
		names(merge([rows[0], rows[2]], [rows[4], rows[2], rows[1]], true)),
		[0, 1, 2, 4].map((i) => ids[i]),
	)
	assert.deepEqual(
		names(merge([rows[2], rows[0]], [rows[3], rows[4]], false)),
		[4, 3, 2, 0].map((i) => ids[i]),
	)
	assert.deepEqual(names(merge([], [rows[1], rows[0]], false)), [ids[1], ids[0]])
})
