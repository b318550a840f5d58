// The line for a search, with suggestions, and the filters below it.

import { h } from "./preact.js"
import { useEffect, useRef, useState } from "./hooks.js"
import * as source from "./source.js"
import { useAnswer, useNewest } from "./ask.js"
import { Mistake, parse, questionOf } from "./search.js"
import { logqlOf } from "./logql.js"
import { history, keep, remember, suggest, wordAt } from "./suggest.js"

/** @param {Props & {parts: Map<string, Part>}} props */
export function SearchLine(props) {
	const { view, set, mistake, shared, asked, question, range, parts } = props
	const [lang, setLang] = useState(!!view.logql), kept = lang ? view.logql : view.q
	const [text, setText] = useState(kept), [open, setOpen] = useState(false), [at, setAt] = useState(-1), [wrong, setWrong] = useState(/** @type {Error | undefined} */ (undefined)), [past, setPast] = useState(history)
	const [field, setField] = useState(""), input = useRef(/** @type {HTMLInputElement | null} */ (null)), newest = useNewest(props), check = useRef(new AbortController())
	useEffect(() => setLang(!!view.logql), [view.logql])
	useEffect(() => { setText(kept); setWrong(undefined) }, [kept])
	shared.offer("search", (/** @type {string | undefined} */ edit) => {
		if (edit !== undefined) setText((t) => `${t} ${edit}`.trim())
		input.current?.focus()
	})

	const caret = input.current?.selectionStart ?? text.length, word = wordAt(text, caret)
	const wanted = open && !lang && word.name && word.name !== "level" && word.name !== "service" ? word.name : ""
	useEffect(() => {
		const timer = setTimeout(() => setField(wanted), 250)
		return () => clearTimeout(timer)
	}, [wanted])
	const services = useAnswer(open && word.name === "service" ? `${range.from} ${range.to}` : "", (signal) => source.services(range, signal))
	const values = useAnswer(field && `${asked} ${field}`, (signal) => source.facets(question, { fields: field, top: 50 }, signal))
	const options = !open || lang ? [] : suggest(text, caret, {
		fields: shared.fields, services: services.value?.services.map((s) => s.name) ?? [], values: values.value?.fields.find((f) => f.name === word.name), history: past ?? [],
	})

	const put = (/** @type {string} */ value, /** @type {number} */ from) => {
		const next = text.slice(0, from) + value + text.slice(caret)
		setText(next)
		setAt(-1)
		requestAnimationFrame(() => input.current?.setSelectionRange(from + value.length, from + value.length))
	}
	const submit = async () => {
		check.current.abort()
		const { signal } = (check.current = new AbortController()), next = text.trim()
		setOpen(false)
		setAt(-1)
		try {
			const { view, range } = newest.current, change = lang ? { logql: next } : { q: next, logql: "" }
			const q = questionOf({ ...view, ...change }, range)
			// A read of no time at all tells the mistakes that the server alone knows.
			if (next && (q.exprs.length || q.where.length || q.logql)) await source.number({ ...q, services: ["_"], from: "2000-01-01", to: "2000-01-02" }, signal).catch((err) => { if (err.status === 400) throw lang ? err : placed(next, err, q) })
			if (signal.aborted) return
			setWrong(undefined)
			remember(next)
			setPast(history())
			newest.current.set(change)
		} catch (err) {
			if (!signal.aborted) setWrong(/** @type {Error} */ (err))
		}
	}
	const onKeyDown = (/** @type {KeyboardEvent} */ e) => {
		const step = { ArrowDown: 1, ArrowUp: -1 }[e.key]
		if (step) {
			setOpen(true)
			setAt(options.length ? ((at < 0 && step < 0 ? 0 : at) + step + options.length) % options.length : 0)
		} else if ((e.key === "Enter" || e.key === "Tab") && options[at] && open) put(options[at].text, options[at].from)
		else if (e.key === "Escape" && open) setOpen(false)
		else if (e.key === "Escape") return input.current?.blur()
		else return
		e.preventDefault()
		e.stopPropagation()
	}
	const refused = [...parts.values()].find((p) => /** @type {source.Failure | undefined} */ (p.error)?.status === 400)?.error
	const shown = wrong ?? mistake ?? (refused && placed(view.q, refused, question))
	return h("form", { class: "search", role: "search", onSubmit: (/** @type {Event} */ e) => { e.preventDefault(); submit() }, onFocusOut: (/** @type {any} */ e) => e.currentTarget.contains(e.relatedTarget) || setOpen(false) },
		h("div", { class: "line" },
			h("input", {
				id: "search", ref: input, type: "text", role: "combobox", "aria-label": "Search", "aria-expanded": open && options.length > 0, "aria-controls": "suggestions", "aria-autocomplete": "list", "aria-activedescendant": options[at] ? "suggestion-" + at : undefined,
				"aria-invalid": !!shown, placeholder: lang ? '{service_name="web"} |= "text"' : 'text, "two words", /re/, -word, field=value, level>=warn', autocomplete: "off", autocapitalize: "off", spellcheck: false,
				value: text, onInput: (/** @type {any} */ e) => { setText(e.target.value); setOpen(true); setAt(-1) }, onFocus: () => setOpen(true), onClick: () => setOpen(true), onKeyDown,
			}),
			h("button", { type: "button", "aria-pressed": view.fold, title: "Upper and lower case are the same in texts", disabled: lang, "aria-label": "Ignore case", onClick: () => set({ fold: !view.fold }) }, "Aa"),
			h("button", { type: "button", "aria-pressed": lang, title: "The whole question in LogQL, in place of services and filters", onClick: () => {
				setLang(!lang)
				setWrong(undefined)
				lang ? set({ logql: "" }) : setText(logqlOf(view, question).text)
				input.current?.focus()
			} }, "LogQL"),
			h("button", null, "Search")),
		open && (options.length || (!text && past)) ? h("div", { class: "suggest", onMouseDown: (/** @type {Event} */ e) => e.preventDefault() },
			h("ul", { id: "suggestions", role: "listbox", "aria-label": "Suggestions" }, options.map((o, i) => h("li", { key: o.text, id: "suggestion-" + i, role: "option", "aria-selected": i === at, onClick: () => put(o.text, o.from) }, o.text, h("span", { class: "dim" }, o.note)))),
			h("p", null,
				h("button", { type: "button", onClick: () => { keep([]); setPast([]) } }, "Clear history"),
				h("button", { type: "button", "aria-pressed": !!past, onClick: () => { keep(past ? undefined : []); setPast(history()) } }, "Keep history"))) : null,
		shown ? h("p", { class: "mistake", role: "alert" }, shown instanceof Mistake ? `column ${shown.column + 1}: ${shown.message}` : shown.message) : null)
}

