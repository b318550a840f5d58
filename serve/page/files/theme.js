// The theme: that of the system, unless the reader chose one.

import { h } from "./preact.js"
import { useEffect, useState } from "./hooks.js"

export function Theme() {
	const [theme, set] = useState(localStorage.getItem("theme") ?? "")
	useEffect(() => {
		document.documentElement.dataset.theme = theme
		theme ? localStorage.setItem("theme", theme) : localStorage.removeItem("theme")
	}, [theme])
	const dark = theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches
	return h("button", { type: "button", "aria-label": "Theme", title: "Theme", onClick: () => set(dark ? "light" : "dark") }, dark ? "☀" : "☾")
}
