// The records around one: of its service, of all, or with the same value of a field, such as the id
// of a request. The marked one stays when another is chosen, until the other's are asked for.

import { h } from "./preact.js"
import { useEffect, useRef, useState } from "./hooks.js"
import * as source from "./source.js"
import { instead, useAnswer, useReport } from "./ask.js"
import { marked, msOf, nameOf, partsOf } from "./rows.js"
import { questionOf, termFor } from "./term.js"
import { start } from "./state.js"
import { narrow, stamp, time } from "./format.js"
import { useOffers } from "./keys.js"
import { button, find, ids, leaves, root, runOf, split } from "./record.js"

/** @param {Props} props @param {string} anchor @param {Reach} reach @param {AbortSignal} signal @returns {Promise<Outcome & {rows: Row[]}>} */
async function load({ view, shared }, anchor, { before, after, hours }, signal) {
	/** @type {Row[][]} */
	const [older, rows] = [[], []],
		[service, id] = split(anchor),
		each = (/** @type {Row[]} */ more) => rows.push(...more)
	if (view.around[0] !== "=")
		return { ...(await source.context({ service, id, before, after, services: view.around, each }, signal)), rows }
	const row = find(shared, { ...view, sel: anchor })[0] ?? (await source.record(service, id, signal)).row,
		value = [...leaves(root(row.line))].find((m) => "=" + m.name === view.around)
	if (!value) throw new Error("This record has no field " + view.around.slice(1))
	const at = msOf(id),
		q = questionOf(
			{ ...start, services: ["*", service], chips: [{ text: termFor(value.name, value.raw), off: false }] },
			{ from: stamp(at - hours * 36e5), to: stamp(at + hours * 36e5) },
		)
	const [a, b] = await Promise.all([
		source.records(q, { limit: before, before: id, each: (more) => older.push(...more) }, signal),
		source.records(q, { limit: after, oldest: true, after: id, each }, signal),
	])
	return { ...source.joined(a, b), rows: [...older.reverse(), { ...row, anchor: true }, ...rows] }
}

/** @param {Props} props */
export function Context(props) {
	const { view, set, shared } = props,
		box = useRef(/** @type {any} */ (null)),
		[anchor, setAnchor] = useState(view.sel),
		[n, setN] = useState({ before: 10, after: 10, hours: 1 })
	const mark = (/** @type {string} */ text) => marked(text, props.texts, view.fold)
	const kind = anchor + view.around,
		move = () => setAnchor(view.sel)
	const answer = useAnswer(JSON.stringify([runOf(props), kind, n]), async (signal) => ({
			...(await load(props, anchor, n, signal)),
			kind,
		})),
		{ value } = answer
	useReport(props.report, "context", answer)
	const rows = (shared.near = value?.rows ?? []),
		at = rows.findIndex((r) => r.anchor),
		field = view.around[0] === "=" && view.around.slice(1),
		reach = field && ` within ${n.hours} h`
	useEffect(() => void (find({ ...shared, rows: [] }, view)[0] || move()), [view.sel])
	useEffect(() => box.current.querySelector("[aria-current]")?.scrollIntoView({ block: "center" }), [value?.kind])
	useEffect(
		() => () => {
			shared.near = []
		},
		[],
	)
	useOffers(shared, { anchor: move })
	const more = (/** @type {"before" | "after"} */ side, /** @type {number} */ have) =>
		h(
			"p",
			null,
			button(
				"10 more " + side,
				() => {
					box.current.scrollTop ||= 1 // or the rows would not keep their place
					setN({ ...n, [side]: Math.min(1000, n[side] + 10) })
				},
				undefined,
				{ disabled: have < n[side] || have === 1000 },
			),
			have < n[side] && !answer.loading && ["no more", reach],
		)
	const radio = (/** @type {string} */ kind, /** @type {string} */ name) =>
		h(
			"label",
			{ key: kind },
			h("input", {
				type: "radio",
				name: "around",
				checked: view.around === kind,
				onChange: () => {
					move()
					set({ around: kind })
				},
			}),
			name,
		)
	const onKeyDown = (/** @type {any} */ e) => {
		const row = e.target,
			to = { ArrowDown: row.nextSibling, j: row.nextSibling, ArrowUp: row.previousSibling, k: row.previousSibling }[
				/** @type {"j"} */ (e.key)
			]
		if (to === undefined && e.key !== "Enter") return
		e.preventDefault()
		to === undefined ? row.click() : to?.focus()
	}
	return h(
		"section",
		{ class: "context", "aria-label": "Context" },
		h(
			"div",
			{ class: "scroll", ref: box },
			h(
				"div",
				{ class: "bar" },
				radio("same", "This service"),
				radio("all", "All services"),
				[...new Set([...(field ? [field] : []), ...(rows[at] ? ids(rows[at].line) : []).map((m) => m.name)])].map((f) =>
					radio("=" + f, "Same " + f),
				),
				h("span", { class: "space" }),
				button("Back to the list", () => set({ around: "" })),
			),
			h(
				"p",
				{ class: "dim" },
				field && `Of all services, with the same ${field},${reach}. `,
				"Filters are off here.",
				field && n.hours < 24 && button("Look within 24 h", () => setN({ ...n, hours: 24 })),
			),
			instead(answer),
			value &&
				h(
					"div",
					{ class: answer.stale ? "stale" : "" },
					more("before", at),
					h(
						"div",
						{ role: "grid", "aria-label": "Records around", onKeyDown },
						rows.map((row) => {
							const p = partsOf(row),
								sel = nameOf(row)
							return h(
								"div",
								{
									key: sel,
									role: "row",
									class: "row near " + p.level,
									"data-id": sel,
									tabIndex: row.anchor ? 0 : -1,
									"aria-current": row.anchor && "true",
									"aria-selected": sel === view.sel,
									onClick: () => set({ sel, around: narrow() ? "" : view.around }),
								},
								Object.entries({
									ts: time(p.ts, view.utc),
									level: p.level,
									service: p.service,
									msg: [h("bdi", null, mark(p.msg)), " ", h("span", { class: "rest" }, mark(p.rest))],
								}).map(([kind, what]) => h("span", { role: "gridcell", class: kind, key: kind }, what)),
							)
						}),
					),
					more("after", rows.length - 1 - at),
				),
		),
	)
}
