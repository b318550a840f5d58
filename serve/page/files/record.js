// The chosen record: its fields as a tree, or its stored line. It is drawn at once if a list has it,
// and asked for otherwise. A step of the tree is drawn at a time.

import { Fragment, h } from "./preact.js"
import { useEffect, useMemo, useRef, useState } from "./hooks.js"
import * as source from "./source.js"
import { useAnswer, useNewest, useReport } from "./ask.js"
import { nameOf, partsOf } from "./rows.js"
import { print, termFor } from "./search.js"
import { permalink } from "./state.js"
import { bytes, count, time } from "./format.js"
import { decode, isBranch, leaves, members, root } from "./tree.js"

const step = 100, most = 256 << 10

/** @param {string} name @param {() => void} run @param {any} [sign] @param {object} [more] */
export const button = (name, run, sign = name, more) => h("button", { type: "button", "aria-label": name, title: name, onClick: run, ...more }, sign)

/** A button that looks like a link. @param {string} name @param {() => void} run */
const link = (name, run) => button(name, run, name, { key: name, class: "plain" })

/** What stands in place of an answer. @param {Answer<any>} answer */
export const instead = ({ value, error }) => (error ? h("p", { role: "alert", class: "mistake" }, error.message) : value ? null : h("p", { class: "soon" }, "Loading…"))

/** The service and the id of a chosen record. @param {string} sel */
export const split = (sel) => [sel.slice(0, sel.indexOf("/")), sel.slice(sel.indexOf("/") + 1)]

/** A record in the lists, and the one before it there. @param {Shared} shared @param {View} view @returns {{row?: Row, older?: Row}} */
export function find({ near, rows }, { sel, oldest }) {
	for (const list of [near, rows]) {
		const at = list.findIndex((r) => sel.endsWith("/" + r.id) && nameOf(r) === sel)
		if (at >= 0) return { row: list[at], older: list[at + (oldest || list === near ? -1 : 1)] }
	}
	return {}
}

const kinds = [/request[-_.]?(id)?$/i, /trace[-_.]?(id)?$/i, /correlation/i, /session/i, /span/i, /id$/i]

/** The names of fields whose values seem to name a request and the like. @param {string} line */
export function ids(line) {
	const out = []
	let n = 0
	for (const { name, raw, listed } of leaves(root(line))) {
		if (n++ > 1000) break
		const kind = kinds.findIndex((k) => k.test(name))
		if (kind >= 0 && !listed && /^"?[^"\\]{8,100}"?$/.test(raw) && /\d/.test(raw)) out.push({ name, kind })
	}
	return out.sort((a, b) => a.kind - b.kind).slice(0, 4).map((f) => f.name)
}

/** The term for a value; a number keeps its digits. @param {string} name @param {string} raw */
export const termOf = (name, raw, not = false) => (raw[0] === '"' ? termFor(name, decode(raw), not) : print({ kind: "field", not, name, op: "=", form: "word", value: raw }))

/** Adds a filter; one that is there counts again. @param {Props} props @param {string} text */
export const addChip = ({ view, set }, text) => set({ chips: [...view.chips.filter((c) => c.text !== text), { text, off: false }] })

