// The bar of what is missing, which does not go away by itself, notes, and the foot with the cost.

import { h } from "./preact.js"
import { useRef, useState } from "./hooks.js"
import { refused } from "./ask.js"
import { bytes, some, time } from "./format.js"

/** @typedef {Props & {parts: Map<string, Part>}} BarProps */

/** The parts as they fared last, by name: what one said stays while it asks again, and stays in its place. @param {Map<string, Part>} parts */
function useLast(parts) {
	const last = useRef(/** @type {Map<string, Part>} */ (new Map())).current
	for (const name of last.keys()) if (!parts.has(name)) last.delete(name)
	for (const [name, part] of parts) if (!part.loading) last.set(name, part)
	return [...last].sort(([a], [b]) => (a < b ? -1 : 1))
}

/** Each text once, with the parts of the page that say it. @param {[string, Part][]} parts @param {(part: Part) => (string | undefined)[]} textsOf */
function grouped(parts, textsOf) {
	const out = new Map()
	for (const [name, part] of parts)
		for (const text of textsOf(part)) if (text) out.set(text, (out.get(text) ?? new Set()).add(name))
	return [...out].map(([text, names]) =>
		h("li", { key: text }, text, h("span", { class: "dim" }, ` (${[...names].join(", ")})`)),
	)
}

/** @param {BarProps} props */
export function Missing({ parts, again, view }) {
	const [read, setRead] = useState(/** @type {string[]} */ ([])),
		last = useLast(parts)
	// Of an answer that lacks nothing, a gap is a note.
	const gap = (/** @type {Outcome | undefined} */ o) => {
		if (!o?.gaps.length) return ""
		const times = o.gaps
				.flatMap((g) => [g.from, g.to])
				.sort()
				.map((t) => time(t, view.utc, { day: true, digits: 0 })),
			sum = o.gaps.reduce((n, g) => n + g.records, 0),
			few = (o.gaps.some((g) => g.at_most) ? "at most " : "") + some(sum, "record"),
			of = [...new Set(o.gaps.map((g) => g.service))].join(", ")
		return `${few} of ${of} from ${times[0]} to ${times.at(-1)} could not be read`
	}
	const why = (/** @type {Outcome} */ o) => {
		const texts = [...o.problems, gap(o)]
		return texts.some((t) => t) ? texts : ["records are missing, and the server does not say why; its log may"]
	}
	const missing = grouped(last, ({ error, outcome: o }) => [
		refused(error) ? "" : error?.message,
		...(o && !o.complete ? why(o) : []),
	])
	const notes = grouped(last, ({ outcome: o }) =>
		[...(o?.warnings ?? []), ...(o?.notes ?? []), o?.complete ? gap(o) : ""].filter((t) => !read.includes(t)),
	)
	return [
		missing.length
			? h(
					"section",
					{ key: 1, class: "missing", "aria-label": "Missing" },
					h("div", { role: "alert" }, h("b", null, "Not everything could be read"), h("ul", null, missing)),
					h("button", { onClick: again }, "Try again"),
				)
			: null,
		notes.length
			? h(
					"section",
					{ key: 2, class: "missing calm", "aria-label": "Notes" },
					h("div", { role: "status" }, h("ul", null, notes)),
					h("button", { onClick: () => setRead([...read, ...notes.map((n) => String(n.key))]) }, "Dismiss"),
				)
			: null,
	]
}

/** @param {BarProps} props */
export function Foot({ parts, who, asked, shared }) {
	const clock = useRef({ asked: "", began: 0, took: "" }).current,
		last = useLast(parts),
		now = performance.now()
	if (clock.asked !== asked) Object.assign(clock, { asked, began: now, took: "" })
	if (parts.size && ![...parts.values()].some((p) => p.loading))
		clock.took ||= ` · ${((now - clock.began) / 1000).toFixed(1)} s`
	const costs = last.map(([name, p]) => ({
		name,
		requests: p.outcome?.cost?.requests ?? 0,
		size: p.outcome?.cost?.bytes ?? 0,
	}))
	const cost = (/** @type {typeof costs} */ of) =>
		`${some(
			of.reduce((n, c) => n + c.requests, 0),
			"request",
		)}, ${bytes(of.reduce((n, c) => n + c.size, 0))}`
	return h(
		"footer",
		null,
		h(
			"span",
			{ title: ["to the storage, by this view:", ...costs.map((c) => `${c.name}: ${cost([c])}`)].join("\n") },
			cost(costs),
		),
		shared.total < 0 ? "" : ` · ${some(shared.total, "record")}`,
		clock.took,
		who ? ` · blobtail ${who.version}` : "",
	)
}
