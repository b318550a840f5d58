// The door: a token makes a cookie, which the browser keeps and this page cannot read.

import { h } from "./preact.js"
import { useState } from "./hooks.js"
import * as source from "./source.js"

/** @param {{why?: Error, done: () => void}} props */
export function Login({ why, done }) {
	const [error, setError] = useState(why)
	const enter = (/** @type {any} */ e) => {
		e.preventDefault()
		source.login(new FormData(e.target).get("token")?.toString().trim() ?? "").then(done, setError)
	}
	return h("dialog", { open: true, class: "login", "aria-label": "Log in" },
		h("form", { onSubmit: enter },
			h("label", null, "Token ", h("input", { name: "token", type: "password", autocomplete: "current-password", required: true })),
			h("button", null, "Log in"), error ? h("p", { role: "alert" }, error.message) : null))
}
