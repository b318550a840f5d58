// The chosen record: its fields as a tree, or its stored line. It is drawn from a row that is there
// at once, and asked for otherwise. A step of the tree is drawn at a time, and drawn again only if
// the record changes.

import { Fragment, h } from "./preact.js"
import { useEffect, useMemo, useRef, useState } from "./hooks.js"
import * as source from "./source.js"
import { useAnswer, useNewest, useReport } from "./ask.js"
import { nameOf, partsOf } from "./rows.js"
import { termFor } from "./search.js"
import { permalink } from "./state.js"
import { bytes, count, time } from "./format.js"
import { decode, isBranch, leaves, members, root } from "./tree.js"

const step = 100, folded = 1000, most = 256 << 10

/** @param {string} name @param {() => void} run @param {any} [sign] @param {object} [more] */
export const button = (name, run, sign = name, more) => h("button", { type: "button", "aria-label": name, title: name, onClick: run, ...more }, sign)

/** What stands in place of an answer. @param {Answer<any>} answer */
export const instead = ({ value, error }) => (error ? h("p", { role: "alert", class: "mistake" }, error.message) : value ? null : h("p", { class: "wait" }, "Loading…"))

/** The service and the id of a chosen record. @param {string} sel */
export const split = (sel) => [sel.slice(0, sel.indexOf("/")), sel.slice(sel.indexOf("/") + 1)]

/** The rows that have a record, and its place. @param {Shared} shared @param {string} sel */
export function find({ near, rows }, sel) {
	for (const list of [near, rows]) {
		const at = list.findIndex((r) => sel.endsWith("/" + r.id) && nameOf(r) === sel)
		if (at >= 0) return { list, at, row: list[at] }
	}
}

/** The fields whose values name a request and the like. @param {string} line */
export function ids(line) {
	const kinds = ["request", "trace", "correlation", "session", "span", ""], out = []
	let n = 0
	for (const { name, raw, listed } of leaves(root(line))) {
		if (n++ > 1000) break
		const kind = kinds.findIndex((k) => new RegExp(k ? k + "[_-]?(id)?$" : "id$", "i").test(name))
		if (kind >= 0 && !listed && /^"?[^"\\]{8,100}"?$/.test(raw) && /\d/.test(raw)) out.push({ name, raw, kind })
	}
	return out.sort((a, b) => a.kind - b.kind).slice(0, 4)
}

/** A chip for a value as it is stored. A number that JavaScript would change is compared as the server does. @param {string} name @param {string} raw @param {boolean} [out] */
export const chipFor = (name, raw, out = false) => (/^-?\d{16,}$/.test(raw) ? `where:(${name} ${out ? "!=" : "=="} ${raw}.0)` : termFor(name, JSON.parse(raw), out))

/** Adds a chip; one that is there counts again. @param {Props} props @param {string} text */
export const addChip = ({ view, set }, text) => set({ chips: [...view.chips.filter((c) => c.text !== text), { text, off: false }] })

/** @param {bigint} ns */
function length(ns) {
	const n = Number(ns)
	for (const [unit, size] of /** @type {const} */ ([["d", 864e11], ["h", 36e11], ["min", 6e10], ["s", 1e9], ["ms", 1e6], ["µs", 1e3]])) if (n >= size) return `${+(n / size).toFixed(3)} ${unit}`
	return n + " ns"
}

