// The records around one in their order: of its service, of all, or those with the same value of a
// field, such as the id of a request. The marked one stays when another is chosen.

import { h } from "./preact.js"
import { useEffect, useRef, useState } from "./hooks.js"
import * as source from "./source.js"
import { useAnswer, useReport } from "./ask.js"
import { nameOf, partsOf } from "./rows.js"
import { questionOf } from "./search.js"
import { start } from "./state.js"
import { stamp, time } from "./format.js"
import { button, find, ids, instead, leaves, split, termOf } from "./record.js"

/** @param {Props} props */
export function Context(props) {
	const { view, set, shared } = props, [anchor, setAnchor] = useState(view.sel), move = () => setAnchor(view.sel)
	useEffect(() => void (find({ ...shared, rows: [] }, view).row || move()), [view.sel])
	useEffect(() => () => { shared.near = [] }, [])
	shared.offer("anchor", move)
	const escape = (/** @type {any} */ e) => {
		if (e.key !== "Escape") return
		e.stopPropagation()
		set({ around: "" })
	}
	return h("section", { class: "context", "aria-label": "Context", onKeyDown: escape }, h(Around, { ...props, anchor, key: anchor + view.around }))
}

/** @param {Props} props @param {string} anchor @param {{before: number, after: number, hours: number}} n @param {AbortSignal} signal @returns {Promise<Outcome & {rows: Row[]}>} */
async function load({ view, shared }, anchor, { before, after, hours }, signal) {
	const older = /** @type {Row[]} */ ([]), rows = /** @type {Row[]} */ ([]), [service, id] = split(anchor), field = view.around.slice(1), each = (/** @type {Row[]} */ more) => rows.push(...more)
	if (view.around[0] !== "=") return { ...(await source.context({ service, id, before, after, services: view.around, each }, signal)), rows }
	const row = find(shared, { ...view, sel: anchor }).row ?? (await source.record(service, id, signal)).row, leaf = [...leaves(row.line)].find((m) => m.name === field)
	if (!leaf) throw new Error("the record has no field " + field)
	const at = parseInt(id) / 1e6, chip = { text: termOf(field, leaf.raw), off: false }
	const q = questionOf({ ...start, services: ["*", service], chips: [chip] }, { from: stamp(at - hours * 36e5), to: stamp(at + hours * 36e5) })
	/** @type {any[]} */
	const [a, b] = await Promise.all([source.records(q, { limit: before, before: id, each: (more) => older.push(...more) }, signal), source.records(q, { limit: after, oldest: true, after: id, each }, signal)])
	for (const key of ["problems", "warnings", "notes", "gaps"]) a[key].push(...b[key])
	for (const key in a.cost) a.cost[key] += b.cost[key]
	return { ...a, complete: a.complete && b.complete, rows: [...older.reverse(), { ...row, anchor: true }, ...rows] }
}

/** @param {Props & {anchor: string}} props */
function Around(props) {
	const { view, set, shared, anchor } = props, box = useRef(/** @type {any} */ (null)), [n, setN] = useState({ before: 10, after: 10, hours: 1 })
	const answer = useAnswer(JSON.stringify(n), (signal) => load(props, anchor, n, signal)), { value } = answer
	useReport(props.report, "context", answer)
	const rows = (shared.near = value?.rows ?? []), at = rows.findIndex((r) => r.anchor), field = view.around[0] === "=" ? view.around.slice(1) : "", reach = field && ` within ${n.hours} h`
	useEffect(() => box.current.querySelector("[aria-current]")?.scrollIntoView({ block: "center" }), [!value])
	const more = (/** @type {"before" | "after"} */ side, /** @type {number} */ have) => {
		const run = () => {
			box.current.scrollTop ||= 1 // or the rows would not keep their place
			setN({ ...n, [side]: Math.min(1000, n[side] + 10) })
		}
		return h("p", null, button("10 more " + side, run, undefined, { disabled: have < n[side] || have === 1000 }), have < n[side] && `no more${reach}`)
	}
	const radio = (/** @type {string} */ kind, /** @type {string} */ name) => h("label", { key: kind }, h("input", { type: "radio", name: "around", checked: view.around === kind, onChange: () => set({ around: kind }) }), name)
	const fields = new Set(value ? ids(rows[at].line) : [])
	if (field) fields.add(field)
	return h("div", { class: "scroll", ref: box },
		h("div", { class: "bar" }, radio("same", "This service"), radio("all", "All services"), [...fields].map((f) => radio("=" + f, "Same " + f)), h("span", { class: "space" }), button("Back to the list", () => set({ around: "" }))),
		h("p", { class: "dim" }, field && `All services, same ${field},${reach}. `, "Filters are off here.", field && n.hours < 24 && button("Look within 24 h", () => setN({ ...n, hours: 24 }))),
		instead(answer), value && [more("before", at), h("div", { role: "grid", "aria-label": "Records around" }, rows.map((row) => {
			const p = partsOf(row), name = nameOf(row), narrow = matchMedia("(max-width: 720px)").matches
			return h("div", { key: name, role: "row", class: "row near " + p.level, "data-id": name, tabIndex: 0, "aria-current": !!row.anchor, "aria-selected": name === view.sel, onClick: () => set({ sel: name, around: narrow ? "" : view.around }), onKeyDown: (/** @type {any} */ e) => e.key === "Enter" && e.target.click() },
				[["ts", (row.anchor ? "▸ " : "  ") + time(p.ts, view.utc)], ["level", p.level], ["service", p.service], ["msg", [h("bdi", null, p.msg), " ", h("span", { class: "rest" }, p.rest)]]].map(([kind, what]) => h("span", { role: "gridcell", class: kind, key: kind }, what)))
		})), more("after", rows.length - 1 - at)])
}
