// The histogram: numbers of records over time, by level, service, or one or two fields. A drag
// zooms and a double click goes back, or else out; a drag with Shift makes the second window of the
// patterns. The sliders do the same by keys.

import { h } from "./preact.js"
import { useEffect, useMemo, useRef, useState } from "./hooks.js"
import * as source from "./source.js"
import { failed, useAnswer, useReport } from "./ask.js"
import { termOf } from "./term.js"
import { count, duration, levels, ms, some, stamp, time } from "./format.js"
import { shiftBy, zoomOut } from "./time.js"

const wide = 1200,
	high = 80

/** @param {Props} props */
export function Histogram(props) {
	const { view, set, question, asked, report, shared } = props
	// The index alone answers this one, at once.
	const index = question.q.length ? props.parsed?.index : "",
		filtered = question.logql || view.split !== "level" || index !== (props.parsed?.line ?? "")
	const rough = useAnswer(filtered && index !== undefined ? `${asked} ${index}` : "", (signal) =>
		source.histogram({ ...question, logql: "", q: index ? [index] : [] }, { buckets: 120 }, signal),
	)
	const by = view.split === "level" && shared.fields.includes("level_extracted") ? both : view.split
	const answer = useAnswer(`${asked} ${by}`, (signal) => leveled(question, by, signal))
	useReport(report, "histogram", answer)
	const [sel, setSel] = useState(/** @type {{a: number, b: number, second: boolean} | undefined} */ (undefined))
	const [at, setAt] = useState(/** @type {number | undefined} */ (undefined))
	const [, draw] = useState(0)
	shared.offer("fields", () => draw((n) => n + 1))
	/** The ranges before each zoom. */
	const zooms = useRef(/** @type {Partial<View>[]} */ ([]))
	const svg = useRef(/** @type {SVGElement | null} */ (null)),
		click = useRef(0)
	const shown = answer.value ?? (rough.value && { ...rough.value, buckets: [] })
	const axis = axisOf(question, shown, rough.value)
	const split = answer.value?.split ?? view.split, // that of the answer which is shown
		keys = keysOf(split, answer.value)
	// A pointer that moves draws none of them again.
	const drawn = useMemo(
		() => [
			answer.loading && rough.value && bars(axis, rough.value.buckets, [{ key: "", label: "", color: "rough", n: 0 }]),
			answer.value && !(answer.loading && rough.value && answer.stale) && bars(axis, answer.value.buckets, keys),
		],
		[answer, rough, question.from, question.to, view.split],
	)
	const total = answer.value?.buckets.reduce((n, b) => n + b.total, 0) ?? -1,
		unknown = answer.error ? "–" : "…"
	useEffect(() => {
		shared.total = answer.loading ? -1 : total
		shared.spans = answer.loading
			? []
			: (answer.value?.buckets.map((b) => ({ at: ms(b.t), by: axis.by, n: b.total })) ?? [])
		shared.act("total")
		shared.tints = new Map(keys.map((k) => [k.key, k.color]))
		shared.act("tints")
	}, [answer.value, answer.loading])
	shared.offer("earlier", () => set(shiftBy(props.range, -1)))
	shared.offer("later", () => set(shiftBy(props.range, 1)))
	shared.offer("zoomOut", () => set(zoomOut(props.range)))
	levels.forEach((level, i) => shared.offer("level" + (i + 1), () => toggle(props, "level", { value: level }, true)))

	const place = (/** @type {PointerEvent} */ e) => {
		const box = /** @type {SVGElement} */ (svg.current).getBoundingClientRect()
		return Math.min(1, Math.max(0, (e.clientX - box.left) / box.width))
	}
	const zoom = (/** @type {string} */ from, /** @type {string} */ to) => {
		zooms.current.push({ since: view.since, from: view.from, to: view.to })
		set({ from, to })
	}
	const apply = (/** @type {{a: number, b: number, second: boolean}} */ { a, b, second }) => {
		setSel(undefined)
		clearTimeout(click.current)
		const from = stamp(Math.round(axis.from + Math.min(a, b) * axis.width)),
			to = stamp(Math.round(axis.from + Math.max(a, b) * axis.width))
		if (Math.abs(b - a) * wide < 4 || from === to)
			return void (bucket && !second && (click.current = setTimeout(zoomTo, 300, bucket)))
		second ? set({ against: `${from}/${to}`, tab: "patterns" }) : zoom(from, to)
	}
	const bucket =
		at === undefined
			? undefined
			: answer.value?.buckets.find(
					(b) => ms(b.t) <= axis.from + at * axis.width && axis.from + at * axis.width < ms(b.t) + axis.by,
				)
	// A click on a bar zooms to its span, unless a second click follows.
	const zoomTo = (/** @type {Bucket} */ { t }) =>
		axis.by < axis.width &&
		zoom(stamp(Math.max(ms(t), axis.from)), stamp(Math.min(ms(t) + axis.by, axis.from + axis.width)))
	const when = (/** @type {number} */ t) =>
		time(stamp(t), view.utc, { day: axis.width > 72e6, digits: axis.by < 1000 ? 3 : 0 })

	return h(
		"section",
		{ class: "hist", "aria-label": "Histogram", "aria-busy": answer.loading },
		h(
			"svg",
			{
				ref: svg,
				role: "img",
				viewBox: `0 0 ${wide} ${high}`,
				preserveAspectRatio: "none",
				class: answer.stale ? "stale" : "",
				"aria-label":
					total < 0 ? "Histogram" : `${some(total, "record")} in buckets of ${answer.value?.by}, by ${split}`,
				onPointerDown: (/** @type {PointerEvent} */ e) => {
					if (e.button) return
					svg.current?.setPointerCapture(e.pointerId)
					setSel({ a: place(e), b: place(e), second: e.shiftKey })
				},
				onPointerMove: (/** @type {PointerEvent} */ e) => (sel ? setSel({ ...sel, b: place(e) }) : setAt(place(e))),
				onPointerUp: () => sel && apply(sel),
				onPointerCancel: () => setSel(undefined),
				onPointerLeave: () => setAt(undefined),
				onDblClick: () => {
					clearTimeout(click.current)
					set(zooms.current.pop() ?? zoomOut(props.range))
				},
			},
			drawn,
			sel
				? h("rect", {
						class: sel.second ? "brush second" : "brush",
						x: Math.min(sel.a, sel.b) * wide,
						width: Math.abs(sel.b - sel.a) * wide,
						y: 0,
						height: high,
					})
				: null,
			secondOf(view.against, axis),
		),
		h(
			"div",
			{ class: "axis", "aria-hidden": true },
			[0, 1, 2, 3, 4, 5].map((i) => h("span", { key: i }, when(axis.from + (i * axis.width) / 5))),
		),
		failed(answer),
		h(
			"div",
			{ class: "legend" },
			h(
				"span",
				{ class: "total" },
				bucket
					? `${when(ms(bucket.t))}: ${some(bucket.total, "record")}`
					: total < 0
						? unknown
						: `${some(total, "record")}, per ${answer.value?.by}`,
			),
			keys.map((k) =>
				h(
					"button",
					{
						key: k.key,
						"aria-pressed": on(props, k, false),
						class: on(props, k, true) ? "out" : "",
						disabled: !k.field || !!view.logql,
						title: k.field ? `Only ${k.label}; with Shift: all but ${k.label}` : k.label,
						onClick: (/** @type {MouseEvent} */ e) =>
							k.field && k.value && toggle(props, k.field, k.value, e.shiftKey, keys),
					},
					h("i", { class: k.color }),
					k.label,
					" ",
					h("b", null, answer.value ? count(bucket ? (bucket.counts[k.key] ?? 0) : k.n) : unknown),
				),
			),
			h("span", { class: "space" }),
			h(By, props),
		),
		h(Brush, { axis, when, apply }),
		h(Numbers, { buckets: answer.value?.buckets ?? [], keys, when }),
	)
}

