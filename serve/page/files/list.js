// The list: a million records, of which it holds a part and draws those in view. Each row has its
// place among all records of the question, so the scroll bar is that of all of them; places that
// the list has not counted up to are estimated from the histogram, and put right at either end.

import { h } from "./preact.js"
import { useEffect, useLayoutEffect, useRef, useState } from "./hooks.js"
import * as source from "./source.js"
import { useAnswer, useNewest, useReport } from "./ask.js"
import { compare, fieldOf, marked, merge, nameOf, partsOf } from "./rows.js"
import { ring, useLive } from "./live.js"
import { fragment } from "./state.js"
import { count, duration, levels, ms, some, stamp, time } from "./format.js"

/** The list keeps so many rows and bytes, and asks for so many at once. Browsers limit the height of an element. */
const mostRows = 10_000, mostBytes = 64 << 20, bytesAtOnce = 8 << 20, page = 400, tallest = 8e6, foot = 60

/** What the list holds: rows in the order of the list, the first at the place `start` of all. */
const empty = () => ({
	rows: /** @type {Row[]} */ ([]), start: 0, up: false, down: false, bytes: 0, dropped: false, top: 0, put: 0, current: "", sought: "", lost: false,
	loading: "", error: /** @type {Error | undefined} */ (undefined), end: /** @type {End | undefined} */ (undefined), open: false,
})

