// The state of the page: one object, and the only way to and from the fragment of the URL. A
// browser sends a fragment nowhere.
//
// A component gets the View and a function `set`, which takes the properties to change. Each
// change is a step of the browser's history, unless it says `{quiet: true}`.

import { duration } from "./format.js"

/** @type {View} */
export const start = {
	services: [],
	since: "1h",
	from: "",
	to: "",
	utc: false,
	q: "",
	fold: false,
	chips: [],
	logql: "",
	split: "level",
	oldest: false,
	wrap: false,
	columns: [],
	sel: "",
	around: "",
	tab: "records",
	live: false,
	against: "before",
	every: "",
}

const texts = /** @type {const} */ ([
	"since",
	"from",
	"to",
	"q",
	"logql",
	"split",
	"sel",
	"around",
	"tab",
	"against",
	"every",
])
const flags = /** @type {const} */ (["utc", "fold", "oldest", "wrap", "live"])

/**
 * The fragment of a view, with what differs from the start.
 * @param {View} view
 */
export function fragment(view) {
	const out = new URLSearchParams()
	for (const name of view.services) out.append("service", name)
	for (const key of texts) if (view[key] !== start[key]) out.set(key, view[key])
	for (const key of flags) if (view[key]) out.set(key, "1")
	for (const chip of view.chips) out.append(chip.off ? "off" : "f", chip.text)
	for (const name of view.columns) out.append("col", name)
	return out.toString()
}

const isTime = (/** @type {string} */ t) => Math.abs(Date.parse(t)) < 1e13

/** What a part of a link may be. @type {Record<string, (t: string) => boolean>} */
const sound = {
	since: (t) => !t || (duration(t) > 0 && duration(t) < 1e13),
	every: (t) => !t || (duration(t) >= 5000 && duration(t) < 1e9),
	from: (t) => !t || isTime(t),
	to: (t) => !t || isTime(t),
	against: (t) => /^(|before|yesterday)$/.test(t) || (t.split("/").length === 2 && t.split("/").every(isTime)),
	sel: (t) => /^($|[^/]+\/-?\d{1,20}-)/.test(t),
	around: (t) => /^($|same$|all$|=.)/.test(t),
	tab: (t) => /^(records|patterns)$/.test(t),
}

/**
 * The view of a fragment. What it does not know is left out. Who wrote a link may be anybody: a part
 * that no view has is as at the start, and wrong says so.
 * @param {string} text
 * @returns {View}
 */
export function parse(text) {
	if (text.length > 50_000)
		return { ...start, wrong: "This link is too long, so its view is not shown. Ask for the link again." }
	const from = new URLSearchParams(text.replace(/^#/, ""))
	const view = {
		...start,
		services: from.getAll("service"),
		columns: from.getAll("col"),
		chips: /** @type {Chip[]} */ ([]),
	}
	for (const key of texts) view[key] = from.get(key) ?? start[key]
	for (const key of flags) view[key] = from.get(key) === "1"
	for (const [key, value] of from)
		if (key === "f" || key === "off") view.chips.push({ text: value, off: key === "off" })
	if (view.from || view.to) view.since = ""
	const bad = texts
		.filter((key) => sound[key] && !sound[key](view[key]))
		.map((key) => {
			const was = `${key}=${view[key].slice(0, 99)}`
			view[key] = start[key]
			return was
		})
	if (!view.since && bad.some((was) => /^(from|to)=/.test(was)))
		Object.assign(view, { since: start.since, from: "", to: "" })
	if (view.columns.length > 100) bad.push(`${view.columns.splice(100).length} columns`)
	if (view.chips.length > 1000) bad.push(`${view.chips.splice(1000).length} filters`)
	if (bad.length) view.wrong = `This link is broken, and these parts of it are left out: ${bad.join(", ")}`
	return view
}

/** The list without one of its members, or with a new one. @param {Texts} list @param {string} one */
export const toggled = (list, one) => (list.includes(one) ? list.filter((other) => other !== one) : [...list, one])

/** Adds a filter; one that is there counts again. @param {Props} props @param {string} text */
export const addChip = ({ view, set }, text) =>
	set({ chips: [...view.chips.filter((c) => c.text !== text), { text, off: false }] })

/**
 * The link to a view with times that do not move.
 * @param {View} view
 * @param {{from: string, to: string}} range
 */
export function permalink(view, range) {
	const fixed = { ...view, since: "", from: range.from, to: range.to, live: false }
	return location.href.replace(/#.*/, "") + "#" + fragment(fixed)
}

/** Holds the view, and the fragment of the page in step with it. */
export class State {
	/** @param {(view: View) => void} changed */
	constructor(changed) {
		this.view = parse(location.hash)
		this.changed = changed
		addEventListener("hashchange", () => {
			if (location.hash.replace(/^#/, "") === fragment(this.view)) return
			this.view = parse(location.hash)
			this.changed(this.view)
		})
	}

	/**
	 * @param {Partial<View>} change
	 * @param {{quiet?: boolean}} [how]
	 */
	set(change, how = {}) {
		const view = { ...this.view, wrong: "", ...change }
		if (change.from !== undefined || change.to !== undefined) view.since = change.since ?? ""
		else if (change.since) view.from = view.to = ""
		const before = fragment(this.view),
			after = fragment(view)
		this.view = view
		try {
			if (before !== after) history[how.quiet ? "replaceState" : "pushState"](null, "", "#" + after)
		} catch {
			// A browser refuses too many of them in a short time. The next change has this one too.
		}
		this.changed(view)
	}
}
