// The door: a token makes a cookie, which the browser keeps and this page cannot read. The page
// keeps the token nowhere.

import { h } from "./preact.js"
import { useEffect, useRef, useState } from "./hooks.js"
import * as source from "./source.js"

/**
 * Asks for a token, or says why the server does not answer.
 * @param {{why?: Error, done: () => void}} props
 */
export function Login({ why, done }) {
	const [error, setError] = useState(why), [busy, setBusy] = useState(false), box = useRef(/** @type {HTMLDialogElement | null} */ (null))
	useEffect(() => {
		const before = /** @type {HTMLElement | null} */ (document.activeElement)
		box.current?.showModal()
		return () => before?.focus()
	}, [])
	const enter = async (/** @type {any} */ e) => {
		e.preventDefault()
		const field = e.target.elements.token, token = field?.value.trim().replace(/^bearer\s+/i, "") ?? ""
		if (!why && !/^[^\s.]+\.\S+$/.test(token)) return setError(Error("A token is an id and a secret with a dot between them, as ann.k3…: paste all of it."))
		setBusy(true)
		try {
			if (!why) await source.login(token)
			field?.form.reset()
			done()
		} catch (err) {
			const { status, message } = /** @type {source.Failure} */ (err)
			setError(Error(status === 401 ? "The server does not know this token, or it has expired. Ask for a new one." : message))
			field?.select()
		}
		setBusy(false)
	}
	return h("dialog", { ref: box, class: "dialog login", "aria-label": why ? "No answer" : "Log in", onCancel: (/** @type {Event} */ e) => e.preventDefault() },
		h("form", { class: "inside", onSubmit: enter },
			why ? null : h("label", null, "Token ", h("input", { name: "token", type: "password", autocomplete: "off", autofocus: true, required: true, "aria-describedby": "login-error" })), " ",
			h("button", { disabled: busy }, why ? "Try again" : "Log in"), error ? h("p", { id: "login-error", role: "alert", class: "mistake" }, error.message) : null))
}

/** @param {Props} props */
export function Account({ who }) {
	const [error, setError] = useState("")
	return who?.id ? h("button", { type: "button", title: `You are ${who.id}. ${error}`, onClick: () => source.logout().then(() => location.reload(), (err) => setError(err.message)) }, error || "Log out") : null
}