/** @param {Props} props */
export function List(props) {
	const { view, set, question, range, report, shared, asked } = props
	const [, redraw] = useState(0), draw = () => redraw((n) => n + 1)
	const now = useNewest(props), state = useRef(empty()), l = state.current
	const box = useRef(/** @type {HTMLElement | null} */ (null)), all = useRef(/** @type {HTMLElement | null} */ (null))
	const busy = useRef(new AbortController()), focus = useRef(false), shape = useRef(/** @type {Promise<Histogram> | undefined} */ (undefined))

	const live = useLive(props, (fresh, first) => {
		const { oldest } = now.current.view
		if (first) {
			busy.current.abort()
			Object.assign(l, empty(), { open: true, current: l.current, [oldest ? "up" : "down"]: true })
		}
		const last = l.rows.at(oldest ? 0 : -1)
		// Those older than the list, among others that it has not, come with these.
		if (last && (oldest ? l.up : l.down)) fresh = fresh.filter((r) => compare(r.id, last.id) > 0)
		l.rows = merge(l.rows, fresh, oldest)
		if (l.rows.length > ring) drop(!oldest, l.rows.length - ring)
		weigh()
		to(oldest ? Infinity : 0)
	})

	const height = view.wrap ? 60 : 20
	const inView = (box.current?.clientHeight || 600) - (view.columns.length ? 20 : 0)
	const total = shared.total < 0 || view.live ? -1 : shared.total + live.came
	const places = () => l.start + l.rows.length + (l.down ? Math.max(1, total - l.start - l.rows.length) : 0)
	const tall = () => places() * height + (l.down ? 0 : foot), drawn = () => Math.min(tall(), Math.max(tallest, inView))
	const ratio = () => (tall() > drawn() ? (tall() - inView) / (drawn() - inView) : 1)

	/** Scrolls to a place, in px of all rows. @param {number} top */
	const to = (top) => {
		l.top = Math.max(0, Math.min(top, tall() - inView))
		if (box.current && all.current) {
			all.current.style.height = drawn() + "px"
			box.current.scrollTop = l.top / ratio()
			l.put = box.current.scrollTop
		}
		draw()
	}
	/** Gives the first row another place, and lets what is in view stay there. @param {number} start */
	const move = (start) => {
		const by = (start - l.start) * height
		l.start = start
		if (by) to(l.top + by)
	}
	const weigh = () => { l.bytes = l.rows.reduce((n, r) => n + r.line.length, 0) }
	/** Drops rows at an end. @param {boolean} below @param {number} n */
	const drop = (below, n) => {
		l.rows = below ? l.rows.slice(0, -n) : l.rows.slice(n)
		l.dropped = l[below ? "down" : "up"] = true
		if (!below) l.start += n
		if (view.live && below === view.oldest) live.cutOff()
	}
	/** @param {Row[]} more the nearest first @param {boolean} below */
	const add = (more, below) => {
		l.rows = below ? [...l.rows, ...more] : [...more.reverse(), ...l.rows]
		if (!below) {
			l.start -= more.length
			if (l.start < 0) move(0)
		}
		for (weigh(); l.rows.length > 1 && (l.rows.length > mostRows || l.bytes > mostBytes); weigh()) drop(!below, Math.max(1, l.rows.length - mostRows, l.rows.length >> 6))
		draw()
	}

	/**
	 * Asks for rows beyond a record, or from an end on.
	 * @param {boolean} below @param {string | undefined} id @param {(rows: Row[]) => void} each @param {{limit?: number, more?: Partial<Question>}} [how]
	 */
	const ask = async (below, id, each, { limit = page, more } = {}) => {
		const { question, view } = now.current, oldest = below === view.oldest
		const stop = new AbortController(), { signal } = busy.current
		signal.addEventListener("abort", () => stop.abort())
		let bytes = 0
		try {
			return await source.records({ ...question, ...(view.live && { to: "" }), ...more }, {
				limit, oldest, before: oldest ? undefined : id, after: oldest ? id : undefined,
				each: (rows) => {
					if (signal.aborted) return
					each(rows)
					bytes += rows.reduce((n, r) => n + r.line.length, 0)
					if (bytes > bytesAtOnce) stop.abort()
				},
			}, stop.signal)
		} catch (err) {
			// Long records come in small portions.
			if (signal.aborted || bytes <= bytesAtOnce) throw err
			return undefined
		}
	}
	/** One load at a time; a new one gives the one before up. @param {string} what @param {() => Promise<void>} load */
	const loads = (what, load) => {
		busy.current.abort()
		const { signal } = (busy.current = new AbortController())
		Object.assign(l, { loading: what, error: undefined })
		draw()
		load().then(() => signal.aborted || (l.loading = ""), (error) => signal.aborted || Object.assign(l, { loading: "", error })).then(() => {
			if (signal.aborted) return
			l.open = true
			draw()
		})
	}
	/** @param {End | undefined} end @param {boolean} below */
	const ended = (end, below) => {
		l[below ? "down" : "up"] = end?.more ?? true
		if (end) l.end = joined(l.end, end)
		if (!l.up) move(0)
		to(l.top)
	}
	/** More at an end. @param {boolean} below */
	const extend = (below) => loads(below ? "down" : "up", async () => ended(await ask(below, l.rows.at(below ? -1 : 0)?.id, (rows) => add(rows, below)), below))
	/**
	 * Begins anew at the first record, the last one, or a place in between.
	 * @param {boolean} below from here downwards @param {number} place @param {Partial<Question>} [more]
	 */
	const begin = (below, place, more) => loads("all", async () => {
		let first = true
		const clear = () => {
			if (first) Object.assign(l, { rows: [], start: place, up: below && place > 0, down: !below, bytes: 0 })
			if (first && below) to(place * height)
			first = false
		}
		if (below && !l.open) l.top = 0
		const end = await ask(below, undefined, (rows) => { clear(); add(rows, below); if (!below) { l.down = false; to(Infinity) } }, { limit: l.open ? page : 200, more })
		clear()
		if (!below) l.down = false
		ended(end, below)
		if (!below) to(Infinity)
	})
	/** The record, with others around it. @param {string} name */
	const around = (name) => loads("all", async () => {
		/** @type {Row[]} */
		const above = [], below = /** @type {Row[]} */ ([])
		const id = name.slice(name.indexOf("/") + 1)
		const a = await ask(false, id, (rows) => above.push(...rows), { limit: 100 })
		const b = await ask(true, above[0]?.id, (rows) => below.push(...rows), { limit: 101 })
		l.lost = below[0]?.id !== id
		if (l.lost && l.rows.length) return
		const place = a && !a.more ? above.length : Math.max(above.length, await placeOf(Number(BigInt(id.split("-")[0]) / 1_000_000n)))
		Object.assign(l, { rows: [], bytes: 0, start: place, current: l.lost ? "" : name, end: undefined, down: true })
		add(below, true)
		add(above, false)
		ended(b, true)
		ended(a, false)
		to(l.start * height + above.length * height - inView / 2)
	})

	/** The numbers of records over time, for places that are not loaded. */
	const buckets = async () => {
		shape.current ??= source.histogram(now.current.question, { buckets: 300 }, new AbortController().signal)
		const { buckets } = await shape.current.catch((err) => { shape.current = undefined; throw err }), { oldest } = now.current.view
		const end = ms(question.to) || Date.now()
		const spans = buckets.map((b, i) => ({ from: ms(b.t), to: buckets[i + 1] ? ms(buckets[i + 1].t) : Math.max(end, ms(b.t) + 1), n: b.total }))
		return oldest ? spans : spans.reverse().map(({ from, to, n }) => ({ from: to, to: from, n }))
	}
	/** @param {number} at ms */
	const placeOf = async (at) => {
		let sum = 0
		for (const { from, to, n } of await buckets()) sum += n * Math.max(0, Math.min(1, (at - from) / (to - from)))
		return Math.round(sum)
	}
	/** @param {number} place */
	const timeOf = async (place) => {
		let sum = 0
		for (const { from, to, n } of await buckets()) {
			if (n && sum + n > place) return from + ((place - sum) / n) * (to - from)
			sum += n
		}
		return undefined
	}
	const home = () => (l.up ? begin(true, 0) : to(0))
	const end = () => (l.down ? begin(false, places()) : to(Infinity))
	/** @param {number} place */
	const jump = async (place) => {
		if (place <= 0) return home()
		const at = await timeOf(place).catch((error) => void Object.assign(l, { error }))
		if (l.error) return draw()
		if (at === undefined) return end()
		begin(true, place, view.oldest ? { from: stamp(Math.floor(at)) } : { to: stamp(Math.ceil(at)) })
	}

	const first = Math.floor(l.top / height), last = Math.min(first + Math.ceil(inView / height) + 1, places())
	/** Loads what is in view, or nearly. */
	useEffect(() => {
		if (l.loading || l.error || !l.open || !l.rows.length) return
		const margin = Math.ceil(inView / height), under = last - l.start - l.rows.length, over = l.start - first
		if (Math.max(under, over) > 3 * page) {
			const timer = setTimeout(() => jump(first), 150)
			return () => clearTimeout(timer)
		}
		if (l.down && under > -margin) extend(true)
		else if (l.up && over > -margin) extend(false)
	})

	useEffect(() => {
		const asks = view.sel !== l.sought && view.sel
		shape.current = undefined
		l.end = undefined
		l.open = l.dropped = l.lost = false
		if (view.live) return
		if (asks) around(view.sel)
		else begin(true, 0)
		l.sought = view.sel
		return () => busy.current.abort()
	}, [asked, view.oldest, view.live])
	useEffect(() => {
		const asks = view.sel && view.sel !== l.sought && l.open && !l.rows.some((r) => nameOf(r) === view.sel)
		l.sought = view.sel
		if (asks && !view.live) around(view.sel)
		else if (!view.sel && document.activeElement === document.body) focus.current = true
	}, [view.sel])
	useEffect(() => {
		const seen = new ResizeObserver(() => to(l.top))
		if (box.current) seen.observe(box.current)
		shared.offer("total", draw)
		shared.offer("tints", draw)
		return () => seen.disconnect()
	}, [])
	useLayoutEffect(() => to(l.top), [height, inView, total])
	useReport(report, "records", { value: l.end, error: l.error, loading: l.loading === "all" && !l.rows.length, stale: false })
	shared.rows = l.rows

	const index = l.rows.findIndex((r) => nameOf(r) === l.current)
	/** Makes a row the current one. @param {number} i of the rows */
	const go = (i) => {
		const row = l.rows[Math.max(0, Math.min(i, l.rows.length - 1))]
		if (!row) return
		if (view.live) live.pause(live.paused || "scroll")
		l.current = nameOf(row)
		focus.current = true
		if (view.sel) set({ sel: (l.sought = l.current) }, { quiet: true })
		const y = (l.start + l.rows.indexOf(row)) * height
		to(Math.min(y, Math.max(l.top, y + height - inView)))
	}
	const step = (/** @type {number} */ by) => go(index < 0 ? first - l.start : index + by)
	const open = () => l.current && set({ sel: (l.sought = l.current) })
	/** @param {string} level @param {boolean} back */
	const nextLevel = (level, back) => {
		const words = level === "error" ? ["error", "critical"] : [level]
		for (let i = index + (back ? -1 : 1); i >= 0 && i < l.rows.length; i += back ? -1 : 1) if (words.includes(partsOf(l.rows[i]).level)) return go(i)
		const from = l.rows.at(back ? 0 : -1)
		if (!from || !l[back ? "up" : "down"] || question.logql) return
		loads("all", async () => {
			/** @type {Row[]} */
			const found = []
			await ask(!back, from.id, (rows) => found.push(...rows), { limit: 1, more: { where: [...question.where, words.map((w) => `level == "${w}"`).join(" or ")] } })
			if (found[0]) around(nameOf(found[0]))
		})
	}
	const scroll = (/** @type {number} */ by) => {
		to(l.top + by)
		follow()
	}
	/** Follows again at the newest row, and not before. */
	const follow = () => {
		const there = view.oldest ? !l.down && l.top >= tall() - inView - height : l.top < height
		if (view.live && live.paused !== "key") live.pause(there ? "" : "scroll")
	}
	/** @type {Record<string, () => void>} */
	const keys = {
		ArrowDown: () => step(1), ArrowUp: () => step(-1), j: () => step(1), k: () => step(-1), Enter: open, PageDown: () => scroll(inView - height), PageUp: () => scroll(height - inView),
		Home: () => { home(); follow() }, End: () => { end(); follow() }, " ": () => live.pause(live.paused ? "" : "key"),
	}
	for (const [name, call] of Object.entries({ next: keys.j, previous: keys.k, open, nextLevel, pause: keys[" "], copyLine: () => index >= 0 && navigator.clipboard?.writeText(l.rows[index].line) })) shared.offer(name, call)

	useLayoutEffect(() => {
		if (!focus.current) return
		focus.current = false
		const row = /** @type {HTMLElement | null | undefined} */ (box.current?.querySelector('[role=row][tabindex="0"]'))
		row?.focus({ preventScroll: true })
	})

	const offset = l.top - l.put, long = range.from === "" || time(range.from, view.utc, { day: true }).slice(0, 10) !== time(range.to || stamp(Date.now()), view.utc, { day: true }).slice(0, 10)
	/** @param {number} i of the rows */
	const rowAt = (i) => {
		const row = l.rows[i], p = partsOf(row), name = nameOf(row), text = (/** @type {string} */ s) => marked(s, question.texts, view.fold)
		const tint = view.split === "level" ? "" : shared.tints.get(view.split.split(",").map((f) => fieldOf(row, f) ?? "(none)").join(" / ")) ?? "none"
		return h("div", {
			key: name, role: "row", "data-id": name, "aria-rowindex": l.start + i + 1 + (view.columns.length ? 1 : 0), "aria-selected": view.sel === name, tabIndex: i === (index < 0 ? Math.max(0, first - l.start) : index) ? 0 : -1,
			class: `row ${levels.includes(p.level) ? p.level : "other"}`, style: { top: (l.start + i) * height - offset + "px", height: height + "px" },
			onClick: () => {
				if (getSelection()?.isCollapsed === false) return
				l.current = l.sought = name
				if (view.live) live.pause(live.paused || "scroll")
				set({ sel: name })
			},
			onFocus: () => (l.current = name),
		},
		tint ? h("i", { class: tint }) : null,
		h("span", { role: "gridcell", class: "ts", title: `${p.ts} (UTC), ${time(p.ts, false, { day: true, digits: 9 })} here` }, time(p.ts, view.utc, { day: long })), h("span", { role: "gridcell", class: "level" }, p.level),
		h("span", { role: "gridcell", class: "service" }, p.service),
		view.columns.map((c) => h("span", { role: "gridcell", class: "col", key: c }, fieldOf(row, c))),
		h("span", { role: "gridcell", class: "msg" }, h("bdi", null, text(p.msg)), " ", h("bdi", { class: "rest" }, text(p.rest), p.long ? "…" : "")))
	}
	const shownRows = []
	for (let i = Math.max(0, first - 8 - l.start); i < Math.min(l.rows.length, last + 8 - l.start, first + 170 - l.start); i++) shownRows.push(i)
	if (index >= 0 && !shownRows.includes(index)) shownRows.push(index)
	const none = l.open && !l.loading && !l.rows.length && !l.error

	return [
		h("div", { class: "tools" },
			h("span", { class: "dim" }, said(l, shared.total < 0 ? -1 : shared.total + live.came)),
			l.lost ? h("span", null, "The chosen record is not among those of this question.") : null,
			h("span", { class: "space" }),
			view.live ? h("span", { role: "status" }, live.word || (live.paused ? "Paused" : "Following")) : null,
			view.live && live.paused ? h("button", { type: "button", class: "main", onClick: () => { live.pause(""); to(view.oldest ? Infinity : 0) } }, `${count(live.news)} new`) : null,
			h("span", { role: "status", class: "keys-only" }, live.said),
			h("button", { type: "button", "aria-pressed": !view.oldest, onClick: () => set({ oldest: !view.oldest }) }, "Newest first"),
			h("button", { type: "button", "aria-pressed": view.wrap, onClick: () => set({ wrap: !view.wrap }) }, "Wrap"), h(Columns, props)),
		l.error ? h("p", { role: "alert", class: "failed" }, l.error.message, " ", h("button", { type: "button", onClick: () => { l.error = undefined; l.open && l.rows.length ? draw() : props.again() } }, "Try again")) : null,
		none ? h(None, props) : null,
		h("div", {
			class: "list" + (view.wrap ? " wrap" : "") + (l.loading ? " wait" : ""), role: "grid", "aria-label": "Records", "aria-rowcount": total < 0 && l.down ? -1 : places() + (view.columns.length ? 1 : 0), "aria-busy": !!l.loading, tabIndex: l.rows.length ? -1 : 0, ref: box,
			onScroll: () => {
				const top = box.current?.scrollTop ?? 0
				if (Math.abs(top - l.put) < 1) return
				l.put = top
				l.top = top * ratio()
				draw()
				follow()
			},
			onWheel: (/** @type {WheelEvent} */ e) => {
				if (ratio() === 1 || e.ctrlKey) return
				e.preventDefault()
				scroll(e.deltaY * [1, height, inView][e.deltaMode])
			},
			onKeyDown: (/** @type {KeyboardEvent} */ e) => {
				if (e.ctrlKey || e.metaKey || e.altKey || !keys[e.key] || /** @type {HTMLElement} */ (e.target).matches("button")) return
				e.preventDefault()
				e.stopPropagation()
				keys[e.key]()
			},
		},
		view.columns.length ? h("div", { role: "row", class: "head", "aria-rowindex": 1 }, ["time", "level", "service", ...view.columns, "message"].map((c, i) => h("span", { key: i, role: "columnheader", class: ["ts", "level", "service"][i] ?? (c === "message" ? "msg" : "col"), "aria-label": c }, c,
			i > 2 && i < 3 + view.columns.length ? h("button", { type: "button", "aria-label": "Remove column " + c, onClick: () => set({ columns: view.columns.filter((d) => d !== c) }) }, "×") : null))) : null,
		h("div", { class: "rows", ref: all, role: "presentation", style: { height: drawn() + "px" } }, shownRows.map(rowAt),
			l.open && !l.down && l.rows.length && !view.live ? h("p", { class: "dim end", role: "presentation", style: { top: places() * height - offset + "px" } }, `No ${view.oldest ? "newer" : "older"} records in this range. `, h(Widen, props)) : null)),
	]
}

