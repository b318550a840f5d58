// Records, and the views of the page over them with the records that each must find. Without an
// argument it prints the records of each service; with the URL of a server the commands of the
// views.

import { commands } from "../../../serve/page/files/command.js"
import { params } from "../../../serve/page/files/source.js"
import { start } from "../../../serve/page/files/state.js"
import { questionOf, termFor } from "../../../serve/page/files/term.js"

const fields = [
	{ status: 200 },
	{ status: "200" },
	{ status: 2e2 },
	{ status: 502 },
	{ status: "502" },
	{ status: null },
	{},
	{ status: true },
	{ status: "true" },
	{ status: "null" },
	{ status: "" },
	{ status: [1, 2] },
	{ status: {} },
	{ http: { status: 404 } },
	{ "http.status": 404 },
	{ "a-b": { "c-d": 7 } },
	{ "a-b.c-d": 7 },
	{ "a.b-c": 8 },
	{ a: { "b-c": 8 } },
	{ "request-status": "ok" },
	{ in: 5 },
	{ count: 5 },
	{ not: "x" },
	{ GET: 5 },
	{ null: 5 },
	{ größe: 9 },
	{ 'q"uo\\te': 11 },
	{ "a b": 12 },
	{ "😀": 13 },
	{ "9a": 14 },
	{ $x: 15 },
	{ $env: 16 },
	{ t: 'with "quotes" and \\back' },
	{ t: "new\nline" },
	{ t: "tab\tand\r" },
	{ t: "non-BMP 😀" },
	{ t: "nul\u0000x" },
	{ t: "\u2028" },
	{ t: "$HOME `id` $(id) !! 'x' %s" },
	{ t: "*" },
	{ t: "a*b" },
	{ t: "-x" },
	{ t: "a=b" },
	{ t: "/re/" },
	{ t: "/api/users" },
	{ t: "[a-z]{1,2}?" },
	{ t: "  lead" },
	{ n: 10 },
	{ n: "10" },
	{ n: 1e21 },
	{ n: -5 },
	{ n: 1000000 },
	{ n: 0.1 },
	{ n: "abc" },
	{ n: "9" },
	{ n: "007" },
	{ n: 12345678901234567000 },
	{ t: "pre-fix" },
	{ t: "prefix\nx" },
	{ t: "PRE" },
	{ t: "apre" },
]
const services = ["web", "orders", "web-2"],
	levels = ["info", "error", "warn", "debug", "critical", "trace", "odd"]
const records = fields.map((f, i) => ({
	ts: 1795183200 + i,
	service: services[i % 3],
	level: levels[i % 7],
	msg: "m" + i,
	...f,
}))

