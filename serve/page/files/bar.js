// The bar of what is missing, which does not go away by itself, and the foot with the cost.

import { h } from "./preact.js"
import { bytes, some } from "./format.js"

/** @param {Props & {parts: Map<string, Part>}} props */
export function Missing({ parts, again }) {
	const said = new Set()
	for (const [, { outcome, error }] of parts) {
		if (error) said.add(error.message)
		outcome?.problems.forEach((p) => said.add(p))
	}
	if (!said.size) return null
	return h("section", { class: "missing", role: "alert", "aria-label": "Missing" }, h("ul", null, [...said].map((text) => h("li", { key: text }, text))),
		h("button", { type: "button", onClick: again }, "Try again"))
}

/** @param {Props & {parts: Map<string, Part>}} props */
export function Foot({ parts, who }) {
	let requests = 0, size = 0
	for (const [, { outcome }] of parts) {
		requests += outcome?.cost?.requests ?? 0
		size += outcome?.cost?.bytes ?? 0
	}
	return h("footer", null, `${some(requests, "request")}, ${bytes(size)}`, who ? ` · blobtail ${who.version}` : "")
}
