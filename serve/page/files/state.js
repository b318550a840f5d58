// The state of the page: one object, and the only way to and from the fragment of the URL. A
// browser sends a fragment nowhere.
//
// A component gets the View and a function `set`, which takes the properties to change. Each
// change is a step of the browser's history, unless it says `{quiet: true}`.

/** @type {View} */
export const start = {
	services: [], since: "1h", from: "", to: "", utc: false, q: "", fold: false, chips: [], logql: "", split: "level", oldest: false,
	wrap: false, columns: [], sel: "", around: "", tab: "records", live: false, against: "before", every: "",
}

const texts = /** @type {const} */ (["since", "from", "to", "q", "logql", "split", "sel", "around", "tab", "against", "every"])
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

/**
 * The view of a fragment. What it does not know is left out.
 * @param {string} text
 * @returns {View}
 */
export function parse(text) {
	const from = new URLSearchParams(text.replace(/^#/, ""))
	const view = { ...start, services: from.getAll("service"), columns: from.getAll("col"), chips: /** @type {Chip[]} */ ([]) }
	for (const key of texts) view[key] = from.get(key) ?? start[key]
	for (const key of flags) view[key] = from.get(key) === "1"
	for (const [key, value] of from) if (key === "f" || key === "off") view.chips.push({ text: value, off: key === "off" })
	if (view.from || view.to) view.since = ""
	return view
}

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
		const view = { ...this.view, ...change }
		if (change.from !== undefined || change.to !== undefined) view.since = change.since ?? ""
		else if (change.since) view.from = view.to = ""
		const before = fragment(this.view), after = fragment(view)
		this.view = view
		if (before !== after) history[how.quiet ? "replaceState" : "pushState"](null, "", "#" + after)
		this.changed(view)
	}
}