const has = (r, name) => r[name] !== undefined && r[name] !== null
const text = (v) => (typeof v === "string" ? v : JSON.stringify(v))
const http = (r) => r["http.status"] ?? r.http?.status
/** Views as [q or a part of a view, the records that it must find, whether LogQL finds the same; else it may say what it leaves out]. */
const views = [
	["", () => true, true],
	["status=200", (r) => r.status === 200 || r.status === "200", true],
	["-status=200", (r) => r.status !== 200 && r.status !== "200", true],
	["status!=200", (r) => r.status !== 200 && r.status !== "200", true],
	['status="200"', (r) => r.status === "200"],
	['-status="200"', (r) => r.status !== "200"],
	["status=true", (r) => String(r.status) === "true", true],
	["status=null", (r) => !has(r, "status")],
	["-status=null", (r) => has(r, "status")],
	["status=*", (r) => has(r, "status")],
	["-status=*", (r) => !has(r, "status")],
	['status=""', (r) => r.status === ""],
	["status=2*", (r) => has(r, "status") && text(r.status).startsWith("2"), true],
	["-status=2*", (r) => !has(r, "status") || !text(r.status).startsWith("2"), true],
	["status=/^5.2$/", (r) => [502, "502"].includes(r.status)],
	["status>=500", (r) => Number(r.status) >= 500, true],
	[
		"-status>=500",
		(r) =>
			!has(r, "status") || (Number(r.status) < 500 && !["", true].includes(r.status) && typeof r.status !== "object"),
	],
	["http.status=404", (r) => http(r) === 404, true],
	["-http.status=404", (r) => http(r) !== 404, true],
	["a-b.c-d=7", (r) => r["a-b.c-d"] === 7 || r["a-b"]?.["c-d"] === 7],
	["a.b-c=8", (r) => r["a.b-c"] === 8 || r.a?.["b-c"] === 8],
	["in=5 -count=5", (r) => r.in === 5],
	["not=x", (r) => r.not === "x"],
	["GET=5", (r) => r.GET === 5],
	["null=5", (r) => r.null === 5],
	["größe=9", (r) => r.größe === 9],
	["9a=14", (r) => r["9a"] === 14],
	["$x>14", (r) => r.$x === 15],
	["$env=16", (r) => r.$env === 16],
	['"a b"=12', (r) => r["a b"] === 12],
	['"😀"=13', (r) => r["😀"] === 13],
	["n>9", (r) => Number(r.n) > 9],
	["n<=-5", (r) => r.n === -5],
	["n=1_000_000", (r) => r.n === 1000000],
	["n=1e21", (r) => r.n === 1e21],
	["n=10*", (r) => has(r, "n") && text(r.n).startsWith("10")],
	["n=007", (r) => r.n === "007"],
	["n=12345678901234567000", (r) => r.n === 12345678901234567000],
	['n>"a"', (r) => r.n === "abc"],
	["t=pre*", (r) => /^pre/.test(r.t ?? "")],
	["t=*pre*", (r) => /pre/.test(r.t ?? "")],
	["-t=pre*", (r) => !/^pre/.test(r.t ?? "")],
	["t=/^pre/", (r) => /^pre/.test(r.t ?? "")],
	["t=/api/users", (r) => r.t === "/api/users"],
	['t="a*b"', (r) => r.t === "a*b"],
	["m1", (r) => r.msg.includes("m1"), true],
	["/^m1$/", (r) => r.msg === "m1"],
	["-/^m1$/", (r) => r.msg !== "m1"],
	[{ q: "M1 /^M1.$/", fold: true }, (r) => /^m1.$/.test(r.msg)],
	["level=error", (r) => r.level === "error", true],
	["level=error,warn", (r) => /error|warn/.test(r.level), true],
	["level>=warn", (r) => /error|warn|critical/.test(r.level), true],
	["level>=info level!=error level<critical", (r) => /info|warn/.test(r.level), true],
	["-level=debug,other", (r) => !/debug|odd/.test(r.level)],
	["level=other", (r) => r.level === "odd"],
	["level=/^[ew]/", (r) => /^[ew]/.test(r.level)],
	["service=web", (r) => r.service === "web", true],
	["service=web,orders", (r) => r.service !== "web-2", true],
	["service=web service=orders", (r) => r.service !== "web-2", true],
	["service=web-*", (r) => r.service === "web-2", true],
	["-service=web", (r) => r.service !== "web", true],
	["-service=web-*,orders", (r) => r.service === "web", true],
	[{ services: ["web", "orders"], q: "service=web*" }, (r) => r.service === "web"],
	[{ services: ["web", "orders"], q: "service=web" }, (r) => r.service === "web", true],
	["where:(status == 502 or n == 10)", (r) => r.status === 502 || r.n === 10],
	['-where:(msg in ["m1", "m)"])', (r) => r.msg !== "m1"],
	[{ q: "m1", oldest: true }, (r) => r.msg.includes("m1"), true],
	[
		{
			q: "m1",
			chips: [
				{ text: "level=error", off: true },
				{ text: "-service=web", off: false },
			],
		},
		(r) => r.msg.includes("m1") && r.service !== "web",
		true,
	],
	[{ logql: '{service_name="web"} | n > 5' }, (r) => r.service === "web" && Number(r.n) > 5, true],
	["-m1", (r) => !r.msg.includes("m1"), true],
	['-m1 -"no such"', (r) => !r.msg.includes("m1"), true],
	// Texts and expressions in fields, in the time, and in what LogQL alone has beside them.
	['"status=502"', (r) => r.status === 502 || r.status === "502"],
	['-"status=502"', (r) => r.status !== 502 && r.status !== "502"],
	["/status=50[12]/", (r) => r.status === 502 || r.status === "502"],
	['"http={"', (r) => "http" in r],
	["/^ok$/", (r) => r["request-status"] === "ok"],
	['"status:502"', () => false],
	["/status.502/", (r) => r.status === 502 || r.status === "502"],
	["map", () => false],
	["/detected/", () => false],
	["unknown", () => false],
	["abc", (r) => r.n === "abc", true],
	["/ab[c]/", (r) => r.n === "abc", true],
	["-abc", (r) => r.n !== "abc", true],
	["2026-11-20", () => true, true],
	['"T14:40:00"', (r) => r.ts === 1795185600],
	["odd", (r) => r.level === "odd", true],
	["/m1.*orders/", () => false],
	// Objects, types, names of LogQL's own.
	["http=*", (r) => "http" in r],
	["-http=*", (r) => !("http" in r)],
	["http=/404/", (r) => "http" in r],
	["http=*404*", (r) => "http" in r],
	["http=null", (r) => !("http" in r)],
	["status={}", (r) => JSON.stringify(r.status) === "{}"],
	["msg=m1", (r) => r.msg === "m1", true],
	["msg=/^m1/", (r) => /^m1/.test(r.msg), true],
	["service=/^web$/", (r) => r.service === "web", true],
	["service=web-?", (r) => r.service === "web-2", true],
	["by=1 or=1 and=1 unless=1 on=1 bool=1", () => false, true],
	["json=1 logfmt=1 line_format=1 offset=1 ip=1 duration=1 drop=1 keep=1 unwrap=1 pattern=1", () => false, true],
	["n>1_000 n<2_000_000", (r) => r.n === 1000000, true],
	["n=1.0e1", (r) => r.n === 10],
]
// Each value by a term of its own, as the record and the fields make it, and as a text.
for (const f of fields)
	for (const [name, value] of Object.entries(f)) {
		if (name === "http" || name === "a" || name === "a-b") continue
		const same = (r) =>
			has({ value }, "value")
				? name === "http.status"
					? http(r) === value
					: has(r, name) && JSON.stringify(r[name]) === JSON.stringify(value)
				: !has(r, name)
		const either = (r) =>
			same(r) ||
			((typeof value === "number" || typeof value === "boolean") && r[name] === String(value)) ||
			(name === "a-b.c-d" && r["a-b"]?.["c-d"] === 7) ||
			(name === "a.b-c" && r.a?.["b-c"] === 8)
		const raw = JSON.stringify(value)
		if (raw[0] === "[") continue // its members are no values of a filter
		views.push([termFor(name, raw), either], [termFor(name, raw, true), (r) => !either(r)])
		if (name === "t") views.push([JSON.stringify(value), (r) => (r.t ?? "").includes(value) || `t=${r.t}` === value])
	}

