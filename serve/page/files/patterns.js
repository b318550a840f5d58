// The patterns of messages: templates of the view, and their change against another window.

import { h } from "./preact.js"
import { useState } from "./hooks.js"
import * as source from "./source.js"
import { useAnswer, useReport } from "./ask.js"
import { addChip, button, instead, visible } from "./record.js"
import { count, duration, ms, some, stamp, time } from "./format.js"

const marks = /** @type {const} */ (["new", "gone", "more", "less"])

/** The second window; none if the first one is open. @param {View} view @param {Times} range @returns {Times | undefined} */
function second({ against }, { from, to }) {
	if (against.includes("/")) return { from: against.split("/")[0], to: against.split("/")[1] }
	if (!from || !to || !against) return undefined
	const back = against === "yesterday" ? 86_400_000 : ms(to) - ms(from)
	return { from: stamp(ms(from) - back), to: against === "before" ? from : stamp(ms(to) - back) }
}

/** @param {Props} props */
export function Patterns(props) {
	const { view, set, question, range, asked, report } = props, other = second(view, range)
	const [only, setOnly] = useState(""), [sort, setSort] = useState("new"), [group, setGroup] = useState("")
	const answer = useAnswer(asked + view.against, (signal) => source.patterns(question, { top: 200, from2: other?.from, to2: other?.to }, signal)), value = answer.value
	useReport(report, "patterns", answer)
	const choose = (/** @type {string} */ name, /** @type {string} */ value, /** @type {(v: any) => void} */ run, /** @type {string[][]} */ options) => h("label", null, name + " ", h("select", { value, onChange: (/** @type {any} */ e) => run(e.target.value) }, options.map(([v, t]) => h("option", { key: v, value: v }, t))))
	const b = view.against.includes("/") ? view.against : `${range.from}/${range.to}`
	const bound = (/** @type {number} */ i) => h("input", { type: "text", "aria-label": "Window B " + (i ? "to" : "from"), value: b.split("/")[i], onChange: (/** @type {any} */ e) => set({ against: b.split("/").map((t, at) => (at === i ? e.target.value : t)).join("/") }) })
	return h("section", { class: "patterns", "aria-label": "Patterns" },
		h("div", { class: "bar" }, choose("Compare with", view.against.includes("/") ? b : view.against, (against) => set({ against }), [["", "nothing"], ["before", "Before (the same length just before)"], ["yesterday", "Yesterday, same time"], [b, "Window B"]]),
			view.against.includes("/") ? [bound(0), bound(1)] : null,
			choose("Sort by", sort, setSort, [["new", "new first"], ["count", "count"], ["last", "last seen"]]), choose("Group by", group, setGroup, [["", "nothing"], ["services", "service"], ["levels", "level"]])),
		view.against && !other ? h("p", null, "To compare, choose a time that has a begin and an end.") : null,
		instead(answer), value ? h(Table, { ...props, value, only, setOnly, sort, group, key: "table" }) : null)
}

