// Texts of strangers: in links, and in commands that somebody pastes into a terminal.
import assert from "node:assert/strict"
import { execFileSync } from "node:child_process"
import { test } from "node:test"
import { commands } from "../files/command.js"
import { hidden } from "../files/rows.js"
import { params } from "../files/source.js"
import { parse, start } from "../files/state.js"

/** Numbers below n, the same ones in each run. */
function numbers(seed) {
	return (n) => {
		seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0
		return Math.floor((seed / 2 ** 32) * n)
	}
}

const parts = [
	"'",
	'"',
	"`",
	"$(echo x)",
	"${HOME}",
	"\\",
	"\\0101",
	"\\n",
	"%s%n",
	"%",
	"!",
	"!!",
	";",
	"&&",
	"|",
	"<",
	">",
	"(",
	")",
	"*",
	"?",
	"[a]",
	"{a,b}",
	"#",
	"~",
	"=",
	"-",
	"--",
	" ",
	"\t",
	"\n",
	"\r\n",
	"\r",
	"\x03",
	"\x04",
	"\x15",
	"\x1b[201~",
	"\x1b]0;t\x07",
	"\x1b[A",
	"\x7f",
	"\x9b31m",
	"\u202e",
	"\u200b",
	"\u2028",
	"\ufeff",
	"\u{e0041}",
	"é",
	"日本",
	"😀",
	"a",
	"0",
	"7",
	"rm -rf .",
]

/** The arguments that sh gives the commands of a script, each with an end of its own. */
function argumentsOf(script) {
	const out = execFileSync("sh", {
		input: 'say() { printf \'%s\\0\' "$@" \'\u0001\'; }\nlogquery() { say "$@"; }\ncurl() { say "$@"; }\n' + script,
		maxBuffer: 64 << 20,
		env: { PATH: process.env.PATH },
	})
	return out
		.toString()
		.split("\0\u0001\0")
		.slice(0, -1)
		.map((one) => one.split("\0"))
}

test("no value of a record leaves its word of sh, or sends a terminal a control character", () => {
	const random = numbers(7),
		lines = [],
		wanted = []
	const value = () => Array.from({ length: 1 + random(7) }, () => parts[random(parts.length)]).join("") + "."
	for (let i = 0; i < 500; i++) {
		const q = {
			services: [value()],
			from: "",
			to: "",
			q: [value()],
			fold: false,
			logql: "",
		}
		const made = commands(q, { search: q.q[0], oldest: false, token: true, page: "http://127.0.0.1:8516/" })
		for (const line of [made.logquery, made.curl]) {
			assert.ok(line.search(hidden) < 0 && !/[\0-\x1f\x7f-\x9f]/.test(line), JSON.stringify(line))
			lines.push(line)
		}
		wanted.push(q)
	}
	const all = argumentsOf(lines.join("\n"))
	assert.equal(all.length, 1000)
	wanted.forEach((q, i) => {
		const [logquery, curl] = all.slice(2 * i),
			[read, service, ...flags] = logquery
		assert.equal(read, "read")
		assert.equal(service, q.services[0].replace(/^-/, "?"))
		assert.ok(flags.includes("--search=" + q.q[0]), JSON.stringify(logquery))
		assert.equal(flags.length, 7, JSON.stringify(logquery))
		assert.equal(curl.length, 4, JSON.stringify(curl))
		assert.deepEqual([...new URL(curl[3]).searchParams], [...params(q, { order: "desc", limit: 0 })])
	})
	assert.ok(
		commands(
			{ services: [], q: ["a"], from: "", to: "", fold: false, logql: "" },
			{ search: "/a\n", oldest: false, token: false, page: "http://x/" },
		).lossy,
	)
})

test("a broken link has words, and the parts that are whole", () => {
	for (const [link, key] of Object.entries({
		"since=99999999999d": "since",
		"since=abc": "since",
		"since=0s": "since",
		"every=1ms": "every",
		"every=abc": "every",
		"every=999999999d": "every",
		"from=garbage": "from",
		"to=%2B275760-09-13T00:00:00Z": "to",
		"from=-271821-04-20T00:00:00Z": "from",
		"against=x/y": "against",
		"against=foo": "against",
		"against=2026-01-01/": "against",
		"sel=abc": "sel",
		"sel=web/abc": "sel",
		"sel=/": "sel",
		"around=zzz": "around",
		"tab=__proto__": "tab",
	})) {
		const view = parse("#q=basket&" + link)
		assert.match(view.wrong ?? "", new RegExp(`left out: ${key}=`), link)
		assert.equal(view[key], start[key])
		assert.equal(view.q, "basket")
		assert.equal(view.since, "1h", "a range is left")
	}
	for (const link of [
		"",
		"since=2d12h",
		"since=",
		"every=10s",
		"from=2026-11-26T15:00:00.123456789Z",
		"against=",
		"against=2026-11-26T15:00:00.000000000Z/2026-11-26T16:00:00.000000000Z",
		"sel=_rejected/1795323600500000000-019e7d0f5a7c00000000000000000000-3",
		"around=%3D__proto__",
		"__proto__=1&constructor=2&%E0%A4%A",
	])
		assert.equal(parse(link).wrong, undefined, link)
	assert.match(parse("q=" + "x".repeat(1 << 20)).wrong, /too long/)
	assert.equal(parse("f=a&".repeat(12_000)).chips.length, 1000)
	assert.equal(parse("col=a&".repeat(8000)).columns.length, 100)
})