/** How much of the records is here. @param {ReturnType<typeof empty>} l @param {number} total */
function said(l, total) {
	const n = l.rows.length
	if (!l.open && !n) return " "
	const text = total < 0 ? `${some(n, "record")} loaded` : total < n ? `${some(n, "record")} loaded, the histogram counts ${count(total)}` : `${count(n)} of ${some(total, "record")} loaded`
	return text + (l.dropped ? `; at most ${count(mostRows)} are kept, others load again` : "")
}

/** The outcome of a list that was loaded in parts. @param {End | undefined} a @param {End} b @returns {End} */
function joined(a, b) {
	if (!a) return b
	const union = (/** @type {any[]} */ x, /** @type {any[]} */ y) => [...new Map([...x, ...y].map((v) => [JSON.stringify(v), v])).values()].slice(-50)
	return {
		...b, complete: a.complete && b.complete, problems: union(a.problems, b.problems), warnings: union(a.warnings, b.warnings), notes: union(a.notes, b.notes), gaps: union(a.gaps, b.gaps),
		cost: { requests: a.cost.requests + b.cost.requests, bytes: a.cost.bytes + b.cost.bytes },
	}
}

/** Buttons of longer ranges. @param {Props} props */
function Widen({ view, set, range }) {
	const end = ms(range.to) || Date.now(), width = end - ms(range.from)
	return ["1h", "6h", "1d", "7d", "30d", "365d"].filter((d) => duration(d) > width).slice(0, 2).map((d) => h("button", {
		key: d, type: "button",
		onClick: () => set(view.since ? { since: d } : view.oldest ? { from: range.from, to: stamp(ms(range.from) + duration(d)) } : { from: stamp(end - duration(d)), to: range.to }),
	}, `Widen to ${d}`))
}

