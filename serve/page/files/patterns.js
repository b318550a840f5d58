// The patterns of messages: templates of the view, and how they differ from another window.

import { h } from "./preact.js"
import { useState } from "./hooks.js"
import * as source from "./source.js"
import { useAnswer, useReport } from "./ask.js"
import { addChip, button, instead, visible } from "./record.js"
import { count, duration, ms, some, stamp, time } from "./format.js"

const marks = ["new", "more", "less", "gone"]

/** The second window, if there can be one. @param {View} view @param {Times} range */
function second({ against }, { from, to }) {
	if (against.includes("/")) return against.split("/")
	const back = against === "yesterday" ? 864e5 : ms(to) - ms(from)
	return back && against ? [stamp(ms(from) - back), against === "before" ? from : stamp(ms(to) - back)] : []
}

/** @param {Props} props */
export function Patterns(props) {
	const { view, set, question, range, asked, report } = props, [from2, to2] = second(view, range), [only, setOnly] = useState(""), [sort, setSort] = useState("new")
	const answer = useAnswer(asked + view.against, (signal) => source.patterns(question, { top: 200, from2, to2 }, signal)), { value } = answer
	useReport(report, "patterns", answer)
	const choose = (/** @type {string} */ name, /** @type {string} */ value, /** @type {(v: any) => void} */ run, /** @type {string[][]} */ options) => h("label", null, name, h("select", { value, onChange: (/** @type {any} */ e) => run(e.target.value) }, options.map(([v, t]) => h("option", { key: v, value: v }, t))))
	const b = view.against.includes("/") && `${from2.slice(0, 19)} to ${to2.slice(0, 19)} UTC`, day = { day: true, digits: 0 }
	const rows = value ? rowsOf(value) : [], against = value?.against
	const shown = rows.filter((p) => !only || p.mark === only).sort((a, b) => (sort === "new" ? (marks.indexOf(a.mark) + 5) % 5 - (marks.indexOf(b.mark) + 5) % 5 : sort === "last" ? ms(b.last) - ms(a.last) : 0) || b.count - a.count)
	return h("section", { class: "patterns", "aria-label": "Patterns" },
		h("div", { class: "bar" }, choose("Compare with", view.against, (against) => set({ against }), [["", "nothing"], ["before", "Before (the same length just before)"], ["yesterday", "Yesterday, same time"], ...(b ? [[view.against, "Window B: " + b]] : [])]),
			choose("Sort by", sort, setSort, [["new", "new first"], ["count", "count"], ["last", "last seen"]]),
			against && marks.map((mark) => h("button", { key: mark, "aria-pressed": only === mark, onClick: () => setOnly(only === mark ? "" : mark) }, `${mark[0].toUpperCase()}${mark.slice(1)} ${rows.filter((p) => p.mark === mark).length}`))),
		instead(answer), value && h("div", { class: answer.stale ? "stale" : "" }, h("p", { class: "dim" }, basis(value.basis), against ? ` Compared with ${time(against.from, view.utc, day)} to ${time(against.to, view.utc, day)}: ${basis(against.basis)}` : from2 ? "" : " To compare, choose a window and a time with both ends.", value.others ? ` ${some(value.others, "record")} of rarer patterns are left out.` : ""),
			against && (!value.complete || against.basis.newest) && h("p", { class: "mistake" }, value.complete ? "New means: not in the part of the second window that was read." : "Records are missing, so a new pattern may have been there before."),
			rows.length ? h("table", null, h("thead", null, h("tr", null, ["Change", "Count", "Over time", "Pattern", ""].map((t) => h("th", { key: t, scope: "col" }, t)))), h("tbody", null, shown.map((p) => h(Line, { ...props, p, by: value.by, key: p.id }))))
				: h("p", null, "No record of this time passes the filters. Choose a longer time, or remove a filter.")))
}

/** The patterns with their change; of one that is gone, the count is that of the second window. @param {Patterns} value */
function rowsOf({ patterns, against }) {
	const changes = new Map(against?.new.map((id) => [id, { mark: "new", was: 0 }]))
	for (const mark of /** @type {const} */ (["more", "less"])) for (const { id, before } of against?.[mark] ?? []) changes.set(id, { mark, was: before })
	return [...patterns.map((p) => ({ ...p, ...(changes.get(p.id) ?? { mark: "", was: 0 }) })), ...(against?.gone ?? []).map((p) => ({ ...p, mark: "gone", was: 0 }))]
}

/** @param {Basis} basis */
const basis = ({ records, of, newest }) => (newest ? `Of the newest ${count(records)} of ${some(of ?? records, "record")}.` : `Of all ${some(records, "record")}.`)

/** @param {Props & {p: Pattern & {mark: string, was: number}, by: string}} props */
function Line(props) {
	const { view, set, p, range, by } = props, text = visible(p.template), name = text.slice(0, 100), most = Math.max(...p.buckets.map((b) => b.n)), left = ms(range.from || p.first), k = 100 / (ms(range.to || p.last) - left)
	const listed = (/** @type {Record<string, number>} */ numbers) => Object.entries(numbers).sort((a, b) => b[1] - a[1]).slice(0, 5).map(([k, n]) => `${k} ${count(n)}`).join(", ")
	return h("tr", null, h("td", { class: p.mark }, p.mark, p.was ? ` (was ${count(p.was)})` : ""), h("td", null, count(p.count), h("p", { class: "dim" }, +(100 * p.share).toPrecision(2), " %")),
		h("td", null, h("svg", { width: 100, height: 20, "aria-hidden": "true" }, p.mark !== "gone" && p.buckets.map(({ t, n }) => h("rect", { key: t, x: k * (ms(t) - left), width: Math.max(1, k * (duration(by) || 0)), y: 20 - (20 * n) / most, height: (20 * n) / most })))),
		h("td", null, h("bdi", null, text.split("<*>").flatMap((t, i) => (i ? [h("i", { key: i }, "<*>"), t] : t))), h("p", { class: "dim" }, [listed(p.levels), listed(p.services), `${time(p.first, view.utc)} to ${time(p.last, view.utc)}`].join(" · "))),
		h("td", null, button("Filter for " + name, () => addChip(props, `where:(${p.where})`), "+"), button("Filter out " + name, () => addChip(props, `-where:(${p.where})`), "−"), button("Example of " + name, () => set({ sel: `${p.example.service}/${p.example.id}` }), "Example")))
}
