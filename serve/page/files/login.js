// The door: a token makes a cookie, which the browser keeps. The page keeps the token nowhere.

import { h } from "./preact.js"
import { useEffect, useRef, useState } from "./hooks.js"
import * as source from "./source.js"
import { keep, kept } from "./keep.js"

/** Where the browser keeps the id of the last reader, for this page and its other tabs. */
export const whoKey = "who " + location.pathname

let last = /** @type {string | undefined} */ (undefined)

/** Forgets what another reader asked; true if this page has shown something to another. */
export function other(id = "") {
	const before = last
	last = id
	if (kept(whoKey, "") !== id) {
		keep("history", kept("history") === false ? false : [])
		keep(whoKey, id)
	}
	return before !== undefined && before !== id
}

/** @param {{why?: Error, done: () => void}} props why: the server does not answer */
export function Login({ why, done }) {
	const [told, say] = useState(""),
		said = told || why?.message,
		box = useRef(/** @type {any} */ (null))
	useEffect(() => {
		const before = /** @type {HTMLElement | null} */ (document.activeElement)
		box.current.showModal()
		return () => before?.focus()
	}, [])
	const enter = async (/** @type {any} */ e) => {
		e.preventDefault()
		const field = e.target.token,
			token = field?.value.trim().replace(/^bearer\s+/i, "")
		if (field && !/^[^\s.]+\.\S+$/.test(token))
			return say("This is no token: paste all of it, its id, a dot and its secret.")
		try {
			if (field) await source.login(token)
			e.target.reset()
			done()
		} catch (err) {
			const { status, message } = /** @type {source.Failure} */ (err)
			say(status === 401 ? "This token is not known here, or has expired. Ask for another one." : message)
			field.select()
		}
	}
	return h(
		"dialog",
		{
			ref: box,
			class: "dialog login",
			"aria-label": why ? "No answer" : "Log in",
			onCancel: (/** @type {Event} */ e) => e.preventDefault(),
		},
		h(
			"form",
			{ class: "inside", onSubmit: enter },
			h("h1", null, why ? "No answer" : "Log in"),
			why
				? null
				: h(
						"label",
						null,
						"Token ",
						h("input", { name: "token", type: "password", autocomplete: "off", required: true }),
						" ",
					),
			why ? null : h("p", { class: "dim" }, "The text that ingest token new printed. Your operator makes one."),
			h("button", { class: "main" }, why ? "Try again" : "Log in"),
			said ? h("p", { role: "alert", class: "mistake" }, said) : null,
		),
	)
}

/** @param {Props} props */
export function Account({ who }) {
	const [said, say] = useState("Log out")
	return who?.id
		? h(
				"button",
				{
					title: who.id,
					onClick: () =>
						source.logout().then(
							() => {
								other()
								location.reload()
							},
							(err) => say(err.message),
						),
				},
				said,
			)
		: null
}
