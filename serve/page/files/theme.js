// The theme: that of the system, unless the reader chose one.

import { h } from "./preact.js"
import { useEffect, useState } from "./hooks.js"

const next = /** @type {const} */ ({ system: "light", light: "dark", dark: "system" })

/** @returns {keyof typeof next} */
function kept() {
	try {
		const theme = /** @type {keyof typeof next} */ (localStorage.getItem("theme"))
		return next[theme] ? theme : "system"
	} catch {
		return "system"
	}
}

export function Theme() {
	const [theme, set] = useState(kept)
	useEffect(() => {
		document.documentElement.dataset.theme = theme
		try {
			localStorage.setItem("theme", theme)
		} catch { /* it lasts as long as the page */ }
	}, [theme])
	return h("button", { type: "button", "aria-label": "Theme", title: `Theme: ${theme}; next: ${next[theme]}`, onClick: () => set(next[theme]) }, { system: "◐", light: "☀", dark: "☾" }[theme])
}
