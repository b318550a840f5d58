// Terms of clicks, and suggestions. cmd/query/testdata/page.mjs has what the server reads from such terms.

import assert from "node:assert/strict"
import { test } from "node:test"
import { suggest } from "../files/suggest.js"
import { termOf } from "../files/term.js"

test("a value of the API has the term of its types", () => {
	for (const [name, of, want] of /** @type {[string, Counted, string][]} */ ([
		["status", { value: "502", types: ["int"] }, "status=502"],
		["status", { value: "502", types: ["string"] }, 'status="502"'],
		["status", { value: "502", types: ["string", "int"] }, "status=502"],
		["host", { value: "web-1", types: ["string"] }, "host=web-1"],
		["host", { value: "10.0", types: ["string"] }, 'host="10.0"'],
		["a b", { value: "x y", types: ["string"] }, '"a b"="x y"'],
		["ok", { value: "true", types: ["bool"] }, "ok=true"],
		["ok", { value: "true", types: ["string"] }, 'ok="true"'],
		["level", { value: "odd" }, 'level="odd"'],
		["http", { value: "{}", types: ["object"] }, ""],
		["t", { value: "x".repeat(256), types: ["string"] }, ""],
		["t", { value: "", types: [] }, ""],
	]))
		assert.equal(termOf(name, of), want)
	assert.equal(termOf("level", { value: "error" }, true), "-level=error")
})

test("suggestions replace the word that is typed", () => {
	const known = { fields: ["status", "path", "a b"], services: ["web", "orders"] }
	const texts = (/** @type {Partial<Word>} */ word, more = {}) =>
		suggest({ from: 0, name: "", value: "", ...word }, { ...known, ...more }).map((s) => s.text)
	assert.deepEqual(texts({ name: "stat" }), ["status="])
	assert.deepEqual(texts({ name: "status" }), ["status=", "status!=", "status>=", "status<="])
	assert.deepEqual(texts({ name: "b" }), ['"a b"='])
	assert.deepEqual(texts({ name: "level", sign: ">=", value: "wa" }), ["warn"])
	assert.deepEqual(texts({ name: "service", sign: ":", value: "or" }), ["orders"])
	assert.deepEqual(texts({}), [])
	const values = { name: "status", type: "int", present: 1, distinct: 2, capped: false, values: [] }
	assert.deepEqual(
		texts(
			{ name: "status", sign: "=", value: "5" },
			{
				values: {
					...values,
					values: [
						{ value: "502", count: 3, types: ["string"] },
						{ value: "200", count: 1, types: ["int"] },
					],
				},
			},
		),
		['"502"'],
	)
})
