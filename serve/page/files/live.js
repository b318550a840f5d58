// Live: new records by themselves. The tail begins with the newest records, so nothing lies between
// them and what comes. It goes on from its cursor after a break, and ids tell what came twice.

import { useEffect, useRef, useState } from "./hooks.js"
import * as source from "./source.js"
import { useNewest, useReport } from "./ask.js"
import { some, stamp } from "./format.js"

/** A list that follows keeps so many rows. */
export const ring = 5000

/** What one time of following knows. */
const fresh = () => ({
	cursor: "", begun: false, word: "Connecting…", paused: "", news: 0, came: 0, unsaid: 0, said: "", cut: false,
	waiting: /** @type {Row[]} */ ([]), seen: new Set(), before: new Set(), error: /** @type {Error | undefined} */ (undefined), told: /** @type {Outcome | undefined} */ (undefined),
})

/**
 * Follows while the view is live, and passes the new rows on once a frame.
 * @param {Props} props
 * @param {(rows: Row[], first: boolean) => void} show
 */
export function useLive({ view, question, range, asked, report }, show) {
	const [, draw] = useState(0), [turn, again] = useState(0)
	const at = useRef(fresh()), showNow = useNewest(show), frame = useRef(0)
	const l = at.current

	const flush = () => {
		frame.current = 0
		const l = at.current
		if (!l.paused && l.cut) return again((n) => n + 1)
		if (!l.paused && (l.waiting.length || l.begun === false)) {
			showNow.current(l.waiting, !l.begun)
			Object.assign(l, { waiting: [], news: 0, begun: true })
		}
		draw((n) => n + 1)
	}
	const soon = () => void (frame.current ||= requestAnimationFrame(flush))

	useEffect(() => {
		const l = (at.current = fresh())
		if (!view.live) return draw((n) => n + 1)
		let connection = new AbortController(), hidden = 0
		const connect = () => {
			connection = new AbortController()
			follow(l, question, range.to || stamp(Date.now()), soon, connection.signal)
		}
		const see = () => {
			clearTimeout(hidden)
			if (document.hidden) hidden = setTimeout(() => connection.abort(), 30_000)
			else if (connection.signal.aborted) connect()
		}
		const say = setInterval(() => {
			if (!l.unsaid) return
			Object.assign(l, { said: some(l.unsaid, "new record"), unsaid: 0 })
			draw((n) => n + 1)
		}, 5000)
		document.addEventListener("visibilitychange", see)
		connect()
		return () => {
			connection.abort()
			clearTimeout(hidden)
			clearInterval(say)
			cancelAnimationFrame(frame.current)
			frame.current = 0
			document.removeEventListener("visibilitychange", see)
		}
	}, [view.live, asked, turn])
	useReport(report, "live", { value: l.told, error: l.error, loading: false, stale: false })

	return {
		...l,
		/** "" goes on; "scroll" until the newest row is in view; "key" until told to. @param {string} why */
		pause(why) {
			if (!view.live || l.paused === why) return
			l.paused = why
			soon()
		},
		/** The list has dropped its newest rows: going on begins anew. */
		cutOff: () => void (l.cut = true),
	}
}

/**
 * @param {ReturnType<typeof fresh>} l @param {Question} q @param {string} since new records are those from here on
 * @param {() => void} changed @param {AbortSignal} signal
 */
async function follow(l, q, since, changed, signal) {
	for (let wait = 1000; ; wait = Math.min(2 * wait, 15_000)) {
		try {
			await source.tail(q, l.cursor ? { after: l.cursor } : { n: 200 }, (events) => {
				wait = 500
				l.word = ""
				events.forEach((e) => take(l, e, since))
				changed()
			}, signal)
			l.word = "The server ended the connection; connecting again…"
		} catch (err) {
			const { status, message } = /** @type {source.Failure} */ (err)
			if (signal.aborted) return
			if ([400, 401, 403, 404].includes(status)) {
				l.error = /** @type {Error} */ (err)
				l.word = "Stopped"
				return changed()
			}
			l.word = `${message}. It is tried again…`
		}
		if (signal.aborted) return
		if (!l.cursor) Object.assign(l, { begun: false, waiting: [], seen: new Set() })
		changed()
		await new Promise((go) => { setTimeout(go, wait); signal.addEventListener("abort", go) })
		if (signal.aborted) return
	}
}

/** @param {ReturnType<typeof fresh>} l @param {Told} e @param {string} since */
function take(l, e, since) {
	if (e.id !== undefined) {
		if (l.seen.has(e.id) || l.before.has(e.id)) return
		l.seen.add(e.id)
		if (l.cursor || e.line.slice(7, 37) >= since) {
			l.came++
			l.unsaid++
			l.news++
		}
		if (l.waiting.push(e) > 2 * ring) {
			l.waiting.splice(0, ring)
			l.cut = true
		}
	} else if (e.cursor) {
		;[l.before, l.seen, l.cursor] = [l.seen, new Set(), e.cursor]
	} else {
		const { problems = [], warnings = [], notes = [], gaps = [] } = l.told ?? {}
		const add = (/** @type {string[]} */ list, /** @type {string | undefined} */ text) => (text ? [...new Set([...list, text])].slice(-20) : list)
		l.told = {
			complete: !e.problem && !e.gap && l.told?.complete !== false, problems: add(problems, e.problem), warnings: add(warnings, e.warning ?? (e.absent && `there is no service ${e.absent} yet`)),
			notes: add(notes, e.note), gaps: e.gap ? [...gaps, e.gap].slice(-20) : gaps, cost: { requests: 0, bytes: 0 },
		}
	}
}