/**
 * @param {Question} q
 * @param {Histogram | undefined} answer
 * @param {Histogram | undefined} rough
 */
function axisOf(q, answer, rough) {
	const by = duration(answer?.by ?? rough?.by ?? "1m") || 60_000,
		all = answer?.buckets.length ? answer.buckets : (rough?.buckets ?? [])
	const from = ms(q.from) || ms(all[0]?.t) || Date.now() - 3.6e6
	const to = ms(q.to) || (all.length ? ms(all[all.length - 1].t) + by : from + 3.6e6)
	return { from, width: Math.max(1, to - from), by }
}

/**
 * What the legend has: each key of the counts with its colour, and the field and value of a filter.
 * @param {string} split
 * @param {Histogram | undefined} answer
 * @returns {Key[]}
 */
function keysOf(split, answer) {
	/** @type {Map<string, number>} */
	const sums = new Map()
	let others = 0
	for (const b of answer?.buckets ?? []) {
		for (const key in b.counts) sums.set(key, (sums.get(key) ?? 0) + b.counts[key])
		others += b.others ?? 0
	}
	const [field, second] = split.split(",")
	if (/^level(_extracted)?$/.test(split))
		return levels
			.filter((l) => l !== "other" || sums.has(l))
			.map((l) => ({ key: l, label: l, color: l, n: sums.get(l) ?? 0, field, value: { value: l } }))
	const order =
		answer?.values ??
		[...sums.keys()]
			.sort((a, b) => (sums.get(b) ?? 0) - (sums.get(a) ?? 0))
			.map((key) => ({ key, values: [key], types: ["string"] }))
	/** @type {Key[]} */
	const keys = order.slice(0, 7).map(({ key, values: [value], types }, i) => {
		const of = { value, types: types[0] ? [types[0]] : [] },
			can = !second && !!termOf(field, of)
		return {
			key,
			label: key || '""',
			color: types.every((t) => !t) ? "none" : "c" + i,
			n: sums.get(key) ?? 0,
			...(can && { field, value: of }),
		}
	})
	for (const { key } of order.slice(7)) others += sums.get(key) ?? 0
	if (others) keys.push({ key: "\0others", label: "others", color: "none", n: others })
	return keys
}

