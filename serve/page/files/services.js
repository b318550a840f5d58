// The choice of services, with their records in the range.

import { h } from "./preact.js"
import { useState } from "./hooks.js"
import * as source from "./source.js"
import { failed, useAnswer } from "./ask.js"
import { Dialog, line } from "./dialog.js"
import { toggled } from "./state.js"
import { count, levels } from "./format.js"

/** @param {Props} props */
export function Services(props) {
	const [open, setOpen] = useState(false)
	const { view, set, shared } = props
	shared.offer("services", () => setOpen(true))
	const label = view.logql
		? "as in LogQL"
		: view.services.length > 3
			? `${view.services.length} chosen`
			: view.services.join(", ") || "all"
	return h(
		"span",
		{ class: "services" },
		h(
			"button",
			{ "aria-haspopup": "dialog", title: "Services (s)", disabled: !!view.logql, onClick: () => setOpen(true) },
			"Services: ",
			label,
		),
		view.services.length && view.services.length <= 3 && !view.logql
			? h("button", { "aria-label": "All services", title: "All services", onClick: () => set({ services: [] }) }, "×")
			: null,
		h(
			Dialog,
			{ open, close: () => setOpen(false), label: "Services" },
			h(Choice, { ...props, close: () => setOpen(false) }),
		),
	)
}

/** @param {Props & {close: () => void}} props */
function Choice({ view, set, range, asked, close }) {
	const [text, setText] = useState(""),
		[system, setSystem] = useState(view.services.some((s) => s.startsWith("_")))
	const answer = useAnswer(`services ${asked.split(" ")[0]} ${range.from} ${range.to}`, (signal) =>
		source.services(range, signal),
	)
	const known = answer.value?.services ?? [],
		size = (/** @type {Service} */ s) => s.records + s.unflushed
	const most = Math.max(1, ...known.map(size)),
		globs = view.services.filter((s) => !known.some((k) => k.name === s))
	const choose = (/** @type {string} */ name) => set({ services: toggled(view.services, name) })
	const shown = known
		.filter(
			(s) => (system || !s.system || view.services.includes(s.name)) && s.name.includes(text.replace(/[*?].*/, "")),
		)
		.sort((a, b) => size(b) - size(a))
	return h(
		"div",
		{ class: "choice" },
		h(
			"form",
			{
				onSubmit: (/** @type {Event} */ e) => {
					e.preventDefault()
					if (text) {
						choose(/[*?[]/.test(text) ? text : (shown[0]?.name ?? text))
						setText("")
					}
				},
			},
			line("Find a service", text, setText, {
				placeholder: "a name, or a glob as web-*; Enter chooses it",
				autofocus: true,
			}),
		),
		failed(answer),
		answer.loading && !known.length ? h("p", { class: "dim" }, "…") : null,
		answer.value && !shown.length
			? h("p", null, known.length ? "No service has this text in its name." : "No service has records in this range.")
			: null,
		answer.value && !answer.value.complete ? h("p", { class: "mistake" }, answer.value.problems.join("; ")) : null,
		h(
			"ul",
			{ class: "scroll", "aria-label": "Services" },
			globs.map((name) =>
				h(
					"li",
					{ key: name },
					h("label", null, h("input", { type: "checkbox", checked: true, onChange: () => choose(name) }), name),
				),
			),
			shown.slice(0, 500).map((s) =>
				h(
					"li",
					{ key: s.name },
					h(
						"label",
						null,
						h("input", { type: "checkbox", checked: view.services.includes(s.name), onChange: () => choose(s.name) }),
						s.name,
					),
					h(
						"button",
						{
							class: "only",
							onClick: () => {
								set({ services: [s.name] })
								close()
							},
							"aria-label": "Only " + s.name,
						},
						"only",
					),
					h("span", { class: "count" }, count(size(s))),
					h(
						"svg",
						{ class: "share", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": true },
						parts(s, (100 * size(s)) / most),
					),
				),
			),
		),
		shown.length > 500 ? h("p", { class: "dim" }, `${count(shown.length - 500)} more: type a part of the name`) : null,
		h(
			"p",
			{ class: "foot" },
			h(
				"label",
				null,
				h("input", { type: "checkbox", checked: system, onChange: () => setSystem(!system) }),
				"System services",
			),
			view.services.length ? h("button", { onClick: () => set({ services: [] }) }, "All services") : null,
			h("button", { class: "main", onClick: close }, "Done"),
		),
	)
}

/** The bar of a service by level. @param {Service} s @param {number} width */
function parts(s, width) {
	const sum = Object.values(s.levels).reduce((a, b) => a + b, 0) || 1
	let x = 0
	return levels
		.filter((l) => s.levels[l])
		.map((l) => {
			const w = (width * s.levels[l]) / sum
			return h("rect", { key: l, class: l, x: (x += w) - w, width: w, y: 0, height: 8 })
		})
}
