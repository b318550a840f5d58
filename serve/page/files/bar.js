// The bar of what is missing, which does not go away by itself, notes, and the foot with the cost.

import { h } from "./preact.js"
import { useEffect, useRef, useState } from "./hooks.js"
import { bytes, some, time } from "./format.js"

/** The parts as they fared last: one that asks again counts as before. @param {Map<string, Part>} parts */
function useLast(parts) {
	const last = useRef(/** @type {Map<string, Part>} */ (new Map())).current
	for (const name of last.keys()) if (!parts.has(name)) last.delete(name)
	for (const [name, part] of parts) if (!part.loading || !last.has(name)) last.set(name, part)
	return [...last]
}

/** Texts, each with the parts of the page that it is about. @param {[string, Part][]} parts @param {(part: Part) => (string | undefined)[]} textsOf */
function grouped(parts, textsOf) {
	/** @type {Map<string, Set<string>>} */
	const out = new Map()
	for (const [name, part] of parts) for (const text of textsOf(part)) if (text) out.set(text, (out.get(text) ?? new Set()).add(name))
	return [...out].map(([text, names]) => h("li", { key: text }, text, h("span", { class: "dim" }, ` (${[...names].join(", ")})`)))
}

/** @param {Props & {parts: Map<string, Part>}} props */
export function Missing({ parts, again, left, view }) {
	const [read, setRead] = useState(/** @type {string[]} */ ([])), last = useLast(parts)
	const out = last.some(([, p]) => /** @type {any} */ (p.error)?.status === 401)
	useEffect(() => { if (out) left() }, [out])
	const when = (/** @type {string} */ t) => time(t, view.utc, { day: true, digits: 0 })
	const missing = grouped(last, ({ error, outcome: o }) => [error?.message, ...(o?.problems ?? []),
		...(o?.gaps ?? []).map((g) => `${g.service}: ${g.at_most ? "at most " : ""}${some(g.records, "record")} from ${when(g.from)} to ${when(g.to)} cannot be read`),
		o && !o.complete && !o.problems.length && !o.gaps.length ? "records are missing, and the server does not say why; its log may" : ""])
	const notes = grouped(last, ({ outcome: o }) => [...(o?.warnings ?? []), ...(o?.notes ?? [])].filter((t) => !read.includes(t)))
	return [
		missing.length ? h("section", { key: "m", class: "missing", "aria-label": "Missing" }, h("div", { role: "alert" }, h("b", null, "What you see is not everything"), h("ul", null, missing)),
			h("button", { type: "button", onClick: again }, [...parts.values()].some((p) => p.loading) ? "Asking…" : "Try again")) : null,
		notes.length ? h("section", { key: "n", class: "missing calm", "aria-label": "Notes" }, h("ul", { role: "status" }, notes),
			h("button", { type: "button", "aria-label": "Dismiss notes", onClick: () => setRead([...read, ...notes.map((n) => /** @type {string} */ (n.key))]) }, "×")) : null,
	]
}

/** @param {Props & {parts: Map<string, Part>}} props */
export function Foot({ parts, who, asked, shared }) {
	const clock = useRef({ asked: "", began: 0, took: "" }).current, last = useLast(parts)
	if (clock.asked !== asked) Object.assign(clock, { asked, began: performance.now(), took: "" })
	if (!clock.took && parts.size && ![...parts.values()].some((p) => p.loading)) clock.took = `${((performance.now() - clock.began) / 1000).toFixed(1)} s`
	const sum = (/** @type {"requests" | "bytes"} */ what) => last.reduce((n, [, p]) => n + (p.outcome?.cost?.[what] ?? 0), 0)
	const cost = (/** @type {number} */ requests, /** @type {number} */ size) => `${some(requests, "request")}, ${bytes(size)}`
	return h("footer", null,
		h("span", { title: "What the answers of this view cost, from the storage:\n" + last.filter(([, p]) => p.outcome?.cost).map(([name, p]) => `${name}: ${cost(p.outcome?.cost.requests ?? 0, p.outcome?.cost.bytes ?? 0)}`).join("\n") }, cost(sum("requests"), sum("bytes"))),
		shared.total < 0 ? "" : ` · ${some(shared.total, "record")}`, clock.took && ` · ${clock.took}`, who ? ` · blobtail ${who.version}` : "")
}