/** @param {Props} props */
export function RecordPane(props) {
	const { view, set, shared } = props, [service, id] = split(view.sel)
	const [json, setJSON] = useState(false), [way, setWay] = useState(/** @type {"" | "previous" | "next"} */ ("")), [said, say] = useState("")
	const kept = useRef(/** @type {{sel?: string, row?: Row, ask?: boolean}} */ ({})), now = useNewest(props), place = find(shared, view.sel)
	if (kept.current.sel !== view.sel) kept.current = { sel: view.sel }
	const is = kept.current
	is.row = place?.row ?? is.row
	is.ask ||= way !== "" || !is.row
	const answer = useAnswer(is.ask ? view.sel : "", async (signal) => ({ ...(await source.record(service, id, signal)), sel: view.sel }))
	useReport(props.report, "record", answer)
	const found = answer.value?.sel === view.sel ? answer.value : undefined, row = (is.row ??= found?.row)
	useEffect(() => {
		say("")
		if (!way || !found) return
		setWay("")
		found[way] ? set({ sel: `${service}/${found[way]}` }) : say(`${service} has no record ${way === "next" ? "after" : "before"} this one.`)
	}, [view.sel, way, found])
	const tree = useMemo(() => row && h(Tree, { line: row.line, now, key: view.sel }), [row?.line, view.sel])
	const same = useMemo(() => (row ? ids(row.line) : []), [row?.line])
	const around = (/** @type {string} */ kind, /** @type {string} */ name) => button(name, () => { set({ around: kind }); shared.act("anchor") }, name, { key: kind, class: "plain" })
	const tab = (/** @type {boolean} */ it, /** @type {string} */ name) => button(name, () => setJSON(it), name, { role: "tab", "aria-selected": json === it })
	return h("section", { class: "record", "aria-label": "Record" },
		h("div", { class: "bar" }, button("Previous record of " + service, () => setWay("previous"), "↑"), button("Next record of " + service, () => setWay("next"), "↓"),
			h("div", { role: "tablist", "aria-label": "Form" }, tab(false, "Tree"), tab(true, "JSON")), h("span", { class: "space" }),
			h(Copy, { text: () => permalink(view, props.range), name: "Link", sign: "Link" }), button("Close", () => set({ sel: "", around: "" }), "×")),
		h("p", { role: "status" }, said),
		row && !answer.error ? null : instead({ ...answer, value: found }),
		row ? h(Fragment, null, h(Head, { row, place }), h("p", null, around("same", "Context"), same.map((f) => around("=" + f.name, "Same " + f.name))), json ? h(Stored, { row, service }) : tree) : null)
}

/** @param {{row: Row, place: ReturnType<typeof find>}} props */
function Head({ row, place }) {
	const { ts, level, service } = partsOf(row), how = { day: true, digits: 9 }, ns = (/** @type {Row} */ r) => BigInt(r.id.split("-")[0])
	let older
	if (place) older = ns(place.list[0]) > ns(place.list[place.list.length - 1]) ? place.list[place.at + 1] : place.list[place.at - 1]
	return h("div", null, h("div", { class: "row near " + level }, h("span", { class: "level" }, level), h("span", { class: "service" }, service)), time(ts, true, how), " UTC", h("br"), time(ts, false, how), " ", Intl.DateTimeFormat().resolvedOptions().timeZone,
		h("p", { class: "dim" }, older ? `${length(ns(row) - ns(older))} after the record before it in the list` : "\u00a0", h("br"), row.id, h(Copy, { text: () => row.id, name: "Copy id" })))
}

/** @param {{row: Row, service: string}} props */
function Stored({ row: { line, id }, service }) {
	return h("div", null, h(Save, { service, id }), line.length > most ? null : h(Fragment, null, h(Copy, { text: () => line, name: "Copy JSON" }), h("pre", null, h(Folded, { text: line, most: 8192 }))))
}

/** @param {{service: string, id: string}} props */
const Save = ({ service, id }) => h("a", { href: source.recordURL(service, id), download: id + ".json" }, "Download the record")

/** A text whose end is shown when asked for. @param {{text: string, most?: number}} props */
function Folded({ text, most = folded }) {
	const [all, setAll] = useState(false), long = !all && text.length > most
	return h(Fragment, null, h("bdi", null, long ? text.slice(0, most) : text), long ? button(`show all ${count(text.length)} characters`, () => setAll(true), undefined, { class: "plain" }) : null)
}

/** @param {{text: () => string, name: string, sign?: string}} props */
function Copy({ text, name, sign = "⧉" }) {
	const [done, setDone] = useState("")
	const run = async () => {
		setDone(await navigator.clipboard.writeText(text()).then(() => "✓", () => "no clipboard"))
		setTimeout(setDone, 1500, "")
	}
	return button(name, run, done || sign)
}

