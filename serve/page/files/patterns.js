// The patterns of messages: templates of the view, and how they differ from another window.

import { h } from "./preact.js"
import { useState } from "./hooks.js"
import * as source from "./source.js"
import { instead, useAnswer, useReport } from "./ask.js"
import { button, visible } from "./record.js"
import { addChip } from "./state.js"
import { count, duration, ms, some, stamp, time } from "./format.js"

const marks = ["new", "more", "less", "gone"],
	day = { day: true, digits: 0 }

/** The second window; none if the first has an open end. @param {View} view @param {Times} range */
export function second({ against }, { from, to }) {
	if (against.includes("/")) return against.split("/")
	const length = ms(to) - ms(from),
		back = against === "yesterday" ? 864e5 : length
	return length > 0 && against ? [stamp(ms(from) - back), against === "before" ? from : stamp(ms(to) - back)] : []
}

/** Of one that is gone, the numbers are those of the second window. @param {Patterns} value @returns {Line[]} */
export function linesOf({ patterns, against }) {
	const changes = new Map(against?.new.map((id) => [id, { mark: "new", was: 0 }]))
	for (const mark of /** @type {const} */ (["more", "less"]))
		for (const { id, before } of against?.[mark] ?? []) changes.set(id, { mark, was: before })
	return [
		...patterns.map((p) => ({ ...p, ...(changes.get(p.id) ?? { mark: "", was: 0 }) })),
		...(against?.gone ?? []).map((p) => ({ ...p, mark: "gone", was: 0 })),
	]
}

/** @param {Basis} basis */
const basis = ({ records, of, newest }) =>
	newest ? `the newest ${count(records)} of ${some(of ?? records, "record")}` : `all ${some(records, "record")}`

/** @param {Props} props */
export function Patterns(props) {
	const { view, set, question, range, asked, report } = props,
		[from2, to2] = second(view, range),
		[only, setOnly] = useState(""),
		[first, setFirst] = useState(true),
		[group, setGroup] = useState("")
	const answer = useAnswer(asked + view.against, (signal) =>
			source.patterns(question, { top: 200, from2, to2 }, signal),
		),
		{ value } = answer,
		against = value?.against
	useReport(report, "patterns", answer)
	const lines = value ? linesOf(value) : [],
		order = (/** @type {Line} */ p) => (first ? ["new", "more", "less", "", "gone"].indexOf(p.mark) : 0)
	const b = view.against.includes("/") ? view.against : "/",
		choose = (
			/** @type {string} */ name,
			/** @type {string} */ value,
			/** @type {(value: any) => void} */ run,
			/** @type {Record<string, string>} */ options,
		) =>
			h(
				"label",
				null,
				name + " ",
				h(
					"select",
					{ value, onChange: (/** @type {any} */ e) => run(e.target.value) },
					Object.entries(options).map(([value, text]) =>
						h("option", { key: value, value, disabled: value === "/" }, text),
					),
				),
			)
	const shown = lines
		.filter((p) => !against || !only || p.mark === only)
		.sort((a, b) => order(a) - order(b) || b.count - a.count)
	/** @type {Record<string, Line[]>} */
	const groups = {}
	for (const p of shown) (groups[group && `${ranked(p[/** @type {"levels"} */ (group)])[0]?.[0]} `] ??= []).push(p)
	return h(
		"section",
		{ class: "patterns", "aria-label": "Patterns" },
		h(
			"div",
			{ class: "bar" },
			choose("Compare with", view.against, (against) => set({ against }), {
				"": "nothing",
				before: "Before (the same length just before)",
				yesterday: "Yesterday, same time",
				[b]: b === "/" ? "Window B (Shift and drag in the histogram)" : `Window B (from ${time(from2, view.utc, day)})`,
			}),
			choose("Group by", group, setGroup, { "": "nothing", services: "service", levels: "level" }),
			h("button", { "aria-pressed": first, onClick: () => setFirst(!first) }, "New first"),
			against &&
				marks.map((mark) =>
					h(
						"button",
						{ key: mark, "aria-pressed": only === mark, onClick: () => setOnly(only === mark ? "" : mark) },
						`${mark[0].toUpperCase()}${mark.slice(1)} ${lines.filter((p) => p.mark === mark).length}`,
					),
				),
		),
		instead(answer),
		value &&
			h(
				"div",
				{ class: answer.stale ? "stale" : "" },
				h(
					"p",
					{ class: "dim" },
					`Patterns of ${basis(value.basis)}`,
					against
						? `, compared with ${basis(against.basis)} from ${time(against.from, view.utc, day)} to ${time(against.to, view.utc, day)}.`
						: from2
							? "."
							: ". To compare, choose a window, and a time with both ends.",
					value.others ? ` ${some(value.others, "record")} of rarer patterns are left out.` : "",
				),
				against &&
					(against.lacks || against.basis.newest) &&
					h(
						"p",
						{ class: against.lacks ? "mistake" : "" },
						against.lacks
							? "Records of the second window are missing, so a new pattern may have been there before."
							: "New means: not among the records of the second window that were looked at.",
					),
				shown.length
					? h(
							"table",
							null,
							h(
								"thead",
								null,
								h(
									"tr",
									null,
									["Change", "Count", "Over time", "Pattern", "Filter"].map((t) =>
										h("th", { key: t, scope: "col" }, t),
									),
								),
							),
							Object.entries(groups).map(([name, list]) =>
								h(
									"tbody",
									{ key: name },
									name && h("tr", null, h("th", { colSpan: 5, scope: "rowgroup" }, h("b", null, name))),
									list.map((p) => h(Row, { ...props, p, by: value.by, key: p.id })),
								),
							),
						)
					: h(
							"p",
							null,
							lines.length
								? `None is ${only}.`
								: "No record of this time passes the filters. Choose a longer time, or remove a filter.",
						),
			),
	)
}