/** Why there is nothing, and where the nearest records are. @param {Props} props */
function None(props) {
	const { view, set, question, range, asked } = props
	const near = useAnswer(asked, (signal) => Promise.all([false, true].map(async (later) => {
		/** @type {Row[]} */
		const rows = []
		if (later ? range.to : range.from) await source.records({ ...question, ...(later ? { from: range.to, to: "" } : { from: "", to: range.from }) }, { limit: 1, oldest: later, each: (more) => rows.push(...more) }, signal)
		return rows[0]
	})))
	const filters = view.q || view.logql || view.chips.some((c) => !c.off), half = ((ms(range.to) || Date.now()) - ms(range.from)) / 2 || 18e5
	const when = (/** @type {string} */ t) => (t ? time(t, view.utc, { day: true, digits: 0 }) : "the beginning")
	return h("div", { class: "none" },
		h("p", null, `No record of ${view.services.join(", ") || "any service"} from ${when(range.from)} to ${range.to ? when(range.to) : "now"}${filters ? " that the search and the filters let through" : ""}.`),
		near.value?.map((row, i) => row ? h("p", { key: i }, i ? "The next one after: " : "The last one before: ", h("a", { href: "#" + fragment({ ...view, since: "", from: stamp(ms(partsOf(row).ts) - half), to: stamp(ms(partsOf(row).ts) + half) }) }, when(partsOf(row).ts))) : null),
		near.value && !near.value.some(Boolean) ? h("p", null, "There is none before or after either.") : null,
		near.error ? h("p", { role: "alert" }, near.error.message) : null,
		filters ? h("button", { type: "button", onClick: () => set({ q: "", logql: "", chips: view.chips.map((c) => ({ ...c, off: true })) }) }, "Search without filters") : null, h(Widen, props))
}

/** The menu of the fields with columns of their own. @param {Props} props */
function Columns({ view, set, shared }) {
	const [open, setOpen] = useState(false)
	const fields = [...new Set([...view.columns, ...shared.fields])].filter((f) => !["ts", "level", "service", "msg"].includes(f)).slice(0, 100)
	return h("span", {
		class: "menu", onKeyDown: (/** @type {KeyboardEvent} */ e) => { if (e.key === "Escape" && open) { e.stopPropagation(); setOpen(false) } },
		onFocusOut: (/** @type {any} */ e) => e.currentTarget.contains(e.relatedTarget) || setOpen(false),
	},
	h("button", { type: "button", "aria-expanded": open, onClick: () => setOpen(!open) }, "Columns"),
	open ? h("div", { role: "group", "aria-label": "Columns", tabIndex: -1 }, fields.length ? fields.map((f) => h("label", { key: f }, h("input", {
		type: "checkbox", checked: view.columns.includes(f), onChange: () => set({ columns: view.columns.includes(f) ? view.columns.filter((c) => c !== f) : [...view.columns, f] }),
	}), " ", f)) : "The records have no other fields.") : null)
}