/** @param {Props} props */
export function RecordPane(props) {
	const { view, set, shared } = props, { sel } = view, [service, id] = split(sel)
	const [json, setJSON] = useState(false), [way, setWay] = useState(/** @type {"" | "previous" | "next"} */ ("")), [said, say] = useState("")
	const held = useRef(/** @type {{sel?: string, row?: Row, ask?: boolean}} */ ({})), now = useNewest(props), { row: here, older } = find(shared, view)
	if (held.current.sel !== sel) held.current = { sel }
	const is = held.current
	is.row = here ?? is.row
	is.ask ||= !!way || !is.row
	const answer = useAnswer(is.ask ? sel : "", async (signal) => ({ ...(await source.record(service, id, signal)), sel }))
	useReport(props.report, "record", answer)
	const found = answer.value?.sel === sel ? answer.value : undefined, row = (is.row ??= found?.row)
	useEffect(() => say(""), [sel])
	useEffect(() => {
		if (!way || !found) return
		setWay("")
		found[way] ? set({ sel: `${service}/${found[way]}` }) : say(`There is none ${way === "next" ? "after" : "before"} it in ${service}.`)
	}, [way, found])
	const [same, tree] = useMemo(() => (row ? [ids(row.line), h(Tree, { all: root(row.line), now, key: sel })] : [[]]), [row?.line, sel])
	const around = (/** @type {string} */ kind, /** @type {string} */ name) => link(name, () => { set({ around: kind }); shared.act("anchor") })
	const tab = (/** @type {string} */ name) => button(name, () => setJSON(name === "JSON"), name, { role: "tab", "aria-selected": json === (name === "JSON") })
	return h("section", { class: "record", "aria-label": "Record" },
		h("div", { class: "bar" }, button("Previous record of the service", () => setWay("previous"), "↑"), button("Next record of the service", () => setWay("next"), "↓"),
			h("div", { role: "tablist", "aria-label": "Form" }, tab("Tree"), tab("JSON")), h("span", { class: "space" }),
			h(Copy, { text: permalink(view, props.range), name: "Link", sign: "Link" }), button("Close", () => set({ sel: "", around: "" }), "×")),
		h("p", { role: "status" }, said), row && !answer.error ? null : instead({ ...answer, value: found }),
		row ? [h(Head, { row, older }), h("p", null, around("same", "Context"), same.map((f) => around("=" + f, "Same " + f))), json ? h(Stored, { row, service }) : tree] : null)
}

/** @param {{row: Row, older?: Row}} props */
function Head({ row, older }) {
	const { ts, level, service } = partsOf(row), how = { day: true, digits: 9 }, ns = (/** @type {Row} */ r) => BigInt(r.id.split("-")[0])
	return h("div", null, h("div", { class: "row near " + level }, h("span", { class: "level" }, level), h("span", { class: "service" }, service)),
		time(ts, true, how), " UTC", h("br", null), time(ts, false, how), " local time", h("br", null),
		h("span", { class: "dim" }, older ? `${length(Number(ns(row) - ns(older)))} after the record before it in the list` : "\xa0", h("br", null), row.id, h(Copy, { text: row.id, name: "Copy id" })))
}

/** @param {number} ns */
function length(ns) {
	for (const [unit, size] of /** @type {[string, number][]} */ ([["h", 36e11], ["min", 6e10], ["s", 1e9], ["ms", 1e6], ["µs", 1e3]])) if (ns >= size) return `${+(ns / size).toFixed(3)} ${unit}`
	return ns + " ns"
}

/** @param {{row: Row, service: string}} props */
const Stored = ({ row: { line, id }, service }) => h("div", null, h(Save, { service, id }), line.length > most ? null : [h(Copy, { text: line, name: "Copy JSON" }), h("pre", null, h(Folded, { text: line, room: 8192 }))])

/** @param {{service: string, id: string}} props */
const Save = ({ service, id }) => h("a", { href: source.recordURL(service, id), download: id + ".json" }, "Download the record")

/** A text; its end is shown when asked for. @param {{text: string, room: number}} props */
function Folded({ text, room }) {
	const [all, setAll] = useState(false)
	return all || text.length <= room ? h("bdi", null, text) : [h("bdi", null, text.slice(0, room)), link(`show all ${count(text.length)} characters`, () => setAll(true))]
}

/** @param {{text: string, name: string, sign?: string}} props */
function Copy({ text, name, sign = "⧉" }) {
	const [done, setDone] = useState("")
	return button(name, async () => {
		setDone(await navigator.clipboard.writeText(text).then(() => "copied", () => "no clipboard"))
		setTimeout(setDone, 1500, "")
	}, done || sign)
}

