// The line for a search, with suggestions, and the filters below it.

import { h } from "./preact.js"
import { useEffect, useRef, useState } from "./hooks.js"
import * as source from "./source.js"
import { refused, useAnswer } from "./ask.js"
import { keep, kept } from "./keep.js"
import { suggest } from "./suggest.js"

/** What was asked before; false: it is not kept. Another page of this origin may have written there. @returns {any} */
function history() {
	const past = kept("history", [])
	return past && (Array.isArray(past) ? past.filter((text) => typeof text === "string").slice(0, 100) : [])
}

/** What the server says of a line that is typed. @param {string} typed the line, its part before the caret, and whether it is LogQL */
function useTyped(typed) {
	const [text, before, lang] = JSON.parse(typed || '[""]')
	return useAnswer(text.trim() && typed, async (signal) => {
		await new Promise((go) => setTimeout(go, 50)) // or each key would ask
		signal.throwIfAborted()
		const of = lang ? { logql: text } : { q: text, ...(before.trim() && { typed: before }) }
		return { ...(await source.parse(of, signal)), of: typed }
	}).value
}

/** @param {Props & {parts: Map<string, Part>}} props */
export function SearchLine({ view, set, again, mistake, shared, asked, question, range, parts }) {
	const [lang, setLang] = useState(false),
		[past, setPast] = useState(history),
		[wrong, setWrong] = useState(/** @type {any} */ (undefined)),
		[name, setName] = useState("")
	const [line, setLine] = useState({ text: "", caret: 0, open: false, at: -1 }),
		{ text, caret, open, at } = line,
		input = useRef(/** @type {any} */ (null))
	const change = (/** @type {Partial<typeof line>} */ to) => setLine((l) => ({ ...l, at: -1, ...to }))
	const put = (/** @type {string} */ text, caret = text.length, open = false) => {
		change({ text, caret, open })
		setTimeout(() => input.current?.setSelectionRange(caret, caret))
	}
	useEffect(() => {
		setLang(!!view.logql)
		setWrong(undefined)
		change({ text: view.logql || view.q })
	}, [view.q, view.logql])
	useEffect(() => keep("history", past), [past])
	shared.offer("search", (term) => {
		input.current.focus()
		if (term) put(`${text} ${term}`.trim())
	})

	const before = text.slice(0, caret),
		typed = JSON.stringify([text, before, lang])
	const heard = useTyped(open ? typed : "")
	// The word of what was there before a key stays until that of the new text comes.
	const word = (before.trim() && !lang && heard?.word) || { from: 0, name: "", value: "" },
		fresh = !before.trim() || heard?.of === typed,
		wanted = open && word.sign && !/^(level|service)$/.test(word.name) ? word.name : ""
	useEffect(() => {
		const timer = setTimeout(setName, 250, wanted)
		return () => clearTimeout(timer)
	}, [wanted])
	const services =
		useAnswer(open && word.name === "service" ? asked : "", (signal) =>
			source.services(range, signal),
		).value?.services.map((s) => s.name) ?? []
	const values = useAnswer(name && `${asked} ${name}`, (signal) =>
		source.facets(question, { fields: name, top: 50 }, signal),
	).value?.fields.find((f) => f.name === word.name)
	const asks = (past || []).filter(
		(/** @type {string} */ t) => !word.sign && t !== text && t.toLowerCase().includes(before.toLowerCase()),
	)
	const options = (open && !lang ? suggest(word, { fields: shared.fields, services, values }) : [])
		.map((o) => ({ ...o, from: word.from }))
		.concat(open && !lang ? asks.map((/** @type {string} */ text) => ({ text, note: "asked before", from: 0 })) : [])
		.slice(0, 12)
	const pick = ({ text: chosen, from } = options[at]) => {
		const head = [...before].slice(0, from).join("") + chosen
		if (fresh) put(head + text.slice(caret), head.length, true)
	}

	const submit = (/** @type {Event} */ e) => {
		e.preventDefault()
		change({ open: false })
		const next = text.trim(),
			wrong = heard?.of === typed ? heard.mistake : undefined
		// What is not known to be wrong is asked at once: the server reads it once more.
		setWrong(wrong)
		if (wrong) {
			const at = [...text].slice(0, (wrong.column ?? 1) - 1).join("").length
			return input.current.setSelectionRange(at, at)
		}
		if (past && next && !lang) setPast([next, ...past.filter((/** @type {string} */ t) => t !== next)].slice(0, 100))
		next === (lang ? view.logql : view.q) ? again() : set(lang ? { logql: next } : { q: next, logql: "" })
	}
	const onKeyDown = (/** @type {KeyboardEvent} */ e) => {
		const step = { ArrowDown: 1, ArrowUp: -1 }[e.key],
			n = options.length
		if (step) change({ open: true, at: n && (Math.max(at, step < 0 ? 0 : -1) + step + n) % n })
		else if (/^(Enter|Tab)$/.test(e.key) && options[at]) pick()
		else if (e.key === "Escape" && open) change({ open: false })
		else return e.key === "Escape" && input.current.blur()
		e.preventDefault()
	}
	const no = [...parts.values()].map((p) => p.error).find(refused)
	const shown = wrong
		? { message: (wrong.column ? `column ${wrong.column}: ` : "") + wrong.text, line: "" }
		: /** @type {any} */ (mistake ?? no)
	const onInput = (/** @type {any} */ { target }) => {
		change({ text: target.value, caret: target.selectionStart, open: true })
		if (target.value !== text) setWrong(undefined)
	}
	return h(
		"form",
		{
			class: "search",
			role: "search",
			onSubmit: submit,
			onFocusOut: (/** @type {any} */ e) => e.currentTarget.contains(e.relatedTarget) || change({ open: false }),
		},
		h(
			"div",
			{ class: "line" },
			h("input", {
				ref: input,
				id: "search",
				role: "combobox",
				"aria-label": "Search",
				"aria-expanded": options.length > 0,
				"aria-controls": "suggestions",
				"aria-autocomplete": "list",
				"aria-activedescendant": options[at] && "suggestion-" + at,
				"aria-invalid": !!shown,
				placeholder: lang
					? '{service_name="web"} |= "text"'
					: 'text, "two words", /re/, -word, (a OR b), field=value, level>=warn',
				autocomplete: "off",
				spellcheck: false,
				value: text,
				onInput,
				onFocus: () => change({ open: true }),
				onClick: onInput,
				onKeyDown,
			}),
			h(
				"button",
				{
					type: "button",
					"aria-pressed": view.fold,
					"aria-label": "Ignore case",
					title: "Ignore case of texts",
					disabled: lang,
					onClick: () => set({ fold: !view.fold }),
				},
				"Aa",
			),
			h(
				"button",
				{
					type: "button",
					"aria-pressed": lang,
					title: "Ask in LogQL, in place of services and filters",
					onClick: () => {
						setLang(!lang)
						if (view.logql) set({ logql: "" })
						else if (lang) change({ text: view.q })
						else
							source.parse(source.params(question)).then(
								(p) => change({ text: p.logql }),
								() => {},
							)
						input.current.focus()
					},
				},
				"LogQL",
			),
		),
		options.length || (open && !text && past)
			? h(
					"div",
					{ class: "suggest", onMouseDown: (/** @type {Event} */ e) => e.preventDefault() },
					h(
						"ul",
						{ id: "suggestions", role: "listbox", "aria-label": "Suggestions" },
						options.map((o, i) =>
							h(
								"li",
								{
									key: o.text,
									id: "suggestion-" + i,
									role: "option",
									"aria-selected": i === at,
									onClick: () => pick(o),
								},
								o.text,
								h("span", { class: "dim" }, o.note),
							),
						),
					),
					h("button", { type: "button", onClick: () => setPast([]) }, "Clear history"),
					h(
						"button",
						{ type: "button", "aria-pressed": !!past, onClick: () => setPast(past ? false : []) },
						"Keep history",
					),
				)
			: null,
		shown
			? h(
					"p",
					{ class: shown === mistake ? "mistake" : "mistake over", role: "alert" },
					shown.line && shown.line.trim() !== text.trim() ? `in the filter ${shown.line}: ` : "",
					shown.message,
				)
			: null,
	)
}

/** @param {Props} props */
export function Chips({ view, set, shared }) {
	if (!view.chips.length) return null
	const put = (/** @type {number} */ i, /** @type {Chip[]} */ ...chips) =>
		set({ chips: view.chips.toSpliced(i, 1, ...chips) })
	const edit = (/** @type {number} */ i) => {
		shared.act("search", view.chips[i].text)
		put(i)
	}
	return h(
		"ul",
		{ class: "chips", "aria-label": "Filters" },
		view.chips.map((chip, i) =>
			h(
				"li",
				{ key: i },
				h(
					"button",
					{
						"aria-pressed": !chip.off,
						title: "On or off; double click or F2: edit",
						onClick: () => put(i, { ...chip, off: !chip.off }),
						onDblClick: () => edit(i),
						onKeyDown: (/** @type {KeyboardEvent} */ e) => (e.key === "F2" ? edit(i) : e.key === "Delete" && put(i)),
					},
					chip.text,
				),
				h("button", { "aria-label": "Remove " + chip.text, onClick: () => put(i) }, "×"),
			),
		),
		h(
			"li",
			null,
			h("button", { onClick: () => set({ chips: [] }) }, "Clear filters"),
			view.logql && " They do not count beside LogQL.",
		),
	)
}