/**
 * A refusal of the server, at the term that it is about.
 * @param {string} text @param {Error} err @param {Question} q
 */
function placed(text, err, q) {
	try {
		const [, column, what] = /^where: column (\d+): (.*)$/s.exec(err.message) ?? [, 0, err.message.replace(/; to search text as it is: -F$/, "; quotes search a text as it is")]
		const part = /`([^`]*)`/.exec(what)?.[1] ?? "", terms = parse(text)
		const re = terms.find((t) => (t.kind === "expr" || t.form === "re") && part && t.value.includes(part)), own = re ?? terms.find((t) => t.kind === "where")
		return own ? new Mistake(what, own.begin + (re || q.where.length > 1 ? 0 : Number(column) + (own.not ? 2 : 6))) : err
	} catch {
		return err
	}
}

/** @param {Props} props */
export function Chips({ view, set, shared }) {
	if (!view.chips.length) return null
	const without = (/** @type {number} */ i) => set({ chips: view.chips.filter((_, at) => at !== i) })
	return h("ul", { class: "chips", "aria-label": "Filters" },
		view.chips.map((chip, i) => h("li", { key: i, class: chip.off ? "off" : "" },
			h("button", {
				type: "button", "aria-pressed": !chip.off, title: "Turn it off or on; F2 or a double click edits it", onClick: () => set({ chips: view.chips.map((c, at) => at === i ? { ...c, off: !c.off } : c) }),
				onDblClick: () => edit(i), onKeyDown: (/** @type {KeyboardEvent} */ e) => e.key === "F2" ? edit(i) : e.key === "Delete" && without(i),
			}, chip.text),
			h("button", { type: "button", "aria-label": "Remove " + chip.text, onClick: () => without(i) }, "×"))),
		h("li", null, h("button", { type: "button", onClick: () => set({ chips: [] }) }, "Clear filters")),
		view.logql ? h("li", { class: "dim" }, "They do not count beside LogQL.") : null)

	/** Puts a filter back into the line. @param {number} i */
	function edit(i) {
		without(i)
		shared.act("search", view.chips[i].text)
	}
}
