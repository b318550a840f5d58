// The times that people type.

import assert from "node:assert/strict"
import { test } from "node:test"
import { typed } from "../files/time.js"

test("a day by its name, alone and with a clock time", () => {
	for (const utc of [true, false]) {
		for (const [name, back] of /** @type {const} */ ([
			["today", 0],
			["yesterday", 1],
		])) {
			const d = new Date()
			if (utc) (d.setUTCDate(d.getUTCDate() - back), d.setUTCHours(0, 0, 0, 0))
			else (d.setDate(d.getDate() - back), d.setHours(0, 0, 0, 0))
			assert.equal(Date.parse(typed(name, utc)), +d)
			for (const text of [`${name} 14:05`, `${name} at 14:05`, ` ${name}  14:05:00 `]) {
				const at = new Date(d)
				if (utc) at.setUTCHours(14, 5)
				else at.setHours(14, 5)
				assert.equal(Date.parse(typed(text, utc)), +at, text)
			}
		}
	}
	for (const text of ["yesterday 25:00", "yesterdays", "yesterday at", "tomorrow 14:00"])
		assert.throws(() => typed(text, true), /no time/, text)
})
