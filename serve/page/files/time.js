// The choice of the range of time.

import { h } from "./preact.js"
import { useEffect, useState } from "./hooks.js"
import { Dialog, line } from "./dialog.js"
import { duration, ms, stamp, time } from "./format.js"

const quick = [
	["5m", "Last 5 minutes"],
	["15m", "Last 15 minutes"],
	["1h", "Last hour"],
	["6h", "Last 6 hours"],
	["12h", "Last 12 hours"],
	["1d", "Last day"],
	["2d", "Last 2 days"],
	["7d", "Last 7 days"],
	["30d", "Last 30 days"],
]

/** The range before or after one. @param {Times} range @param {number} way */
export function shiftBy({ from, to }, way) {
	const a = ms(from),
		b = ms(to),
		width = b - a
	if (!(width > 0)) return {}
	return { from: stamp(a + way * width), to: stamp(b + way * width) }
}

/** A range three times as long. @param {Times} range */
export function zoomOut({ from, to }) {
	const a = ms(from),
		b = ms(to),
		width = b - a
	if (!(width > 0)) return {}
	return { from: stamp(a - width), to: stamp(Math.min(b + width, Math.max(b, Date.now() + 60_000))) }
}

/**
 * The time (RFC 3339, UTC) that somebody typed: a date, today or yesterday, a clock time, both, -15m, now.
 * @param {string} text
 * @param {boolean} utc
 */
export function typed(text, utc) {
	const all = (text = text.trim())
	if (!text) return ""
	const now = Date.now(),
		back = duration(text.replace(/^(now)?-/, ""))
	if (text === "now") return stamp(now)
	if (/^(now)?-/.test(text) && back) return stamp(now - back)
	const midnight = (/** @type {number} */ days) => {
		const d = new Date(now)
		if (utc) return stamp(Date.UTC(d.getUTCFullYear(), d.getUTCMonth(), d.getUTCDate() + days))
		return stamp(new Date(d.getFullYear(), d.getMonth(), d.getDate() + days).getTime())
	}
	const said = /^(to|yester)day\b/.exec(text),
		dayOf = (/** @type {string} */ t) => time(t, utc, { day: true }).slice(0, 10)
	if (said) text = dayOf(midnight(said[1] === "to" ? 0 : -1)) + text.slice(said[0].length).replace(/^\s+(at\s+)?/, " ")
	const found = /^(?:(\d{4}-\d\d-\d\d)[ T]?)?(?:(\d\d?:\d\d)(:\d\d)?(\.\d{1,9})?)?\s*(Z|[+-]\d\d:?\d\d)?$/.exec(text)
	if (!found || !(found[1] || found[2]))
		throw new Error(`"${all}" is no time: write 2026-11-26 15:04:05, 15:04, yesterday 15:04, -15m, today or now`)
	const [, day = dayOf(stamp(now)), clock = "00:00", seconds = ":00", fraction = "", zone = utc ? "Z" : ""] = found
	const date = new Date(`${day}T${clock.padStart(5, "0")}${seconds}${zone}`)
	if (isNaN(date.getTime())) throw new Error(`"${all}" is no time of the calendar`)
	return stamp(date.getTime()).slice(0, -11) + (fraction || ".").padEnd(10, "0") + "Z"
}

/** @param {Props} props */
export function Time(props) {
	const { view, set, range, shared } = props
	const [open, setOpen] = useState(false),
		[from, setFrom] = useState(""),
		[to, setTo] = useState(""),
		[error, setError] = useState("")
	shared.offer("time", () => setOpen(true))
	const show = (/** @type {string} */ t) =>
		t && time(t, view.utc, { day: true, digits: /\.0+Z/.test(t) ? 0 : 9 }).replace(/(\.\d*?)0+$/, "$1")
	useEffect(() => {
		if (!open) return
		setFrom(show(range.from))
		setTo(show(range.to))
		setError("")
	}, [open, view.utc])
	const apply = (/** @type {Event} */ e) => {
		e.preventDefault()
		try {
			const change = { from: typed(from, view.utc), to: typed(to, view.utc) }
			if (change.from && change.to && change.from >= change.to)
				throw new Error("the range ends before it begins; swap the two times")
			set(change.from || change.to ? change : { since: "1h" })
			setOpen(false)
		} catch (err) {
			setError(/** @type {Error} */ (err).message)
		}
	}
	const short = (/** @type {string} */ t) => (t ? time(t, view.utc, { day: true, digits: 0 }) : "open")
	const label = view.since
		? (quick.find(([v]) => v === view.since)?.[1] ?? `Last ${view.since}`)
		: range.from.slice(0, 10) === range.to.slice(0, 10)
			? `${short(range.from)} – ${short(range.to).slice(11)}`
			: `${short(range.from)} – ${short(range.to)}`
	const field = (/** @type {string} */ name, /** @type {string} */ value, /** @type {(t: string) => void} */ change) =>
		h(
			"label",
			null,
			name,
			line(name, value, change, {
				autofocus: name === "From" && !view.since,
				placeholder: "2026-11-26 15:04, yesterday 15:04, -15m, now",
				"aria-invalid": !!error,
				"aria-describedby": error && "time-error",
			}),
		)
	return h(
		"span",
		{ class: "time" },
		h("button", { "aria-label": "Earlier", title: "Earlier ([)", onClick: () => set(shiftBy(range, -1)) }, "‹"),
		h(
			"button",
			{
				"aria-haspopup": "dialog",
				"aria-label": `Time: ${label}${view.utc ? " UTC" : ""}`,
				title: "Time (t)",
				onClick: () => setOpen(true),
			},
			label,
			view.utc ? " UTC" : "",
		),
		h("button", { "aria-label": "Later", title: "Later (])", onClick: () => set(shiftBy(range, 1)) }, "›"),
		h("button", { "aria-label": "Zoom out", title: "Zoom out (z)", onClick: () => set(zoomOut(range)) }, "⤢"),
		h(
			Dialog,
			{ open, close: () => setOpen(false), label: "Time" },
			h(
				"div",
				{ class: "quick" },
				quick.map(([since, text]) =>
					h(
						"button",
						{
							key: since,
							"aria-pressed": view.since === since,
							autofocus: view.since === since,
							onClick: () => {
								set({ since })
								setOpen(false)
							},
						},
						text,
					),
				),
			),
			h(
				"form",
				{ class: "span", onSubmit: apply },
				field("From", from, setFrom),
				field("To", to, setTo),
				error ? h("p", { id: "time-error", class: "mistake", role: "alert" }, error) : null,
				h("button", { class: "main" }, "Apply"),
			),
			h(
				"fieldset",
				null,
				h("legend", null, "Times are shown and read in"),
				[
					["Local", false],
					["UTC", true],
				].map(([name, utc]) =>
					h(
						"label",
						{ key: name },
						h("input", {
							type: "radio",
							name: "zone",
							checked: view.utc === utc,
							onChange: () => set({ utc: !!utc }, { quiet: true }),
						}),
						name,
					),
				),
				h("span", { class: "dim" }, view.utc ? "" : Intl.DateTimeFormat().resolvedOptions().timeZone),
			),
			h(
				"label",
				null,
				"Ask again ",
				h(
					"select",
					{
						"aria-label": "Ask again",
						value: view.every,
						onChange: (/** @type {any} */ e) => set({ every: e.target.value }, { quiet: true }),
					},
					[
						["", "only when told to"],
						["10s", "every 10 s"],
						["30s", "every 30 s"],
						["1m", "every minute"],
						["5m", "every 5 minutes"],
					].map(([v, t]) => h("option", { key: v, value: v }, t)),
				),
			),
		),
	)
}
