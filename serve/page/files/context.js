// The records around one, in their order: of its service, of all, or those with its value in a
// field, such as the id of a request. Filters do not count here. The marked record, the anchor,
// stays when another row is chosen.

import { h } from "./preact.js"
import { useEffect, useLayoutEffect, useRef, useState } from "./hooks.js"
import * as source from "./source.js"
import { useAnswer, useReport } from "./ask.js"
import { nameOf, partsOf } from "./rows.js"
import { questionOf } from "./search.js"
import { start } from "./state.js"
import { stamp, time } from "./format.js"
import { button, chipFor, find, ids, instead, split } from "./record.js"
import { leaves, root } from "./tree.js"

/** @param {Props} props */
export function Context(props) {
	const { view, set, shared } = props, [anchor, setAnchor] = useState(view.sel)
	useEffect(() => { find({ ...shared, rows: [] }, view.sel) || setAnchor(view.sel) }, [view.sel])
	useEffect(() => () => { shared.near = [] }, [])
	shared.offer("anchor", () => setAnchor(view.sel))
	const escape = (/** @type {KeyboardEvent} */ e) => {
		if (e.key !== "Escape") return
		e.stopPropagation()
		set({ around: "" })
	}
	return h("section", { class: "context", "aria-label": "Context", onKeyDown: escape }, h(Around, { ...props, anchor, key: anchor + view.around }))
}

/**
 * @param {Props} props @param {string} anchor @param {{before: number, after: number, hours: number}} n @param {AbortSignal} signal
 * @returns {Promise<Outcome & {rows: Row[]}>}
 */
async function load({ view, shared }, anchor, { before, after, hours }, signal) {
	const [service, id] = split(anchor), field = view.around.slice(1)
	/** @type {Row[]} */
	let rows = []
	if (view.around[0] !== "=") return { ...(await source.context({ service, id, before, after, services: view.around, each: (more) => rows.push(...more) }, signal)), rows }
	const row = find(shared, anchor)?.row ?? (await source.record(service, id, signal)).row
	let raw
	for (const m of leaves(root(row.line))) if (m.name === field) raw = m.raw
	if (!raw) throw new Error(`the record has no field ${field}`)
	const at = parseInt(id) / 1e6, range = { from: stamp(at - hours * 3_600_000), to: stamp(at + hours * 3_600_000) }
	const q = questionOf({ ...start, services: service[0] === "_" ? ["*", service] : [], chips: [{ text: chipFor(field, raw), off: false }] }, range)
	/** @type {Row[]} */
	const older = []
	const [a, b] = await Promise.all([source.records(q, { limit: before, before: id, each: (more) => older.push(...more) }, signal), source.records(q, { limit: after, oldest: true, after: id, each: (more) => rows.push(...more) }, signal)])
	rows = [...older.reverse(), { ...row, anchor: true }, ...rows]
	const both = (/** @type {"problems" | "warnings" | "notes"} */ key) => [...new Set([...a[key], ...b[key]])]
	return { complete: a.complete && b.complete, problems: both("problems"), warnings: both("warnings"), notes: both("notes"), gaps: a.gaps.concat(b.gaps), cost: { requests: a.cost.requests + b.cost.requests, bytes: a.cost.bytes + b.cost.bytes }, rows }
}

/** @param {Props & {anchor: string}} props */
function Around(props) {
	const { view, set, shared, anchor } = props, box = useRef(/** @type {any} */ (null)), before = useRef(0)
	const [n, setN] = useState({ before: 10, after: 10, hours: 1 })
	const answer = useAnswer(JSON.stringify(n), (signal) => load(props, anchor, n, signal)), value = answer.value
	useReport(props.report, "context", answer)
	const rows = (shared.near = value?.rows ?? []), at = rows.findIndex((r) => r.anchor), field = view.around[0] === "=" ? view.around.slice(1) : ""
	useLayoutEffect(() => {
		if (before.current) box.current.scrollTop += box.current.scrollHeight - before.current
		else box.current.querySelector("[aria-current]")?.scrollIntoView({ block: "center" })
		before.current = 0
	}, [value])
	const more = (/** @type {"before" | "after"} */ side, /** @type {number} */ have) => {
		const run = () => {
			before.current = side === "before" ? box.current.scrollHeight : 0
			setN({ ...n, [side]: Math.min(1000, n[side] + 10) })
		}
		return h("p", null, button("10 more " + side, run, undefined, { disabled: have < n[side] || n[side] === 1000 }), have < n[side] ? ` No more ${side} it${field ? ` within ${n.hours} h` : ""}.` : "")
	}
	const radio = (/** @type {string} */ kind, /** @type {string} */ label) => h("label", { key: kind }, h("input", { type: "radio", name: "around", checked: view.around === kind, onChange: () => set({ around: kind }) }), label)
	const fields = new Set([field, ...(rows[at] ? ids(rows[at].line).map((f) => f.name) : [])])
	fields.delete("")
	const move = (/** @type {any} */ e) => {
		const d = ["ArrowUp", "ArrowDown", "Enter"].indexOf(e.key), row = e.target.closest("[role=row]")
		if (d < 0 || !row) return
		e.preventDefault()
		e.stopPropagation()
		d === 2 ? row.click() : (d ? row.nextSibling : row.previousSibling)?.focus()
	}
	return h("div", { class: "scroll", ref: box },
		h("div", { class: "bar" }, radio("same", "This service"), radio("all", "All services"), [...fields].map((f) => radio("=" + f, "Same " + f)), h("span", { class: "space" }), button("Back to the list", () => set({ around: "" }))),
		h("p", { class: "dim" }, field ? `Records of all services with the same ${field}, within ${n.hours} h of the marked one. ` : "", "Filters are off here.", field && n.hours < 24 ? button("Look within 24 h", () => setN({ ...n, hours: 24 })) : null),
		instead(answer),
		value ? [more("before", at), h("div", { role: "grid", "aria-label": "Records around", onKeyDown: move }, rows.map((row) => {
			const p = partsOf(row), name = nameOf(row)
			return h("div", { key: name, role: "row", class: "row near " + p.level, "data-id": name, tabIndex: row.anchor ? 0 : -1, "aria-current": row.anchor ? "true" : undefined, "aria-selected": name === view.sel, onClick: () => set({ sel: name, around: matchMedia("(max-width: 720px)").matches ? "" : view.around }) },
				h("span", { role: "gridcell", title: p.ts }, row.anchor ? "▸ " : "  ", time(p.ts, view.utc)), h("span", { role: "gridcell", class: "level" }, p.level), h("span", { role: "gridcell", class: "service" }, p.service), h("span", { role: "gridcell", class: "msg" }, h("bdi", null, p.msg), " ", h("span", { class: "rest" }, p.rest)))
		})), more("after", rows.length - 1 - at)] : null)
}