/** @param {{line: string, now: {current: Props}}} props */
function Tree({ line, now }) {
	const [text, setText] = useState(""), all = root(line)
	const hits = useMemo(() => text && search(all, text.toLowerCase()), [text])
	return h("div", null, h("input", { type: "text", "aria-label": "Find in the record", placeholder: "Find in the record", value: text, onInput: (/** @type {any} */ e) => setText(e.target.value) }),
		h("ul", { class: "tree" }, hits ? hits.list.map((m) => h(Leaf, { ...m, label: m.name, key: m.name + m.at, now })) : h(Members, { node: all, at: 1, n: 0, now })),
		hits ? h("p", { class: "dim", role: "status" }, hits.note) : null)
}

/** @param {Value} all @param {string} text */
function search(all, text) {
	/** @type {Value[]} */
	const list = [], until = performance.now() + 50
	for (const m of leaves(all)) {
		if (m.name.toLowerCase().includes(text) || decode(m.raw).toLowerCase().includes(text)) list.push(m)
		if (list.length === step) return { list, note: `The first ${step} are shown.` }
		if (performance.now() > until) return { list, note: "The record is large: only its first part was searched." }
	}
	return { list, note: list.length ? "" : "No field or value of the record has this text." }
}

/** A step of members, and those behind it when asked for. @param {{node: Value, at: number, n: number, now: {current: Props}}} props */
function Members({ node, at, n, now }) {
	const [more, setMore] = useState(false), list = []
	let last
	for (const m of members(node, at, n)) {
		if (list.length === step) break
		list.push(h(isBranch(m.raw) ? Branch : Leaf, { ...m, key: m.at, now }))
		last = m
	}
	return h(Fragment, null, list, !last || /^[}\]]/.test(node.raw.slice(last.at)) ? null : more ? h(Members, { node, at: last.at, n: last.n, now }) : h("li", null, button(`more than ${count(last.n)}: show more`, () => setMore(true))))
}

/** @param {Value & {now: {current: Props}}} props */
function Branch({ now, ...node }) {
	const [open, setOpen] = useState(node.raw.length < 2000 && node.depth < 5)
	return h("li", null, button(node.label, () => setOpen(!open), [open ? "▾ " : "▸ ", node.label, open ? "" : ` ${node.raw[0]}…  ${bytes(node.raw.length)}`], { "aria-expanded": open }), open ? h("ul", null, h(Members, { node, at: 1, n: 0, now })) : null)
}

/** @param {Value & {now: {current: Props}}} props */
function Leaf({ raw, name, label, listed, now }) {
	const [links, setLinks] = useState(false), text = useMemo(() => (raw.length > most ? undefined : decode(raw)), [raw])
	if (text === undefined) return h("li", null, visible(label), " ", count(raw.length), " characters: ", h(Save, { service: split(now.current.view.sel)[0], id: split(now.current.view.sel)[1] }))
	const word = visible(text.slice(0, 100)), urls = raw[0] === '"' ? [...new Set(text.match(/https?:\/\/[^\s"'<>\\^`{|}]+/g))].filter((u) => URL.canParse(u)) : []
	const column = () => {
		const { view, set } = now.current, rest = view.columns.filter((c) => c !== name)
		set({ columns: rest.length < view.columns.length ? rest : [...rest, name] })
	}
	return h("li", null, h("bdi", { class: "name" }, visible(label)), " ", h("span", { class: raw[0] === '"' ? "value" : "value bare" }, h(Folded, { text: visible(text) })),
		links ? urls.map((u) => h("a", { key: u, href: u, target: "_blank", rel: "noopener noreferrer" }, new URL(u).href)) : urls.length ? button("Open link…", () => setLinks(true), undefined, { class: "plain" }) : null,
		h("span", { class: "acts" },
			listed || name === "ts" || text.length > 2000 ? null : [false, true].map((out) => button(`Filter ${out ? "out" : "for"} ${name}=${word}`, () => addChip(now.current, chipFor(name, raw, out)), out ? "−" : "+", { key: out })),
			h(Copy, { text: () => text, name: "Copy " + word }), listed ? null : button("Show as column " + name, column, "▥")))
}

/** A text without the colours of terminals; controls, also those of the direction of writing, are symbols. @param {string} text */
export const visible = (text) => text.replace(/\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)/g, "").replace(/\r\n/g, "\n").replace(/[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (c) => {
	const n = c.charCodeAt(0)
	return n < 32 ? String.fromCharCode(0x2400 + n) : `‹${n.toString(16)}›`
})
