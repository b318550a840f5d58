// The list of records: rows in view only, and older ones as one scrolls.

import { h } from "./preact.js"
import { useEffect, useRef, useState } from "./hooks.js"
import * as source from "./source.js"
import { useReport } from "./ask.js"
import { nameOf, partsOf } from "./rows.js"
import { time } from "./format.js"

const rowHeight = 20, page = 200

/** @param {Props} props */
export function List({ view, set, question, report, shared, asked }) {
	const [state, setState] = useState(/** @type {{rows: Row[], end?: End, error?: Error, loading: boolean}} */ ({ rows: [], loading: true }))
	const [top, setTop] = useState(0)
	const box = useRef(/** @type {HTMLElement | null} */ (null))
	const busy = useRef(/** @type {AbortController | undefined} */ (undefined))
	shared.rows = state.rows

	const load = (/** @type {Row[]} */ have) => {
		busy.current?.abort()
		const giveUp = (busy.current = new AbortController())
		let rows = have
		setState((s) => ({ ...s, loading: true, error: undefined }))
		const last = have.at(-1)?.id
		source.records(question, { limit: page, oldest: view.oldest, before: view.oldest ? undefined : last, after: view.oldest ? last : undefined, each: (more) => setState((s) => ({ ...s, rows: (rows = rows.concat(more)) })) }, giveUp.signal).then(
			(end) => setState({ rows, end, loading: false }),
			(error) => giveUp.signal.aborted || setState({ rows, error, loading: false }))
	}
	useEffect(() => {
		if (box.current) box.current.scrollTop = 0
		setState({ rows: [], loading: true })
		load([])
		return () => busy.current?.abort()
	}, [asked, view.oldest])
	useReport(report, "records", { value: state.end, error: state.error, loading: state.loading && !state.rows.length, stale: false })

	const height = box.current?.clientHeight ?? 600
	const from = Math.max(0, Math.floor(top / rowHeight) - 10), to = Math.min(state.rows.length, from + Math.ceil(height / rowHeight) + 20)
	const more = state.end?.more
	return h("div", {
		class: "list", role: "grid", "aria-label": "Records", "aria-rowcount": more ? -1 : state.rows.length, tabIndex: 0, ref: box,
		onScroll: (/** @type {any} */ e) => {
			setTop(e.target.scrollTop)
			if (more && !state.loading && e.target.scrollTop + 2 * height > state.rows.length * rowHeight) load(state.rows)
		},
	},
	h("div", { class: "rows", style: { height: state.rows.length * rowHeight + "px" } },
		state.rows.slice(from, to).map((row, i) => {
			const parts = partsOf(row), name = nameOf(row)
			return h("div", {
				key: name, role: "row", "data-id": name, "aria-rowindex": from + i + 1, "aria-selected": view.sel === name, class: "row " + parts.level, style: { top: (from + i) * rowHeight + "px" },
				onClick: () => set({ sel: name }),
			},
			h("span", { role: "gridcell", class: "ts", title: parts.ts }, time(parts.ts, view.utc)), h("span", { role: "gridcell", class: "level" }, parts.level),
			h("span", { role: "gridcell", class: "service" }, parts.service), h("span", { role: "gridcell", class: "msg" }, parts.msg, " ", h("span", { class: "rest" }, parts.rest)))
		})))
}
