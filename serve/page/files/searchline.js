// The line for a search, and the chips of the filters below it.

import { h } from "./preact.js"
import { useEffect, useState } from "./hooks.js"

/** @param {Props} props */
export function SearchLine({ view, set, mistake, shared }) {
	const [text, setText] = useState(view.q)
	useEffect(() => setText(view.q), [view.q])
	shared.offer("search", () => /** @type {HTMLElement} */ (document.getElementById("search")).focus())
	return h("form", { class: "search", role: "search", onSubmit: (/** @type {Event} */ e) => { e.preventDefault(); set({ q: text.trim() }) } },
		h("input", {
			id: "search", type: "text", "aria-label": "Search", placeholder: 'text, "two words", /re/, -word, field=value, level>=warn', autocomplete: "off", spellcheck: false,
			value: text, onInput: (/** @type {any} */ e) => setText(e.target.value),
		}),
		mistake ? h("p", { class: "mistake", role: "alert" }, mistake.message) : null)
}

/** @param {Props} props */
export function Chips({ view, set }) {
	if (!view.chips.length) return null
	const but = (/** @type {number} */ i, /** @type {boolean} */ keep) => view.chips.flatMap((c, at) => at !== i ? [c] : keep ? [{ ...c, off: !c.off }] : [])
	return h("ul", { class: "chips", "aria-label": "Filters" },
		view.chips.map((chip, i) => h("li", { key: chip.text },
			h("button", { type: "button", "aria-pressed": !chip.off, onClick: () => set({ chips: but(i, true) }) }, chip.text),
			h("button", { type: "button", "aria-label": "Remove " + chip.text, onClick: () => set({ chips: but(i, false) }) }, "×"))),
		h("li", null, h("button", { type: "button", onClick: () => set({ chips: [] }) }, "Clear filters")))
}