const both = "level_extracted,level"

/** With both levels by that of a form, or else the stored one. @param {Question} q @param {string} split @param {AbortSignal} signal */
async function leveled(q, split, signal) {
	const a = await source.histogram(q, { buckets: 120, split }, signal)
	if (a.split !== both) return a
	for (const b of a.buckets) {
		const counts = b.counts
		b.counts = {}
		for (const { key, values } of a.values ?? []) {
			const level = values[0] || values[1] || "other"
			b.counts[level] = (b.counts[level] ?? 0) + (counts[key] ?? 0)
		}
	}
	return { ...a, split: "level_extracted" }
}

/** @param {ReturnType<typeof axisOf>} axis @param {Bucket[]} buckets @param {Key[]} keys */
function bars(axis, buckets, keys) {
	const most = Math.max(1, ...buckets.map((b) => b.total)),
		width = Math.max(1, (wide * axis.by) / axis.width - 1.5)
	return buckets.map((b) => {
		const x = (wide * (ms(b.t) - axis.from)) / axis.width
		let y = high,
			rest = b.total
		const bar = (/** @type {string} */ color, /** @type {number} */ n) => {
			const tall = Math.max(n ? 1 : 0, ((high - 2) * n) / most)
			return n > 0 && h("rect", { key: color, class: color, x, width, y: (y -= tall), height: tall })
		}
		return [...keys]
			.reverse()
			.map((k) => {
				const n = k.key === "" && k.color === "rough" ? b.total : k.key === "\0others" ? 0 : (b.counts[k.key] ?? 0)
				rest -= n
				return bar(k.color, n)
			})
			.concat(rest > 0 ? [bar("none", rest)] : [])
	})
}

/** The second window of the patterns. @param {string} against @param {ReturnType<typeof axisOf>} axis */
function secondOf(against, axis) {
	const [from, to] = against.split("/").map(ms)
	if (!to) return null
	const x = (wide * (from - axis.from)) / axis.width
	return h("rect", {
		class: "brush second",
		x,
		width: Math.max(2, (wide * (to - from)) / axis.width),
		y: high - 4,
		height: 4,
	})
}

/** Whether a filter wants a value, or leaves it out. @param {Props} props @param {Key} k @param {boolean} not */
const on = ({ view }, k, not) =>
	!!k.field &&
	view.chips.some(
		(c) => !c.off && c.text === termOf(/** @type {string} */ (k.field), /** @type {Counted} */ (k.value), not),
	)

/**
 * Wants the records with a value, or leaves them out; the second time ends that. One value of the
 * legend is wanted at a time.
 * @param {Props} props @param {string} field @param {Counted} value @param {boolean} not @param {Key[]} [keys]
 */
