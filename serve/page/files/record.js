// The chosen record: its fields as a tree, or its stored line. It is drawn at once if a list has it;
// the answer brings its neighbours. A step of the tree is drawn at a time.

import { Fragment, h } from "./preact.js"
import { useEffect, useMemo, useState } from "./hooks.js"
import * as source from "./source.js"
import { instead, useAnswer, useNewest, useReport } from "./ask.js"
import { clean, end, nameOf, partsOf, quote } from "./rows.js"
import { Copy } from "./command.js"
import { line as field } from "./dialog.js"
import { termFor } from "./term.js"
import { addChip, permalink } from "./state.js"
import { bytes, count, time } from "./format.js"
import { useOffers } from "./keys.js"

const step = 100,
	most = 256 << 10

/** @type {Button} */
export const button = (name, run, sign = name, more) =>
	h("button", { key: name, "aria-label": name, title: name, onClick: run, ...more }, sign)

/** @type {Button} */
const link = (name, run) => button(name, run, name, { class: "plain" })

const copier = (/** @type {string} */ label, /** @type {() => string} */ text, sign = "copy") =>
	h(Copy, { name: label, text, label: sign })

/** Differs whenever all is asked again. @param {Props} props */
export const runOf = ({ asked }) => asked.split(" ", 1)[0]

/** Safe to look at, in lines. @param {string} text */
export const visible = (text) => text.replaceAll("\r\n", "\n").replace(/[^\n\t]+/g, (part) => clean(part))

/** Service and id. @param {string} sel */
export const split = (sel) => [sel.slice(0, sel.indexOf("/")), sel.slice(sel.indexOf("/") + 1)]

/** A record in the lists, and the one before it there. @param {Shared} shared @param {View} view @returns {Row[]} */
export function find({ near, rows }, { sel, oldest }) {
	for (const list of [near, rows]) {
		const at = list.findIndex((r) => sel.endsWith("/" + r.id) && nameOf(r) === sel)
		if (at >= 0) return [list[at], list[at + (oldest || list === near ? -1 : 1)]]
	}
	return []
}

/** Numbers keep their digits. @param {string} raw @returns {string} */
const decode = (raw) => (raw[0] === '"' ? JSON.parse(raw) : raw)

/** @param {string} raw */
const isBranch = (raw) => raw.length > 2 && (raw[0] === "{" || raw[0] === "[")

/** @param {string} raw */
export const root = (raw) => ({ raw, name: "", label: "", listed: false, depth: 0, at: 1, n: 0 })

/** The members of an object or a list, from a place in its text on. @param {Value} of @returns {Generator<Value>} */
function* members({ raw: text, name: path, listed, depth }, at = 1, n = 0) {
	for (const list = text[0] === "["; at < text.length - 1; at++) {
		let label = String(n++)
		if (!list) {
			const to = quote(text, at + 1) + 1
			label = decode(text.slice(at, to))
			at = to + 1
		}
		const raw = text.slice(at, (at = end(text, at)))
		yield {
			raw,
			name: list ? `${path}[${label}]` : path ? `${path}.${label}` : label,
			label,
			listed: listed || list,
			depth: depth + 1,
			at: at + 1,
			n,
		}
	}
}

/** @param {Value} of @returns {Generator<Value>} */
export function* leaves(of) {
	for (const m of members(of)) {
		if (isBranch(m.raw) && m.depth < 50) yield* leaves(m)
		else yield m
	}
}

/** The fields whose values seem to name a request and the like. @param {string} line */
export function ids(line) {
	const found = []
	let n = 0
	for (const m of leaves(root(line))) {
		if (
			!m.listed &&
			(/(^|[._-])u?u?id$|(trace|request|span|session|correlation)(.?id)?$/i.test(m.name) ||
				/[a-z]I[dD]$/.test(m.name)) &&
			/^"?(?=.*\d)[^"\\]{8,100}"?$/.test(m.raw)
		)
			found.push(m)
		if (n++ > 1000) break
	}
	return found.sort((a, b) => +/request/i.test(b.name) - +/request/i.test(a.name)).slice(0, 4)
}

