// The list: a million records, of which it holds a part and draws those in view. Each row has its
// place among all records of the question, so the scroll bar is that of all of them. Places that it
// has not counted up to are estimated from the histogram, and put right at either end.

import { h } from "./preact.js"
import { useEffect, useLayoutEffect, useRef, useState } from "./hooks.js"
import * as source from "./source.js"
import { failed, refused, useAnswer, useNewest, useReport } from "./ask.js"
import { compare, fieldOf, marked, merge, msOf, nameOf, partsOf } from "./rows.js"
import { ring, useLive } from "./live.js"
import { Menu } from "./dialog.js"
import { fragment, toggled } from "./state.js"
import { count, duration, levels, ms, some, stamp, time } from "./format.js"
import { copy } from "./command.js"
import { useOffers } from "./keys.js"

/** Rows and bytes that are kept, and asked for at once; a height that browsers draw; room for the words at the end. */
const mostRows = 10_000,
	mostBytes = 64 << 20,
	page = 300,
	bytesAtOnce = 8 << 20,
	tallest = 8e6,
	foot = 60

/** @returns {Held} */
const empty = () => ({
	rows: [],
	start: 0,
	up: false,
	down: false,
	dropped: false,
	top: 0,
	put: 0,
	current: "",
	focus: false,
	held: false,
	strayed: "",
	old: false,
	sought: "",
	asked: "",
	same: "",
	of: "",
	turn: 0,
	lost: "",
	guess: false,
	loading: "all",
	height: 20,
	inView: 600,
	total: -1,
})

const size = (/** @type {Row[]} */ rows) => rows.reduce((n, r) => n + r.line.length, 0)