/** @param {Record<string, number>} numbers */
const ranked = (numbers) => Object.entries(numbers).sort((a, b) => b[1] - a[1])

/** @param {Props & {p: Line, by: string}} props */
function Row(props) {
	const { view, set, p, range, by } = props,
		text = visible(p.template.length > 400 ? p.template.slice(0, 400) + "…" : p.template),
		name = text.slice(0, 100),
		most = Math.max(...p.buckets.map((b) => b.n)),
		left = ms(range.from || p.first),
		k = 100 / (ms(range.to || p.last) - left)
	const list = (/** @type {Record<string, number>} */ numbers) =>
		ranked(numbers)
			.slice(0, 5)
			.map(([k, n]) => `${k} ${count(n)}`)
			.join(", ")
	return h(
		"tr",
		null,
		h("td", { class: p.mark }, p.mark, p.was > 0 && h("p", { class: "dim" }, "was ", count(p.was))),
		h("td", null, count(p.count), h("p", { class: "dim" }, +(100 * p.share).toPrecision(2), " %")),
		h(
			"td",
			null,
			h(
				"svg",
				{ width: 100, height: 20, "aria-hidden": "true" },
				p.mark !== "gone" &&
					p.buckets.map(({ t, n }) =>
						h("rect", {
							key: t,
							x: k * (ms(t) - left),
							width: Math.max(1, k * duration(by)),
							y: 20 - (20 * n) / most,
							height: (20 * n) / most,
						}),
					),
			),
		),
		h(
			"td",
			null,
			h(
				"bdi",
				null,
				text.split("<*>").flatMap((t, i) => (i ? [h("i", { key: i }, "<*>"), t] : t)),
			),
			h(
				"p",
				{ class: "dim" },
				[
					list(p.levels),
					list(p.services),
					[p.first, p.last].map((t) => time(t, view.utc, { day: k < 1e-6, digits: 0 })).join(" to "),
				].join(" · "),
			),
		),
		h(
			"td",
			null,
			button("Filter for " + name, () => addChip(props, `where:(${p.where})`), "+"),
			button("Filter out " + name, () => addChip(props, `-where:(${p.where})`), "−"),
			button("Example of " + name, () => set({ sel: `${p.example.service}/${p.example.id}` }), "Example"),
		),
	)
}
