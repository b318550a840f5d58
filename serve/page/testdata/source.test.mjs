// Answers as they come over the wire: in parts, cut, and without an end.

import assert from "node:assert/strict"
import { test } from "node:test"
import { Failure, joined, outcomeOf, slices } from "../files/source.js"

/** The lines of an answer whose body has some chunks. */
async function linesOf(/** @type {Iterable<Uint8Array>} */ chunks) {
	const all = []
	for await (const lines of slices(new Response(ReadableStream.from(chunks)), new AbortController().signal))
		all.push(...lines)
	return all
}

test("lines are whole, wherever the network cuts them", async () => {
	const bytes = new TextEncoder().encode("é1\n😀22\n\n3\n")
	for (let at = 0; at <= bytes.length; at++)
		assert.deepEqual(await linesOf([bytes.slice(0, at), bytes.slice(at)]), ["é1", "😀22", "3"], String(at))
})

test("an answer that is nothing has no lines, and one that is cut within a line is an error", async () => {
	assert.deepEqual(await linesOf([]), [])
	await assert.rejects(
		linesOf([new TextEncoder().encode("one\ntw")]),
		(err) => err instanceof Failure && /cut off within a line/.test(err.message),
	)
})

test("a line without an end is given up, and not kept", async () => {
	let sent = 0
	const endless = function* () {
		for (const chunk = new Uint8Array(1 << 20).fill(120); sent < 1024; sent++) yield chunk
	}
	await assert.rejects(linesOf(endless()), (err) => err instanceof Failure && /without an end/.test(err.message))
	assert.ok(sent < 100, `${sent} MiB were read`)
})

test("what several parts of an answer tell counts once, and the rest adds up", () => {
	const gap = (/** @type {string} */ service) => ({ service, records: 30, from: "a", to: "b" })
	const end = (/** @type {any} */ more) => ({
		complete: true,
		more: true,
		records: 1,
		problems: [],
		warnings: [],
		notes: [],
		gaps: [],
		cost: { requests: 1, bytes: 10 },
		...more,
	})
	const first = end({ complete: false, problems: ["web"], gaps: [gap("web"), gap("db")] }),
		second = end({ more: false, problems: ["web", "auth"], gaps: [gap("web"), gap("auth")] })
	assert.equal(joined(undefined, first), first)
	const both = joined(first, second)
	assert.deepEqual(
		[both.complete, both.more, both.problems, both.gaps.map((g) => g.service), both.cost],
		[false, false, ["web", "auth"], ["web", "db", "auth"], { requests: 2, bytes: 20 }],
	)
})

test("a tail lacks records from its first problem or gap on, whatever follows", () => {
	const told = [{ note: "n" }, { absent: "db" }, { warning: "w" }].map(outcomeOf).reduce(joined)
	assert.deepEqual([told.complete, told.notes, told.warnings], [true, ["n", "there is no service db yet"], ["w"]])
	const gap = { service: "web", records: 2, from: "2026-01-01", to: "2026-01-02" }
	for (const event of [{ problem: "p" }, { gap }]) {
		const after = [told, outcomeOf(event), outcomeOf({ note: "n" })].reduce(joined)
		assert.deepEqual([after.complete, after.problems.length + after.gaps.length], [false, 1])
	}
})
