// Live: new records by themselves. The tail begins with the newest records, so nothing lies between
// them and what comes. It goes on from its cursor after a break, and ids tell what came twice.

import { useEffect, useRef, useState } from "./hooks.js"
import * as source from "./source.js"
import { useNewest, useReport } from "./ask.js"
import { some, stamp } from "./format.js"

const again = "Connecting again…"

/** A list that follows keeps so many rows. */
export const ring = 5000

/** A follower that connects again remembers so many ids of records that have to come again. */
const mostBefore = 100_000

/** @returns {Following} */
const fresh = () => ({
	cursor: "",
	begun: false,
	word: "Connecting…",
	paused: "",
	news: 0,
	came: 0,
	unsaid: 0,
	said: "",
	cut: false,
	waiting: [],
	seen: new Set(),
	before: new Set(),
})

/**
 * Follows while the view is live, and passes the new rows on once a frame.
 * @param {Props} props
 * @param {(rows: Row[], first: boolean) => void} show
 */
export function useLive({ view, question, range, asked, report }, show) {
	const [, draw] = useState(0),
		[turn, setTurn] = useState(0),
		state = useRef(fresh()),
		newest = useNewest(show),
		frame = useRef(0),
		l = state.current
	const flush = () => {
		const l = state.current
		frame.current = 0
		if (!l.paused && l.cut) return setTurn((n) => n + 1)
		if (!l.paused && (l.waiting.length || !l.begun)) {
			newest.current(l.waiting, !l.begun)
			Object.assign(l, { waiting: [], news: 0, begun: true })
		}
		draw((n) => n + 1)
	}
	const soon = () => void (frame.current ||= requestAnimationFrame(flush))
	useEffect(() => {
		const l = (state.current = fresh())
		soon()
		if (!view.live) return void (l.begun = true)
		let open = new AbortController(),
			hidden = 0
		const connect = () =>
			follow(l, question, range.to || stamp(Date.now()), soon, (open = new AbortController()).signal)
		const see = () => {
			clearTimeout(hidden)
			if (document.hidden) hidden = setTimeout(() => open.abort(), 30_000)
			else if (open.signal.aborted) connect()
		}
		const say = setInterval(() => {
			if (l.unsaid) Object.assign(l, { said: some(l.unsaid, "new record"), unsaid: 0 })
			soon()
		}, 5000)
		document.addEventListener("visibilitychange", see)
		connect()
		return () => {
			open.abort()
			clearTimeout(hidden)
			clearInterval(say)
			document.removeEventListener("visibilitychange", see)
		}
	}, [view.live, asked, turn])
	useReport(report, "live", { value: l.told, error: l.error, loading: false, stale: false })
	return {
		...l,
		/** "" goes on; "scroll": until the newest row is in view; "key": until told to. @param {string} why */
		pause(why) {
			if (!view.live || l.paused === why) return
			l.paused = why
			soon()
		},
		/** The list has dropped its newest rows: going on begins anew. */
		cutOff: () => void (state.current.cut = true),
	}
}

/** @param {Following} l @param {Question} q @param {string} since those before are not new @param {() => void} changed @param {AbortSignal} signal */
async function follow(l, q, since, changed, signal) {
	for (let wait = 500; !signal.aborted; wait = Math.min(2 * wait, 15_000)) {
		try {
			await source.tail(
				q,
				l.cursor ? { after: l.cursor } : { n: 200 },
				(events) => {
					wait = 250
					l.word = ""
					events.forEach((e) => take(l, e, since))
					changed()
				},
				signal,
			)
			l.word = again
		} catch (err) {
			const { status = 0, message } = /** @type {source.Failure} */ (err)
			if (!signal.aborted && [400, 401, 403, 404].includes(status)) {
				Object.assign(l, { word: message, error: err })
				return changed()
			}
			l.word = signal.aborted ? again : `${again} ${message}`
		}
		// What came since the cursor comes again, in any order, and a cursor may be in between.
		l.before = new Set(l.cursor ? [...l.before, ...l.seen].slice(-mostBefore) : [])
		l.seen = new Set()
		if (!l.cursor) Object.assign(l, { begun: false, waiting: [], news: 0, came: 0, unsaid: 0 })
		changed()
		await new Promise((go) => {
			setTimeout(go, wait)
			signal.addEventListener("abort", go)
		})
	}
}

/** @param {Following} l @param {Told} e @param {string} since */
function take(l, e, since) {
	if (e.id !== undefined) {
		if (l.seen.has(e.id)) return
		l.seen.add(e.id)
		if (l.before.delete(e.id)) return
		if (l.cursor || e.line.slice(7, 37) >= since) {
			l.came++
			l.unsaid++
			l.news++
		}
		l.cut ||= l.waiting.push(e) > 2 * ring
		if (l.cut) l.waiting = []
	} else if (e.cursor) [l.seen, l.cursor] = [new Set(), e.cursor]
	else l.told = source.joined(l.told, source.outcomeOf(e))
}