/** @param {Props} props */
export function RecordPane(props) {
	const { view, set, shared } = props,
		{ sel } = view,
		[service, id] = split(sel),
		[form, setForm] = useState("Tree"),
		now = useNewest(props),
		[here, older] = find(shared, view)
	const answer = useAnswer(`${runOf(props)} ${sel}`, async (signal) => {
		if (here) await new Promise((go) => setTimeout(go, 300)) // or each row that a key passes would ask
		signal.throwIfAborted()
		return { ...(await source.record(service, id, signal)), sel }
	})
	useReport(props.report, "record", answer)
	useOffers(shared, { context: () => set({ around: "same" }) })
	const found = answer.value?.sel === sel ? answer.value : undefined,
		row = here ?? found?.row
	const [same, tree] = useMemo(
		() => (row ? [ids(row.line), h(Tree, { ...root(row.line), now, key: sel })] : [[]]),
		[row?.line, sel],
	)
	const around = (/** @type {string} */ kind, /** @type {string} */ name) =>
		link(name, () => {
			set({ around: kind })
			shared.act("anchor")
		})
	const tab = (/** @type {string} */ name) =>
		button(name, () => setForm(name), name, { role: "tab", "aria-selected": form === name })
	const beside = (/** @type {"previous" | "next"} */ way, sign = "") =>
		button(`The ${way} record of ${service}`, () => set({ sel: `${service}/${found?.[way]}` }), sign, {
			disabled: !found?.[way],
		})
	return h(
		"section",
		{ class: "record", "aria-label": "Record" },
		h(
			"div",
			{ class: "bar" },
			beside("previous", "↑"),
			beside("next", "↓"),
			h("div", { role: "tablist", "aria-label": "Form" }, tab("Tree"), tab("JSON")),
			h("span", { class: "space" }),
			copier("Link", () => permalink(view, props.range), "Link"),
			button("Close", () => set({ sel: "", around: "" }), "×"),
		),
		instead({ ...answer, value: row }),
		row && [
			h(Head, { row, older }),
			h(
				"p",
				null,
				around("same", "Context"),
				same.map(({ name }) => around("=" + name, "Same " + name)),
			),
			form === "Tree" ? tree : h(Stored, { line: row.line, sel, key: sel }),
		],
	)
}

/** @param {{row: Row, older?: Row}} props */
function Head({ row, older }) {
	const { ts, level, service } = partsOf(row),
		how = { day: true, digits: 9 },
		ns = (/** @type {Row} */ r) => BigInt(r.id.split("-")[0]),
		gap = older && Number(ns(row) - ns(older)) / 1e6,
		short = (/** @type {number} */ n) => +n.toFixed(n < 1 ? 6 : 3)
	return h(
		"div",
		null,
		h(
			"div",
			{ class: "row near " + level },
			h("span", { class: "level" }, level),
			h("span", { class: "service" }, service),
		),
		[
			time(ts, true, how) + " UTC",
			time(ts, false, how) + " local time",
			gap === undefined
				? "\xa0"
				: `${gap < 1000 ? short(gap) + " m" : short(gap / 1000) + " "}s after the one before it in the list`,
		].map((text, i) => h("p", { key: i }, text)),
		h(
			"p",
			{ class: "dim" },
			row.id,
			copier("Copy id", () => row.id),
		),
	)
}

/** @param {{line: string, sel: string}} props */
const Stored = ({ line, sel }) =>
	h(
		"div",
		null,
		h(Save, { sel }),
		line.length < most && [
			copier("Copy JSON", () => line),
			h("pre", null, h(Folded, { text: line, room: 8192, show: (t) => t })),
		],
	)

/** @param {{sel: string}} props */
const Save = ({ sel }) => h("a", { href: source.recordURL(split(sel)), download: sel + ".json" }, "Download the record")

/** @param {{text: string, room: number, show: (text: string) => string}} props */
function Folded({ text, room, show }) {
	const [all, setAll] = useState(false),
		cut = !all && text.length > room
	return [
		h("bdi", null, show(cut ? text.slice(0, room) : text)),
		cut && link(`show all ${count(text.length)} characters`, () => setAll(true)),
	]
}

