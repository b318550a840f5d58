// The page: layout, and what the parts share. Start reading here, then state.js (the view and its
// link), term.js (from the view to a question), source.js (from a question to records).
//
//	state -> view -> question + range -> each part asks the source -> report -> bar, foot
//
// A part gets Props. It changes the view by `set`, and nothing else.

import { h, render } from "./preact.js"
import { useEffect, useErrorBoundary, useMemo, useRef, useState } from "./hooks.js"
import * as source from "./source.js"
import { State } from "./state.js"
import { questionOf } from "./term.js"
import { useAnswer } from "./ask.js"
import { duration, stamp } from "./format.js"
import { SearchLine, Chips } from "./searchline.js"
import { Services } from "./services.js"
import { Time } from "./time.js"
import { Histogram } from "./hist.js"
import { Facets } from "./facets.js"
import { List } from "./list.js"
import { RecordPane } from "./record.js"
import { Context } from "./context.js"
import { Patterns } from "./patterns.js"
import { Command, Download, CopyLink } from "./command.js"
import { Missing, Foot } from "./bar.js"
import { Account, Login, other, whoKey } from "./login.js"
import { useKeys, KeysHelp } from "./keys.js"
import { Theme } from "./theme.js"

function App() {
	const [, draw] = useState(0)
	const state = useMemo(() => new State(() => draw((n) => n + 1)), [])
	const [run, setRun] = useState(1)
	const [who, setWho] = useState(/** @type {Whoami | undefined} */ (undefined))
	const [door, setDoor] = useState(/** @type {"open" | "closed" | Error | undefined} */ (undefined))
	const skew = useRef(0)
	useEffect(() => {
		const giveUp = new AbortController()
		source.whoami(giveUp.signal).then(
			(who) => {
				skew.current = Date.parse(who.time) - Date.now()
				if (other(who.id)) return location.reload()
				setWho(who)
				setDoor("open")
			},
			(err) => giveUp.signal.aborted || setDoor((was) => (err.status === 401 ? "closed" : was === "open" ? was : err)),
		)
		return () => giveUp.abort()
	}, [run])
	useEffect(() => {
		addEventListener("pageshow", (e) => e.persisted && setRun((n) => n + 1))
		addEventListener("storage", (e) => e.key === whoKey && location.reload())
	}, [])

	const { view } = state
	useEffect(() => {
		if (!view.every || !view.since || view.live) return
		const timer = setInterval(() => document.hidden || setRun((n) => n + 1), duration(view.every))
		return () => clearInterval(timer)
	}, [view.every, view.since, view.live])
	const range = useMemo(() => {
		if (!view.since) return { from: view.from, to: view.to }
		const now = Date.now() + skew.current
		return { from: stamp(now - (duration(view.since) || 3_600_000)), to: stamp(now) }
	}, [view.since, view.from, view.to, run, who === undefined])

	const question = questionOf(view, range)
	const said = useSaid(question, door === "open")
	const key = `${run} ${JSON.stringify(question)}`
	const [parts, report] = useParts()
	const shared = useShared()

	/** @type {Props} */
	const props = {
		view,
		set: (c, how) => state.set(c, how),
		question,
		mistake: view.wrong ? new Error(view.wrong) : undefined,
		...said,
		range,
		asked: key,
		again: () => setRun((n) => n + 1),
		report,
		who,
		left: () => setDoor("closed"),
		shared,
	}
	useKeys(props)
	useEffect(() => {
		const all = [...parts.values()]
		document.documentElement.dataset.state =
			door !== "open" || !all.length || all.some((p) => p.loading)
				? door instanceof Error
					? "failed"
					: "loading"
				: all.some((p) => p.error)
					? "failed"
					: "ready"
	})
	const ended = [...parts.values()].some((p) => /** @type {source.Failure | undefined} */ (p.error)?.status === 401)
	useEffect(() => {
		if (ended) props.left()
	}, [ended])
	if (door === undefined) return h("p", { class: "soon" }, "Loading…")
	const login = door === "open" ? null : h(Login, { why: door instanceof Error ? door : undefined, done: props.again })
	if (login && !who) return h("main", null, login)

	return h(
		"div",
		{ class: "page" },
		h(
			"header",
			{ class: "top" },
			h("h1", null, "blobtail"),
			h(Services, props),
			h(Time, props),
			h("button", { onClick: props.again }, "Refresh"),
			h("button", { "aria-pressed": view.live, onClick: () => shared.act("live"), title: "f" }, "Live"),
			h("span", { class: "space" }),
			h(Command, props),
			h(CopyLink, props),
			h(Download, props),
			h(Theme, null),
			h(Account, props),
			h(KeysHelp, props),
		),
		h(
			"main",
			null,
			h("div", { class: "ask" }, h(SearchLine, { ...props, parts }), h(Chips, props)),
			h(Missing, { ...props, parts }),
			h(Histogram, props),
			h(
				"div",
				{ class: "tabs", role: "tablist", "aria-label": "Views" },
				["records", "patterns"].map((tab) =>
					h(
						"button",
						{
							role: "tab",
							id: "tab-" + tab,
							"aria-selected": view.tab === tab,
							"aria-controls": "panel",
							onClick: () => props.set({ tab, around: "" }),
						},
						tab === "records" ? "Records" : "Patterns",
					),
				),
			),
			h(
				"div",
				{ class: "work" + (view.sel ? " chosen" + (view.around ? " around" : "") : "") },
				h(Facets, props),
				h(
					"div",
					{ class: "panel", id: "panel", role: "tabpanel", "aria-labelledby": "tab-" + view.tab },
					view.tab === "patterns" ? h(Patterns, props) : h(List, props),
					view.sel && view.around ? h(Context, props) : null,
				),
				view.sel ? h(RecordPane, props) : null,
			),
		),
		h(Foot, { ...props, parts }),
		login,
	)
}