/** @param {Props} props */
export function List(props) {
	const { view, set, question, range, report, shared, asked } = props,
		{ oldest, columns } = view
	const [, redraw] = useState(0),
		draw = () => redraw((n) => n + 1),
		l = useRef(empty()).current,
		now = useNewest(props)
	const box = useRef(/** @type {any} */ (null)),
		sheet = useRef(/** @type {any} */ (null)),
		busy = useRef(new AbortController())

	const live = useLive(props, (fresh, first) => {
		if (first) {
			busy.current.abort()
			renew({ start: 0, up: oldest, down: !oldest, loading: "", error: undefined })
		}
		const last = l.rows.at(oldest ? 0 : -1)
		// Late ones that are older than the list come with those that it has not.
		if (last && (oldest ? l.up : l.down)) fresh = fresh.filter((r) => compare(r.id, last.id) > 0)
		l.rows = merge(l.rows, fresh, oldest)
		if (l.rows.length > ring) drop(!oldest, l.rows.length - ring)
		to(oldest ? Infinity : 0)
	})
	const all = shared.total < 0 ? -1 : shared.total + live.came
	Object.assign(l, {
		height: view.wrap ? 60 : 20,
		inView: (box.current?.clientHeight || 600) - (columns.length ? 20 : 0),
		total: view.live ? -1 : all,
	})
	const at = () => l.rows.findIndex((r) => nameOf(r) === l.current),
		index = at(),
		levelsOf = (/** @type {string} */ level) => (level === "error" ? ["error", "critical"] : [level])

	/** @type {ListActs["renew"]} */
	const renew = (more) => {
		if (l.of !== l.same) l.turn++
		Object.assign(l, { rows: [], dropped: false, old: false, of: l.same, ...more })
	}
	/** @type {ListActs["places"]} */
	const places = () => l.start + l.rows.length + (l.down ? Math.max(1, l.total - l.start - l.rows.length) : 0)
	/** @type {ListActs["tall"]} */
	const tall = () => places() * l.height + (l.down ? 0 : foot)
	/** @type {ListActs["drawn"]} */
	const drawn = () => Math.min(tall(), Math.max(tallest, l.inView))
	/** @type {ListActs["ratio"]} */
	const ratio = () => (tall() > drawn() ? (tall() - l.inView) / (drawn() - l.inView) : 1)
	/** @type {ListActs["to"]} */
	const to = (top) => {
		l.top = Math.max(0, Math.min(top, tall() - l.inView))
		if (!box.current) return
		sheet.current.style.height = drawn() + "px"
		box.current.scrollTop = l.top / ratio()
		l.put = box.current.scrollTop
		draw()
	}
	/** @type {ListActs["move"]} */
	const move = (start) => {
		const by = (start - l.start) * l.height
		l.start = start
		to(l.top + by)
	}
	/** @type {ListActs["drop"]} */
	const drop = (below, n) => {
		l.rows = below ? l.rows.slice(0, -n) : l.rows.slice(n)
		l.dropped = l[below ? "down" : "up"] = true
		if (!below) l.start += n
		if (now.current.view.live && below === now.current.view.oldest) live.cutOff()
	}
	/** @type {ListActs["sight"]} */
	const sight = () => {
		const first = Math.floor(l.top / l.height)
		return [first, Math.min(first + Math.ceil(l.inView / l.height) + 1, places())]
	}
	/** @type {ListActs["add"]} */
	const add = (rows, below) => {
		l.rows = below ? [...l.rows, ...rows] : [...rows.reverse(), ...l.rows]
		if (!below) l.start -= rows.length
		if (l.start < 0) move(0)
		const [first, last] = sight(),
			free = Math.min(l.rows.length - 1, below ? first - l.start : l.start + l.rows.length - last)
		let n = 0
		for (let bytes = size(l.rows); n < free && (l.rows.length - n > mostRows || bytes > mostBytes); n++)
			bytes -= l.rows.at(below ? n : -1 - n)?.line.length ?? 0
		if (n) drop(!below, n)
		draw()
	}
	/** @type {ListActs["ask"]} */
	const ask = async (below, id, each, { limit = page, more } = {}) => {
		const { question, view } = now.current,
			stop = new AbortController(),
			{ signal } = busy.current,
			oldest = below === view.oldest
		let bytes = 0
		signal.addEventListener("abort", () => stop.abort())
		try {
			return await source.records(
				{ ...question, ...(view.live && { to: "" }), ...more },
				{
					limit,
					oldest,
					[oldest ? "after" : "before"]: id,
					each(rows) {
						if (signal.aborted) return
						bytes += size(rows)
						each(rows)
						if (bytes > bytesAtOnce) stop.abort()
					},
				},
				stop.signal,
			)
		} catch (err) {
			// Long records come in small portions.
			if (signal.aborted || bytes <= bytesAtOnce) throw err
			return undefined
		}
	}
	/** @type {ListActs["loads"]} */
	const loads = (what, load) => {
		busy.current.abort()
		const { signal } = (busy.current = new AbortController()),
			done = (/** @type {Error | void} */ error) => {
				if (signal.aborted) return
				Object.assign(l, { loading: "", error })
				draw()
			}
		Object.assign(l, { loading: what, error: undefined })
		draw()
		load().then(done, done)
	}
	/** @type {ListActs["ended"]} */
	const ended = (end, below) => {
		l[below ? "down" : "up"] = end?.more ?? true
		if (end) l.end = source.joined(l.end, end)
		if (!l.up) move(0)
		else if (!l.down && l.total > l.rows.length) move(l.total - l.rows.length)
		to(l.top)
	}
	/** @type {ListActs["extend"]} */
	const extend = (below) =>
		loads("more", async () => ended(await ask(below, l.rows.at(below ? -1 : 0)?.id, (rows) => add(rows, below)), below))
	/** @type {ListActs["begin"]} */
	const begin = (below, place, more) =>
		loads("all", async () => {
			let first = true
			const take = (/** @type {Row[]} */ rows) => {
				if (first) renew({ start: place, up: below && place > 0, down: below })
				add(rows, below)
				if (first || !below) to(below ? place * l.height : Infinity)
				first = false
			}
			const last = await ask(below, undefined, take, { more })
			// The estimate was beyond the last record.
			if (first && below && place) return end()
			if (first) take([])
			ended(last, below)
			if (!below) to(Infinity)
		})
	/** @type {ListActs["around"]} */
	const around = (name, anew, offset = -l.inView / 2) =>
		loads("all", async () => {
			/** @type {Row[][]} */
			const [above, below] = [[], []],
				id = name.slice(name.indexOf("/") + 1)
			const up = await ask(false, id, (rows) => above.push(...rows), { limit: 100 })
			const down = await ask(true, above[0]?.id, (rows) => below.push(...rows), { limit: 101 })
			l.lost = below[0]?.id === id ? "" : "the chosen record is not among them"
			if (l.lost) return anew ? begin(true, 0) : undefined
			renew({ guess: true, focus: true, start: above.length, current: name, down: true })
			add(below, true)
			add(above, false)
			ended(down, true)
			ended(up, false)
			to((l.start + above.length) * l.height + offset)
			settle()
		})
	/** @type {ListActs["settle"]} */
	const settle = () => {
		if (!l.guess || !shared.spans.length || !l.rows.length) return
		const { id } = l.rows[0],
			at = msOf(id),
			{ oldest } = now.current.view
		l.guess = false
		if (l.up)
			move(
				Math.round(
					shared.spans.reduce(
						(n, s) => n + s.n * Math.max(0, Math.min(1, ((at - s.at) / s.by - (oldest ? 0 : 1)) * (oldest ? 1 : -1))),
						0,
					),
				),
			)
	}
	/** @type {ListActs["home"]} */
	const home = () => (l.up ? begin(true, 0) : to(0))
	/** @type {ListActs["end"]} */
	const end = () => (l.down ? begin(false, places()) : to(Infinity))
	/** @type {ListActs["jump"]} */
	const jump = (place) => {
		const { oldest } = now.current.view
		let sum = 0
		for (const { at, by, n } of oldest ? shared.spans : shared.spans.toReversed()) {
			const share = (place - sum) / n,
				t = stamp(Math.round(at + by * (oldest ? share : 1 - share)))
			if ((sum += n) > place) return place > 0 ? begin(true, place, oldest ? { from: t } : { to: t }) : home()
		}
		end()
	}
	const reveal = (/** @type {number} */ i) =>
		to(Math.min((l.start + i) * l.height, Math.max(l.top, (l.start + i + 1) * l.height - l.inView)))
	/** @type {ListActs["go"]} */
	const go = (i) => {
		const row = l.rows[Math.max(0, Math.min(i, l.rows.length - 1))]
		if (!row) return
		live.pause(live.paused || "scroll")
		Object.assign(l, { current: nameOf(row), focus: true, lost: "" })
		if (view.sel) set({ sel: (l.sought = l.current) }, { quiet: true })
		reveal(l.rows.indexOf(row))
		box.current.scrollIntoView({ block: "nearest" })
		if (!view.sel) box.current.focus({ preventScroll: true }) // and its row in the end
	}
	/** @type {ListActs["step"]} */
	const step = (by) => go(at() < 0 ? first - l.start : at() + by)
	/** @type {ListActs["open"]} */
	const open = () => l.current && set({ sel: (l.sought = l.current) })
	/** @type {ListActs["nextLevel"]} */
	const nextLevel = (level, back) => {
		const step = back ? -1 : 1,
			words = levelsOf(level),
			edge = l.rows.at(back ? 0 : -1)
		for (let i = at() + step; l.rows[i]; i += step) if (words.includes(partsOf(l.rows[i]).level)) return go(i)
		const none = () => {
			l.lost = `there is no other ${level} that way`
			draw()
		}
		if (!edge || !l[back ? "up" : "down"] || question.logql) return none()
		loads("all", async () => {
			/** @type {Row[]} */
			const found = [],
				more = { q: [...question.q, `where:(level in ${JSON.stringify(words)})`] }
			await ask(!back, edge.id, (rows) => found.push(...rows), { limit: 1, more })
			if (!found[0]) return none()
			const name = nameOf(found[0])
			if (view.sel) set({ sel: (l.sought = name) }, { quiet: true })
			around(name)
		})
	}
	/** @type {ListActs["scroll"]} */
	const scroll = (by) => {
		to(l.top + by)
		follow()
	}
	/** @type {ListActs["follow"]} */
	const follow = () =>
		live.paused === "key" ||
		live.pause((oldest ? !l.down && l.top >= tall() - l.inView - l.height : l.top < l.height) ? "" : "scroll")

	const [first, last] = sight()
	/** Loads what is in view, or nearly. */
	useEffect(() => {
		if (l.loading || l.error || l.old || !l.rows.length) return undefined
		// What is kept has room for it: an end that loads would else drop what the other end wants.
		const margin = Math.min(last - first, Math.max(0, (l.rows.length * 0.75 - (last - first)) / 2)),
			under = last - l.start - l.rows.length,
			over = l.start - first
		if (Math.max(under, over) > 3 * page && !view.live && shared.spans.length) {
			const timer = setTimeout(() => jump(first), 150)
			return () => clearTimeout(timer)
		}
		if (l.down && under > -margin) extend(true)
		else if (l.up && over >= -margin) extend(false)
		return undefined
	})
	useEffect(() => {
		const same = JSON.stringify({ ...question, from: "", to: "", oldest }),
			key = asked + oldest + view.live,
			anew = key !== l.asked,
			again = same === l.same,
			other = view.sel && view.sel !== l.sought,
			there = l.rows.findIndex((r) => nameOf(r) === view.sel)
		Object.assign(l, { asked: key, same, sought: view.sel, ...(anew && { end: undefined, lost: "", old: true }) })
		if (!view.sel && document.activeElement === document.body) l.focus = !anew
		if (other && !anew && there >= 0) {
			l.current = view.sel
			reveal(there)
		}
		if (view.live) return
		const top = l.rows[Math.floor(l.top / l.height) - l.start]
		if (other && (anew || there < 0)) around(view.sel, anew)
		else if (anew && again && view.every && l.top && top) around(nameOf(top), true, l.top % l.height)
		else if (anew) begin(true, 0)
	}, [asked, oldest, view.live, view.sel])
	useEffect(() => {
		const seen = new ResizeObserver(() => to(l.top))
		seen.observe(box.current)
		return () => {
			seen.disconnect()
			busy.current.abort()
		}
	}, [])
	useLayoutEffect(() => to(l.top), [l.height, l.inView, l.total])
	useLayoutEffect(() => {
		const at = document.activeElement,
			none = at === document.body,
			row = box.current.querySelector('[role=row][tabindex="0"]') ?? box.current
		// The focus stays in the list if its row goes, and is with its record again if that comes later in the answer.
		const { current, strayed } = l,
			here = l.rows.some((r) => nameOf(r) === current)
		if ((none && l.held) || ((l.focus || (strayed && here)) && (none || box.current.contains(at))))
			row.focus({ preventScroll: true })
		l.focus = false
		l.held = box.current.contains(document.activeElement)
		l.strayed = here || !l.loading || !l.held ? "" : strayed || l.current
		if (!here && strayed + l.strayed) l.current = l.strayed ? current : strayed
	})
	// While the rows of the question before stand there, those of this one are to come.
	const begins = !view.live && asked + oldest + view.live !== l.asked,
		loading = begins || (l.loading === "all" && (l.old || !l.rows.length))
	useReport(report, "records", { value: l.end, error: l.error, loading, stale: false })
	shared.rows = l.rows

	const leap = (/** @type {number} */ by) => {
		scroll(by * (l.inView - l.height))
		Object.assign(l, { current: "", focus: true })
	}
	/** @type {Record<string, () => void>} */
	const keys = {
		ArrowDown: () => step(1),
		ArrowUp: () => step(-1),
		j: () => step(1),
		k: () => step(-1),
		Enter: open,
		PageDown: () => leap(1),
		PageUp: () => leap(-1),
		Home: () => follow(void home()),
		End: () => follow(void end()),
		" ": () => live.pause(live.paused ? "" : "key"),
	}
	useOffers(shared, {
		next: keys.j,
		previous: keys.k,
		open,
		"error+": () => nextLevel("error"),
		"error-": () => nextLevel("error", true),
		"warn+": () => nextLevel("warn"),
		"warn-": () => nextLevel("warn", true),
		pause: keys[" "],
		copy: () => index >= 0 && copy(l.rows[index].line),
		total() {
			settle()
			draw()
		},
		tints: draw,
	})

	const offset = l.top - l.put,
		dayOf = (/** @type {string} */ t) => time(t || stamp(Date.now()), view.utc, { day: true }).slice(0, 10),
		days = dayOf(range.from) !== dayOf(range.to)
	const text = (/** @type {string} */ s) => marked(s, props.texts, view.fold),
		cell = (/** @type {string} */ name, /** @type {any[]} */ ...parts) =>
			h("span", { role: "gridcell", class: name }, ...parts)
	const rowAt = (/** @type {number} */ i) => {
		const row = l.rows[i],
			p = partsOf(row),
			name = nameOf(row),
			place = l.start + i
		return h(
			"div",
			{
				key: l.turn + name, // a row of another question does not move, it is another one
				role: "row",
				"data-id": name,
				"aria-rowindex": place + 1 + Math.sign(columns.length),
				"aria-selected": view.sel === name,
				tabIndex: i === (index < 0 ? Math.max(0, first - l.start) : index) ? 0 : -1,
				class: `row ${levels.includes(p.level) ? p.level : "other"}`,
				style: { top: place * l.height - offset + "px", height: l.height + "px" },
				onFocus: () => (l.current = name),
				onClick: () => {
					if (getSelection()?.isCollapsed === false) return
					live.pause(live.paused || "scroll")
					l.current = name
					open()
				},
			},
			view.split === "level"
				? null
				: h("i", {
						class:
							shared.tints.get(
								view.split
									.split(",")
									.map((f) => fieldOf(row, f) ?? "(none)")
									.join(" / "),
							) ?? "none",
					}),
			h("span", { role: "rowheader", class: "ts", title: p.ts }, time(p.ts, view.utc, { day: days })),
			cell("level", p.level),
			cell("service", p.service),
			columns.map((c) => cell("col", fieldOf(row, c))),
			cell("msg", h("bdi", null, text(p.msg)), " ", h("bdi", { class: "rest" }, text(p.rest), p.long ? "…" : "")),
		)
	}
	const visible = [],
		wide = columns.length ? 55 + 18 * columns.length + "ch" : "",
		head = ["time", "level", "service", ...columns, "message"]
	for (let i = Math.max(0, first - 8 - l.start); i < Math.min(l.rows.length, last + 8 - l.start); i++) visible.push(i)
	if (index >= 0 && !visible.includes(index)) visible.push(index)
	const button = (/** @type {string} */ label, /** @type {boolean} */ pressed, /** @type {() => void} */ onClick) =>
			h("button", { "aria-pressed": pressed, onClick }, label),
		n = l.rows.length,
		before = l.old && !l.loading && n > 0 // the question has failed

	return [
		h(
			"div",
			{ class: "tools" },
			h(
				"span",
				{ class: "dim" },
				l.loading === "all" && !n
					? " "
					: before
						? (refused(l.error) ? "not asked; " : "") + "records of the question before"
						: l.error && !n
							? ""
							: all < 0
								? `${some(n, "record")} loaded`
								: all < n
									? `${some(n, "record")} loaded, the histogram counts ${count(all)}`
									: `${count(n)} of ${some(all, "record")} loaded`,
				l.dropped ? `; at most ${count(view.live ? ring : mostRows)} are kept, others load again` : "",
				l.lost && "; " + l.lost,
			),
			h(
				"span",
				{ role: "status", class: "keys-only" },
				!view.live && shared.total >= 0 && some(shared.total, "record"),
			),
			h("span", { class: "space" }),
			view.live
				? [
						h("span", { role: "status" }, live.word || (live.paused ? "Paused" : "Following")),
						live.paused
							? h(
									"button",
									{
										class: "main",
										onClick: () => {
											live.pause("")
											to(oldest ? Infinity : 0)
										},
									},
									`${count(live.news)} new`,
								)
							: null,
						h("span", { role: "status", class: "keys-only" }, live.said),
					]
				: null,
			button("Newest first", !oldest, () => set({ oldest: !oldest })),
			button("Wrap", view.wrap, () => set({ wrap: !view.wrap })),
			h(Columns, props),
		),
		l.error && !(refused(l.error) && n)
			? h(
					"p",
					{ role: "alert", class: "failed" },
					refused(l.error) ? "This was not asked: the search has a mistake." : [l.error.message, " "],
					!refused(l.error) &&
						h(
							"button",
							{
								onClick: () => {
									l.error = undefined
									n && !l.old ? draw() : props.again()
								},
							},
							"Try again",
						),
				)
			: null,
		!n && !l.loading && !l.error ? h(None, { ...props, end: l.end }) : null,
		h(
			"div",
			{
				class: `list${view.wrap ? " wrap" : ""}${l.loading ? " wait" : ""}`,
				role: "grid",
				"aria-label": "Records",
				"aria-rowcount": l.total < 0 && l.down ? -1 : places() + Math.sign(columns.length),
				"aria-busy": !!l.loading,
				tabIndex: n ? -1 : 0,
				ref: box,
				onScroll() {
					const top = box.current.scrollTop
					if (Math.abs(top - l.put) < 1) return
					Object.assign(l, { put: top, top: top * ratio() })
					draw()
					follow()
				},
				onWheel(/** @type {WheelEvent} */ e) {
					if (ratio() === 1 || e.ctrlKey || !e.deltaY) return
					e.preventDefault()
					scroll(e.deltaY * [1, l.height, l.inView][e.deltaMode])
				},
				onKeyDown(/** @type {any} */ e) {
					if (e.ctrlKey || e.metaKey || e.altKey || !keys[e.key] || e.target.matches("button")) return
					e.preventDefault()
					e.stopPropagation()
					keys[e.key]()
				},
			},
			columns.length
				? h(
						"div",
						{ role: "row", class: "heads", "aria-rowindex": 1, style: { minWidth: wide } },
						head.map((c, i) =>
							h(
								"span",
								{
									key: i,
									role: "columnheader",
									"aria-label": c,
									class: ["ts", "level", "service"][i] ?? (i > 2 + columns.length ? "msg" : "col"),
								},
								h("span", null, c),
								i > 2 && i < 3 + columns.length
									? h(
											"button",
											{ "aria-label": "Remove column " + c, onClick: () => set({ columns: toggled(columns, c) }) },
											"×",
										)
									: null,
							),
						),
					)
				: null,
			h(
				"div",
				{
					class: before ? "rows stale" : "rows",
					ref: sheet,
					role: "presentation",
					style: { height: drawn() + "px", minWidth: wide },
				},
				visible.map(rowAt),
				n && !l.down && !view.live
					? h(
							"p",
							{ role: "row", class: "dim end", style: { top: places() * l.height - offset + "px" } },
							h(
								"span",
								{ role: "gridcell" },
								`No ${oldest ? "newer" : "older"} records in this range. `,
								h(Widen, props),
							),
						)
					: null,
			),
		),
	]
}

