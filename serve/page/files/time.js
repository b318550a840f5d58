// The choice of the range of time.

import { h } from "./preact.js"

/** @param {Props} props */
export function Time({ view, set }) {
	return h("select", { "aria-label": "Time", value: view.since, onChange: (/** @type {any} */ e) => set({ since: e.target.value }) },
		[["15m", "Last 15 minutes"], ["1h", "Last hour"], ["6h", "Last 6 hours"], ["1d", "Last day"]].map(([v, t]) => h("option", { key: v, value: v }, t)))
}