/** @param {Props & {value: Patterns, only: string, setOnly: (mark: string) => void, sort: string, group: string}} props */
function Table(props) {
	const { view, set, value, range, only, setOnly, sort, group } = props, { against, basis } = value
	/** @type {Record<string, {mark: string, was: number}>} */
	const marked = {}
	for (const id of against?.new ?? []) marked[id] = { mark: "new", was: 0 }
	for (const mark of /** @type {const} */ (["more", "less"])) for (const { id, before } of against?.[mark] ?? []) marked[id] = { mark, was: before }
	let rows = value.patterns.map((p) => ({ ...p, ...(marked[p.id] ?? { mark: "", was: -1 }) })).concat((against?.gone ?? []).map((p) => ({ ...p, mark: "gone", was: p.count, count: 0 })))
	const numbers = marks.map((mark) => rows.filter((p) => p.mark === mark).length)
	if (!rows.length) return h("p", null, "No record of this range passes the filters. Choose a longer time, or remove a filter.")
	rows = rows.filter((p) => !only || p.mark === only).sort((a, b) => (sort === "new" ? order(a.mark) - order(b.mark) : sort === "last" ? ms(b.last) - ms(a.last) : 0) || b.count - a.count || b.was - a.was)
	const groups = new Map([["", rows]])
	if (group) {
		groups.clear()
		for (const p of rows) {
			const key = Object.entries(p[/** @type {"levels"} */ (group)]).sort((a, b) => b[1] - a[1])[0]?.[0] ?? "none"
			groups.set(key, [...(groups.get(key) ?? []), p])
		}
	}
	const from = ms(range.from || rows[0].first), width = Math.max(1, ms(range.to || rows[0].last) - from), by = duration(value.by) || width / 60
	const day = { day: true, digits: 0 }
	return h("div", null, h("p", { class: "dim" }, of(basis), against ? ` Compared with ${time(against.from, view.utc, day)} to ${time(against.to, view.utc, day)}: ${of(against.basis)}` : "", value.others ? ` ${some(value.others, "record")} of rarer patterns are not shown.` : ""),
		against && (against.basis.newest || basis.newest) ? h("p", null, "Not all records were looked at: new means that the second window's part has none.") : null,
		against && !value.complete ? h("p", { class: "mistake" }, "A part of the records could not be read, so a pattern that is marked as new may have been there before.") : null,
		against ? h("p", null, marks.map((mark, i) => h("button", { key: mark, "aria-pressed": only === mark, onClick: () => setOnly(only === mark ? "" : mark) }, `${mark[0].toUpperCase()}${mark.slice(1)} ${numbers[i]}`))) : null,
		h("table", null, h("thead", null, h("tr", null, ["Change", "Count", "Share", "Over time", "Pattern", ""].map((t) => h("th", { key: t, scope: "col" }, t)))),
			[...groups].map(([name, list]) => h("tbody", { key: name }, name ? h("tr", null, h("th", { colSpan: 6, scope: "rowgroup" }, name)) : null, list.map((p) => {
				const most = Math.max(1, ...p.buckets.map((b) => b.n)), text = visible(p.template), title = text.slice(0, 100)
				return h("tr", { key: p.id }, h("td", { class: p.mark }, p.mark, p.was > 0 && p.mark !== "gone" ? ` (was ${count(p.was)})` : ""), h("td", null, count(p.mark === "gone" ? p.was : p.count)), h("td", null, p.mark === "gone" ? "" : `${(100 * p.share).toPrecision(2)} %`),
					h("td", null, h("svg", { viewBox: "0 0 100 16", width: 100, height: 16, role: "img", "aria-label": "Over time" }, p.mark === "gone" ? null : p.buckets.map((b) => h("rect", { key: b.t, x: (100 * (ms(b.t) - from)) / width, width: Math.max(1, (100 * by) / width), y: 16 - (16 * b.n) / most, height: (16 * b.n) / most })))),
					h("td", null, h("bdi", null, text.split("<*>").flatMap((t, i) => (i ? [h("i", { key: i }, "<*>"), t] : [t]))),
						h("p", { class: "dim" }, listed(p.levels), " · ", listed(p.services), ` · ${time(p.first, view.utc, day)} to ${time(p.last, view.utc, day)}`)),
					h("td", null, button("Filter for " + title, () => addChip(props, `where:(${p.where})`), "+"), button("Filter out " + title, () => addChip(props, `where:(not (${p.where}))`), "−"), button("Example of " + title, () => set({ sel: `${p.example.service}/${p.example.id}` }), "Example")))
			})))))
}

/** @param {string} mark */
const order = (mark) => ["new", "more", "less", "", "gone"].indexOf(mark)

/** @param {Record<string, number>} numbers */
const listed = (numbers) => Object.entries(numbers).sort((a, b) => b[1] - a[1]).slice(0, 5).map(([k, n]) => `${visible(k)} ${count(n)}`).join(", ")

/** @param {Basis} basis */
const of = ({ records, of, newest }) => (newest ? `Of the newest ${count(records)} of ${some(of ?? records, "record")}.` : `Of all ${some(records, "record")}.`)