/** Buttons of longer ranges. @param {Props} props */
function Widen({ view, set, range }) {
	const from = ms(range.from),
		to = ms(range.to) || Date.now()
	return ["1h", "6h", "1d", "7d", "30d", "365d"]
		.filter((d) => duration(d) > to - from)
		.slice(0, 2)
		.map((d) =>
			h(
				"button",
				{
					key: d,
					onClick: () =>
						set(
							view.since
								? { since: d }
								: view.oldest
									? { to: stamp(from + duration(d)) }
									: { from: stamp(to - duration(d)) },
						),
				},
				"Widen to " + d,
			),
		)
}

/** Why there is nothing, what may have been meant, and where the nearest records are. @param {Props & {end?: End}} props */
function None(props) {
	const { view, set, question, range, asked, end } = props
	const near = useAnswer(asked, (signal) =>
		Promise.all(
			[
				{ from: "", to: range.from },
				{ from: range.to, to: "" },
			].map(async (times, i) => {
				/** @type {string[]} */
				const found = []
				if (times.from || times.to)
					await source.records(
						{ ...question, ...times },
						{ limit: 1, oldest: !!i, each: (rows) => found.push(partsOf(rows[0]).ts) },
						signal,
					)
				return found[0]
			}),
		),
	)
	const filters = [(view.q || view.logql) && "the search", view.chips.some((c) => !c.off) && "the filters"]
			.filter(Boolean)
			.join(" and "),
		none = near.value && !near.value.some(Boolean),
		half = ((ms(range.to) || Date.now()) - ms(range.from)) / 2 || 18e5
	const when = (/** @type {string} */ t) => time(t, view.utc, { day: true, digits: 0 })
	return h(
		"div",
		{ class: "nothing" },
		h(
			"p",
			null,
			`No record of ${view.services.join(", ") || "any service"}${range.from && " from " + when(range.from)}${range.to && " to " + when(range.to)}${filters && " matches " + filters}.`,
		),
		end?.notes.map((note) => h("p", { key: note }, note)),
		near.value?.map(
			(ts, i) =>
				ts &&
				h(
					"p",
					{ key: i },
					i ? "The next one after: " : "The last one before: ",
					h(
						"a",
						{ href: "#" + fragment({ ...view, since: "", from: stamp(ms(ts) - half), to: stamp(ms(ts) + half) }) },
						when(ts),
					),
				),
		),
		none ? h("p", null, "There is none before or after either.") : failed(near),
		filters
			? h(
					"button",
					{ onClick: () => set({ q: "", logql: "", chips: view.chips.map((c) => ({ ...c, off: true })) }) },
					"Show all records of the range",
				)
			: null,
		none ? null : h(Widen, props),
	)
}

/** The menu of the fields with columns of their own. @param {Props} props */
function Columns({ view, set, shared }) {
	const { columns } = view
	const inside = () => {
		const fields = [...new Set([...columns, ...shared.fields])].filter(
			(f) => !["ts", "level", "service", "msg"].includes(f),
		)
		return [
			fields.map((f) =>
				h(
					"label",
					{ key: f },
					h("input", {
						type: "checkbox",
						checked: columns.includes(f),
						onChange: () => set({ columns: toggled(columns, f) }),
					}),
					" ",
					f,
				),
			),
			fields.length ? "" : "The records have no other fields.",
		]
	}
	return h(Menu, { name: "Columns", class: "cols", inside })
}
