// The choice of the range of time.

import { h } from "./preact.js"
import { useEffect, useState } from "./hooks.js"
import { Dialog, line } from "./dialog.js"
import { ms, stamp, time } from "./format.js"
import { parse } from "./source.js"

const quick = [
	["5m", "Last 5 minutes"],
	["15m", "Last 15 minutes"],
	["30m", "Last 30 minutes"],
	["1h", "Last hour"],
	["3h", "Last 3 hours"],
	["6h", "Last 6 hours"],
	["12h", "Last 12 hours"],
	["1d", "Last day"],
	["2d", "Last 2 days"],
	["7d", "Last 7 days"],
	["30d", "Last 30 days"],
	["today", "Today"],
	["yesterday", "Yesterday"],
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

/** The range that somebody typed: the server reads it, as the terminal does. @param {Record<string, string>} of @param {boolean} utc */
async function rangeOf(of, utc) {
	const { range, mistake } = await parse({
		...of,
		timezone: utc ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone,
	})
	if (mistake) throw new Error(mistake.text)
	return { from: range?.from ?? "", to: range?.to ?? "" }
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
	const ask = (/** @type {Record<string, string>} */ of) =>
		rangeOf(of, view.utc).then(choose, (/** @type {Error} */ err) => setError(err.message))
	const choose = (/** @type {Partial<View>} */ change) => {
		set(change)
		setOpen(false)
	}
	const apply = (/** @type {Event} */ e) => {
		e.preventDefault()
		const typed = Object.fromEntries(Object.entries({ from, to }).filter(([, text]) => text.trim()))
		return typed.from || typed.to ? ask(typed) : choose({ since: "1h" })
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
				placeholder: "2026-11-26 15:04, yesterday 15:04, 10 minutes ago, now",
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
							onClick: () => (/day$/.test(since) ? ask({ day: since }) : choose({ since })),
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
