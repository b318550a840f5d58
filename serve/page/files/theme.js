// The theme: that of the system, unless the reader chose one.

import { h } from "./preact.js"
import { useEffect, useState } from "./hooks.js"
import { keep, kept } from "./keep.js"

const themes = ["system", "light", "dark"]

export function Theme() {
	const [at, set] = useState(() => Math.max(0, themes.indexOf(kept("theme"))))
	useEffect(() => {
		document.documentElement.dataset.theme = themes[at]
		keep("theme", themes[at])
	}, [at])
	return h(
		"button",
		{ "aria-label": "Theme", title: "Theme: " + themes[at], onClick: () => set((at + 1) % 3) },
		"◐☀☾"[at],
	)
}