function toggle(props, field, value, not, keys = []) {
	const { view, set } = props,
		text = termOf(field, value, not),
		others = [termOf(field, value, !not), ...(not ? [] : keys.flatMap((k) => (k.value ? termOf(field, k.value) : [])))]
	const rest = view.chips.filter((c) => c.text !== text && !others.includes(c.text)),
		was = view.chips.some((c) => c.text === text && !c.off)
	set({ chips: was ? rest : [...rest, { text, off: false }] })
}

/** By what it is divided. @param {Props} props */
function By({ view, set, shared }) {
	const [first, second = ""] = view.split.split(",")
	const fields = [...new Set(["level", "service", ...shared.fields, first, second])].filter(Boolean)
	const choice = (
		/** @type {string} */ label,
		/** @type {string} */ value,
		/** @type {string[]} */ names,
		/** @type {(v: string) => void} */ change,
	) =>
		h(
			"label",
			null,
			label,
			" ",
			h(
				"select",
				{
					"aria-label": label === "and" ? "and by" : "Histogram by",
					value,
					onChange: (/** @type {any} */ e) => change(e.target.value),
				},
				names.map((n) => h("option", { key: n, value: n }, n || "–")),
			),
		)
	return [
		choice("by", first, fields, (v) => set({ split: v === second || !second ? v : `${v},${second}` })),
		choice("and", second, ["", ...fields.filter((f) => f !== first)], (v) =>
			set({ split: v ? `${first},${v}` : first }),
		),
	]
}

/** The brush by keys. @param {{axis: ReturnType<typeof axisOf>, when: (t: number) => string, apply: (sel: {a: number, b: number, second: boolean}) => void}} props */
function Brush({ axis, when, apply }) {
	const [a, setA] = useState(0),
		[b, setB] = useState(120)
	useEffect(() => {
		setA(0)
		setB(120)
	}, [axis.from, axis.width])
	const slider = (
		/** @type {string} */ label,
		/** @type {number} */ value,
		/** @type {(n: number) => void} */ change,
	) =>
		h(
			"label",
			null,
			label,
			" ",
			h("input", {
				type: "range",
				"aria-label": label,
				min: 0,
				max: 120,
				value,
				"aria-valuetext": when(axis.from + (value / 120) * axis.width),
				onInput: (/** @type {any} */ e) => change(Number(e.target.value)),
			}),
			" ",
			when(axis.from + (value / 120) * axis.width),
		)
	return h(
		"div",
		{ class: "keys-only" },
		slider("From", a, setA),
		slider("To", b, setB),
		h("button", { onClick: () => apply({ a: a / 120, b: b / 120, second: false }) }, "Zoom to selection"),
		h("button", { onClick: () => apply({ a: a / 120, b: b / 120, second: true }) }, "Use as window B"),
	)
}

/** @param {{buckets: Bucket[], keys: Key[], when: (t: number) => string}} props */
function Numbers({ buckets, keys, when }) {
	const [open, setOpen] = useState(false)
	return h(
		"details",
		{ class: "numbers", onToggle: (/** @type {any} */ e) => setOpen(e.target.open) },
		h("summary", null, "Numbers"),
		open
			? h(
					"div",
					{ class: "scroll", tabIndex: 0, role: "region", "aria-label": "Numbers" },
					h(
						"table",
						{ "aria-label": "Numbers of the histogram" },
						h(
							"thead",
							null,
							h(
								"tr",
								null,
								h("th", { scope: "col" }, "from"),
								h("th", { scope: "col" }, "records"),
								keys.map((k) => h("th", { key: k.key, scope: "col" }, k.label)),
							),
						),
						h(
							"tbody",
							null,
							buckets.map((b) =>
								h(
									"tr",
									{ key: b.t },
									h("th", { scope: "row" }, when(ms(b.t))),
									h("td", null, count(b.total)),
									keys.map((k) =>
										h(
											"td",
											{ key: k.key },
											count(
												k.key === "\0others"
													? b.total - keys.reduce((n, o) => n + (b.counts[o.key] ?? 0), 0)
													: (b.counts[k.key] ?? 0),
											),
										),
									),
								),
							),
						),
					),
				)
			: null,
	)
}