const [url] = process.argv.slice(2),
	range = { from: "2026-11-20T00:00:00Z", to: "2026-11-21T12:00:00.000000001Z" }
/** A view with its commands, and with what the server says of it. */
async function asked([part, want, logql]) {
	const view = { ...start, ...(typeof part === "string" ? { q: part } : part) },
		question = questionOf(view, range),
		{ oldest } = view,
		found = records.filter(want).map((r) => r.msg),
		said = await (await fetch(`${url}/api/v1/parse?${params(question)}`)).json()
	return {
		name: JSON.stringify(part),
		want: oldest ? found : found.reverse(),
		...commands(question, { search: said.line, oldest, token: true, page: url + "/?x=1#q=2" }),
		answer: `${url}/api/v1/records?${params(question, { form: "lines", limit: 0, order: oldest ? "asc" : "desc" })}`,
		logql: `${url}/api/v1/count?${new URLSearchParams({ ...range, logql: said.logql })}`,
		leaves: !logql && !!said.lacks?.some((n) => /left out/.test(n)),
	}
}
console.log(
	JSON.stringify(
		url
			? await Promise.all(views.map(asked))
			: services.map((s) =>
					records
						.filter((r) => r.service === s)
						.map((r) => JSON.stringify(r))
						.join("\n"),
				),
	),
)