/** @param {Value & Now} props */
function Tree({ now, ...of }) {
	const [text, setText] = useState(""),
		hits = useSearch(of, text.toLowerCase()),
		all = useMemo(() => h(Members, { of, now }), [])
	return h(
		"div",
		null,
		field("Find in the record", text, setText, { placeholder: "find in the record" }),
		h("ul", { class: "tree", hidden: !!hits }, all),
		hits &&
			h(
				"ul",
				{ class: "tree" },
				hits.list.map((m) => h(Leaf, { ...m, label: m.name, key: m.name, now })),
			),
		h("p", { role: "status" }, hits && hits.note),
	)
}

/** What is found in a record, in slices of time, so that keys stay quick. @param {Value} of @param {string} text */
function useSearch(of, text) {
	const [hits, setHits] = useState(/** @type {{list: Value[], note: string} | undefined} */ (undefined))
	useEffect(() => {
		if (!text) return setHits(undefined)
		/** @type {Value[]} */
		const list = []
		const all = leaves(of)
		let timer = 0
		const slice = () => {
			for (const until = performance.now() + 15; performance.now() < until;) {
				const { done, value: m } = all.next()
				if (m && `${m.name}\n${decode(m.raw)}`.toLowerCase().includes(text)) list.push(m)
				if (list.length === step) return setHits({ list, note: `The first ${step} fields with this text.` })
				if (done) return setHits({ list, note: list.length ? "" : "No field or value has this text." })
			}
			timer = setTimeout(slice)
		}
		slice()
		return () => clearTimeout(timer)
	}, [text])
	return hits
}

/** A step of members, and those behind it when asked for. @param {Step} props */
function Members({ of, after, now }) {
	const [more, setMore] = useState(false),
		list = []
	for (const m of members(of, after?.at, after?.n)) {
		list.push(h(isBranch(m.raw) ? Branch : Leaf, { ...m, key: m.at, now }))
		if (list.length < step || m.at >= of.raw.length) continue
		list.push(
			more
				? h(Members, { of, after: m, now })
				: h(
						"li",
						null,
						link(`more behind the first ${count(m.n)}`, () => setMore(true)),
					),
		)
		break
	}
	return h(Fragment, null, list)
}

/** @param {Value & Now} props */
function Branch({ now, ...of }) {
	const [open, setOpen] = useState(of.raw.length < 2000 && of.depth < 5),
		label = visible(of.label)
	return h(
		"li",
		null,
		button(open ? "▾ " + label : `▸ ${label} (${bytes(of.raw.length)})`, () => setOpen(!open), undefined, {
			"aria-expanded": open,
		}),
		open && h("ul", null, h(Members, { of, now })),
	)
}

/** @param {Value & Now} props */
function Leaf({ now, ...of }) {
	const { raw, name, listed } = of,
		[links, setLinks] = useState(false),
		head = [h("bdi", { class: "dim" }, visible(of.label)), " "]
	if (raw.length > most)
		return h("li", null, head, `${count(raw.length)} characters. `, h(Save, { sel: now.current.view.sel }))
	const text = decode(raw),
		short = visible(text.slice(0, 100)),
		isText = raw[0] === '"',
		urls = (isText && text.match(/https?:\/\/[^\s"'<>\\^`{|}]+/g)?.filter((u) => URL.canParse(u))) || []
	const filter = (/** @type {boolean} */ not) =>
		button(
			`Filter ${not ? "out" : "for"} ${name}=${short}`,
			() => addChip(now.current, termFor(name, raw, not)),
			not ? "−" : "+",
		)
	const column = () => now.current.set({ columns: [...now.current.view.columns.filter((c) => c !== name), name] })
	return h(
		"li",
		null,
		head,
		h("span", { class: isText ? "" : "bare" }, h(Folded, { text, room: 2000, show: visible })),
		links
			? urls.map((u) => h("a", { href: u, target: "_blank", rel: "noopener noreferrer" }, new URL(u).href))
			: urls.length > 0 && link("Open link…", () => setLinks(true)),
		h(
			"span",
			{ class: "acts" },
			!listed && name !== "ts" && text.length < 2000 && [filter(false), filter(true)],
			copier("Copy " + short, () => text),
			!listed && button("Show as column " + name, column, "column"),
		),
	)
}
