// The fields of the newest records, with their most frequent values. Each says what it is of.

import { h } from "./preact.js"
import { useEffect, useState } from "./hooks.js"
import * as source from "./source.js"
import { failed, useAnswer, useReport } from "./ask.js"
import { line } from "./dialog.js"
import { termOf } from "./term.js"
import { addChip, toggled } from "./state.js"
import { count, narrow, some } from "./format.js"

/** @param {Props} props */
export function Facets(props) {
	const { view, question, asked, report, shared } = props
	const answer = useAnswer(asked, (signal) => source.facets(question, { top: 10 }, signal))
	useReport(report, "fields", answer)
	const [find, setFind] = useState(""),
		[shut, setShut] = useState(narrow())
	const name = find.trim(),
		all = answer.value?.fields ?? [],
		beyond = useAnswer(
			answer.value?.more && name && !all.some((f) => f.name.includes(name)) ? `${asked} ${name}` : "",
			(signal) => source.facets(question, { top: 10, fields: name }, signal),
		),
		fields = [...all, ...(beyond.value?.fields.filter((f) => f.present && !all.some((a) => a.name === f.name)) ?? [])]
	useEffect(() => {
		if (!answer.value) return
		shared.fields = fields.map((f) => f.name)
		shared.act("fields")
	}, [answer.value])
	const basis = answer.value?.basis
	const used = (/** @type {string} */ name) =>
		view.columns.includes(name) || view.split.split(",").includes(name) || props.terms.some((t) => t.name === name)
	const shown = fields
		.filter((f) => f.name.toLowerCase().includes(find.toLowerCase()))
		.map((f) => ({ f, top: used(f.name) }))
		.sort((a, b) => Number(b.top) - Number(a.top))
	return h(
		"aside",
		{ class: "facets" + (shut ? " shut" : ""), "aria-label": "Fields", "aria-busy": answer.loading },
		h("button", { class: "fold", "aria-expanded": !shut, onClick: () => setShut(!shut) }, "Fields"),
		shut
			? null
			: [
					line("Find a field", find, setFind, { placeholder: "find a field" }),
					h(
						"p",
						{ class: "dim basis" },
						!basis
							? "…"
							: basis.newest
								? `values of the newest ${count(basis.records)}${basis.of === undefined ? " records" : ` of ${some(basis.of, "record")}`}`
								: `values of all ${some(basis.records, "record")}`,
					),
					failed(answer),
					answer.value?.more &&
						h("p", { class: "dim" }, "There are more fields than these 200. Find one by its whole name."),
					answer.value && !shown.length
						? h("p", null, fields.length ? "No field has this text in its name." : "No records, so no fields.")
						: null,
					h(
						"div",
						{ class: answer.stale ? "stale" : "" },
						shown.map(({ f, top }) => h(OneField, { key: f.name, ...props, f, basis, top })),
					),
				],
	)
}

/** @param {Props & {f: Field, basis: Basis | undefined, top: boolean}} props */
function OneField(props) {
	const { view, set, f, basis, top, question, asked } = props
	const [open, setOpen] = useState(f.name === "level" || f.name === "service" || top),
		[all, setAll] = useState(false)
	const more = useAnswer(all ? asked + f.name : "", (signal) =>
		source.facets(question, { top: 200, fields: f.name }, signal),
	)
	const field = more.value?.fields.find((m) => m.name === f.name) ?? f,
		of = field.exact ? (basis?.of ?? field.present) : field.present
	const column = view.columns.includes(f.name),
		own = ["ts", "msg", "level", "service"].includes(f.name)
	return h(
		"details",
		{ open, onToggle: (/** @type {any} */ e) => setOpen(e.target.open) },
		h(
			"summary",
			null,
			h("span", { class: "name" }, f.name),
			h("span", { class: "dim" }, `${count(f.distinct)}${f.capped ? "+" : ""}`),
		),
		open
			? h(
					"div",
					null,
					h(
						"p",
						{ class: "dim" },
						field.exact ? "of all records" : `${f.type}, in ${some(f.present, "record")}`,
						h("button", { "aria-label": `Histogram by ${f.name}`, onClick: () => set({ split: f.name }) }, "histogram"),
						own
							? null
							: h(
									"button",
									{
										"aria-pressed": column,
										"aria-label": `Show as column ${f.name}`,
										onClick: () => set({ columns: toggled(view.columns, f.name) }),
									},
									"column",
								),
					),
					h(
						"ul",
						null,
						field.values.map((v) => {
							const whole = !view.logql && !!termOf(f.name, v)
							return h(
								"li",
								{ key: v.value },
								h(
									"button",
									{
										class: "value",
										disabled: !whole,
										title: v.value,
										"aria-label": `Filter for ${f.name}=${v.value}`,
										onClick: () => addChip(props, termOf(f.name, v)),
									},
									v.value || '""',
								),
								h("span", { class: "count", title: `${((100 * v.count) / of).toFixed(1)} %` }, count(v.count)),
								h(
									"button",
									{
										class: "minus",
										disabled: !whole,
										"aria-label": `Filter out ${f.name}=${v.value}`,
										onClick: () => addChip(props, termOf(f.name, v, true)),
									},
									"−",
								),
								h("div", { class: "part", style: { width: (100 * v.count) / of + "%" } }),
							)
						}),
					),
					!all && f.distinct > f.values.length ? h("button", { onClick: () => setAll(true) }, "more values") : null,
					more.loading ? "…" : failed(more),
				)
			: null,
	)
}