/** What a question says, which is asked beside the records: they do not wait for it. @param {Question} question @param {boolean} open */
function useSaid(question, open) {
	const line = question.q.length && open ? String(source.params({ ...question, from: "", to: "" })) : ""
	const said = useAnswer(line, async (signal) => ({
			...(await source.parse(new URLSearchParams(line), signal)),
			of: line,
		})).value,
		terms = (line && said?.terms) || []
	return {
		parsed: said?.of === line ? said : undefined,
		terms,
		texts: terms.filter((t) => t.kind === "text" && !t.not).map((t) => t.value),
	}
}

/**
 * What the parts report.
 * @returns {[Map<string, Part>, Reporter]}
 */
function useParts() {
	const [, draw] = useState(0)
	const parts = useRef(/** @type {Map<string, Part>} */ (new Map()))
	const report = useMemo(
		() => (/** @type {string} */ name, /** @type {Part} */ part) => {
			parts.current.set(name, part)
			draw((n) => n + 1)
			return () => {
				parts.current.delete(name)
				draw((n) => n + 1)
			}
		},
		[],
	)
	return [parts.current, report]
}

/** @returns {Shared} */
function useShared() {
	return useMemo(() => {
		/** @type {Map<string, (...args: any[]) => void>} */
		const offers = new Map()
		return {
			rows: [],
			near: [],
			total: -1,
			fields: [],
			tints: new Map(),
			spans: [],
			act: (name, ...args) => offers.get(name)?.(...args),
			offer: (name, call) => void offers.set(name, call),
		}
	}, [])
}

/** Words in place of an empty page, if a part of it fails. */
function Safe() {
	const [err] = useErrorBoundary(() => {
		document.documentElement.dataset.state = "failed"
	})
	return err
		? h(
				"p",
				{ role: "alert", class: "mistake" },
				`The page has failed: ${err.message}. `,
				h("a", { href: "./" }, "Begin anew"),
			)
		: h(App, null)
}

render(h(Safe, null), /** @type {HTMLElement} */ (document.getElementById("app")))
