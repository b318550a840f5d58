// The chosen record: its fields as a tree, or its stored line.

import { h } from "./preact.js"
import * as source from "./source.js"
import { useAnswer } from "./ask.js"
import { termFor } from "./search.js"

/** @param {Props} props */
export function RecordPane({ view, set }) {
	const at = view.sel.indexOf("/"), service = view.sel.slice(0, at), id = view.sel.slice(at + 1)
	const { value, error } = useAnswer(view.sel, (signal) => source.record(service, id, signal))
	return h("section", { class: "record", "aria-label": "Record" },
		h("button", { type: "button", "aria-label": "Close", onClick: () => set({ sel: "" }) }, "×"),
		error ? h("p", { role: "alert" }, error.message) : null,
		value ? h("dl", null, Object.entries(value.line).flatMap(([name, v]) => [h("dt", null, name), h("dd", null, typeof v === "string" ? v : JSON.stringify(v),
			h("button", { type: "button", "aria-label": `Filter for ${name}=${v}`, onClick: () => set({ chips: [...view.chips, { text: termFor(name, v), off: false }] }) }, "+"))])) : null)
}