/** @param {{all: Value, now: {current: Props}}} props */
function Tree({ all, now }) {
	const [text, setText] = useState(""), hits = useMemo(() => text && search(all, text.toLowerCase()), [text])
	return h("div", null, h("input", { type: "text", "aria-label": "Find in the record", placeholder: "find in the record", value: text, onInput: (/** @type {any} */ e) => setText(e.target.value) }),
		h("ul", { class: "tree" }, hits ? hits.list.map((m) => h(Leaf, { ...m, label: m.name, key: m.name, now })) : h(Members, { of: all, now })), h("p", { class: "dim", role: "status" }, hits && hits.note))
}

/** @param {Value} all @param {string} text */
function search(all, text) {
	/** @type {Value[]} */
	const list = [], until = performance.now() + 50
	for (const m of leaves(all)) {
		if (m.name.toLowerCase().includes(text) || decode(m.raw).toLowerCase().includes(text)) list.push(m)
		if (list.length === step || performance.now() > until) return { list, note: "The record has more than was searched." }
	}
	return { list, note: list.length ? "" : "No field or value has this text." }
}

/** A step of the members, and those behind it when asked for. @param {{of: Value, after?: Value, now: {current: Props}}} props */
function Members({ of, after, now }) {
	const [more, setMore] = useState(false), list = []
	for (const m of members(of, after?.at, after?.n)) {
		list.push(h(isBranch(m.raw) ? Branch : Leaf, { ...m, key: m.at, now }))
		if (list.length < step || m.at >= of.raw.length) continue
		list.push(more ? h(Members, { of, after: m, now, key: "more" }) : h("li", { key: "more" }, link(`more behind the first ${count(m.n)}`, () => setMore(true))))
		break
	}
	return h(Fragment, null, list)
}

/** @param {Value & {now: {current: Props}}} props */
function Branch({ now, ...of }) {
	const [open, setOpen] = useState(of.raw.length < 2000 && of.depth < 5)
	return h("li", null, button(of.label, () => setOpen(!open), open ? "▾ " + of.label : `▸ ${of.label} (${bytes(of.raw.length)})`, { "aria-expanded": open }), open ? h("ul", null, h(Members, { of, now })) : null)
}

/** @param {Value & {now: {current: Props}}} props */
function Leaf({ raw, name, label, listed, now }) {
	const [links, setLinks] = useState(false), p = now.current, head = [h("bdi", { class: "name", key: "" }, visible(label)), " "]
	if (raw.length > most) {
		const [service, id] = split(p.view.sel)
		return h("li", null, head, count(raw.length), " characters. ", h(Save, { service, id }))
	}
	const text = decode(raw), short = text.slice(0, 100), urls = raw[0] === '"' ? (text.match(/https?:\/\/[^\s"'<>\\^`{|}]+/g) ?? []).filter((u) => URL.canParse(u)) : []
	const add = (/** @type {boolean} */ not) => button(`Filter ${not ? "out" : "for"} ${name}=${short}`, () => addChip(now.current, termOf(name, raw, not)), not ? "−" : "+")
	const column = () => now.current.set({ columns: [...now.current.view.columns.filter((c) => c !== name), name] })
	return h("li", null, head, h("span", { class: raw[0] === '"' ? "" : "bare" }, h(Folded, { text: visible(text), room: 1000 })),
		links ? urls.map((u) => h("a", { key: u, href: u, target: "_blank", rel: "noopener noreferrer" }, new URL(u).href)) : urls.length ? link("Open link…", () => setLinks(true)) : null,
		h("span", { class: "acts" }, listed || name === "ts" || text.length > 2000 ? null : [add(false), add(true)], h(Copy, { text, name: "Copy " + short }), listed ? null : button("Show as column " + name, column, "▥")))
}

/** A text without the colours of terminals; controls, also those of the direction of writing, are symbols. @param {string} text */
export const visible = (text) => text.replace(/\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)/g, "").replace(/\r\n/g, "\n").replace(/[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (c) => {
	const n = c.charCodeAt(0)
	return n < 32 ? String.fromCharCode(0x2400 + n) : `‹${n.toString(16)}›`
})
