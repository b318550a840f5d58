// For everybody: by keys alone, in both themes, on a small screen, at 200 %, with reduced motion.
import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { broken, sleep, status, until } from "../scene.mjs"

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

/**
 * Findings of axe-core, in both themes. Rows are alike, so a few of them are looked at; and
 * the theme changes the contrast alone.
 */
async function findings(page) {
	if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axe)
	const found = new Set()
	for (const [theme, runOnly] of [
		["light", undefined],
		["dark", ["color-contrast"]],
	]) {
		await page.emulateMedia({ colorScheme: theme })
		const { violations } = await page.evaluate((runOnly) => {
			const rows = [...document.querySelectorAll("[role=row][data-id]")]
				.slice(6)
				.map((_, n) => `[role=row][data-id]:nth-child(${n + 7})`)
			return window.axe.run(
				{ exclude: rows.map((r) => [r]) },
				{ resultTypes: ["violations"], ...(runOnly && { runOnly }) },
			)
		}, runOnly)
		for (const v of violations) {
			const nodes = v.nodes
				.slice(0, 3)
				.map((n) => `${n.html.slice(0, 140)} ${n.any[0]?.message ?? n.all[0]?.message ?? n.none[0]?.message ?? ""}`)
			found.add(`${theme}: ${v.id} (${v.impact}, ${v.nodes.length}): ${nodes.join(" | ")}`)
		}
	}
	return [...found]
}

/** A button of the bar that opens a dialog, from the list. */
const dialog = (name) => async (ui) => {
	await ui.press("Escape")
	await ui.button(new RegExp("^" + name)).click()
	await ui.dialog(name).waitFor()
}

/** Views of the page, by a name, and how one comes there from the one before. */
const views = {
	"the list and its panes": {
		records: (ui) => ui.range(),
		record: (ui) => ui.choose(),
		context: (ui) =>
			ui
				.button("Context", ui.record)
				.or(ui.record.getByRole("tab", { name: "Context" }))
				.first()
				.click()
				.then(() => ui.context.waitFor()),
	},
	dialogs: {
		services: (ui) => ui.range().then(() => dialog("Services")(ui)),
		time: dialog("Time"),
		command: dialog("Command"),
		keys: async (ui) => {
			await ui.press("Escape")
			await ui.press("?")
			await ui.dialog("Keys").waitFor()
		},
	},
	questions: {
		patterns: (ui) => ui.range({ tab: "patterns" }),
		chips: (ui) =>
			ui.range({
				q: "basket",
				f: ["level=error", "-path=/login"],
				off: "status=404",
				split: "status,level",
				col: "status",
			}),
		empty: (ui) => ui.range({ q: "no-such-text" }),
		live: (ui) =>
			ui
				.range()
				.then(() => ui.live.click())
				.then(() => ui.follows()),
	},
}

/** Views that one need not see on a small screen too. */
const alike = ["empty", "live"]

const fits = async (ui, name) => {
	const { page, window } = await ui.wide()
	assert.ok(page <= window, `${name}: the page is ${page} px wide in a window of ${window}`)
}

export default [
	...Object.entries(views).map(([part, steps]) => ({
		name: `access: axe finds nothing in ${part}`,
		async run({ ui, page }) {
			for (const [name, go] of Object.entries(steps)) {
				await go(ui)
				assert.deepEqual(await findings(page), [], name)
			}
		},
	})),
	{
		name: "access: axe finds nothing in the log in",
		world: "tokens",
		allow: [status(401, "whoami")],
		async run({ ui, page, url }) {
			await page.goto(url + "/")
			await ui.dialog("Log in").waitFor()
			assert.deepEqual(await findings(page), [])
		},
	},
	{
		name: "access: axe finds nothing in the bar of what is missing",
		world: "expired",
		async run({ ui, page }) {
			await ui.answer("histogram", (r, answer, body) => r.fulfill({ response: answer, body: body.slice(0, 40) }))
			await ui.open("", { wait: false })
			await ui.missing.first().waitFor()
			assert.deepEqual(await findings(page), [])
		},
	},
	{
		name: "access: names and roles of list and histogram",
		async run({ ui }) {
			await ui.range()
			const grid = await ui.grid.ariaSnapshot()
			assert.match(grid, /- grid "Records"/)
			assert.match(grid, /- row /)
			const count = Number(await ui.grid.getAttribute("aria-rowcount"))
			assert.ok(count === -1 || count >= 100, `aria-rowcount ${count}`)
			assert.match(await ui.histogram.ariaSnapshot(), /img "[^"]*100,0\d\d records?/)
			const level = await ui.rows.first().innerText()
			assert.match(level, /info|debug|warn|error|critical/i, "a level is a word, and not only a colour")
		},
	},
	...Object.entries({
		"360 px": { viewport: { width: 360, height: 740 } },
		"200 %": { viewport: { width: 640, height: 400 }, deviceScaleFactor: 2 },
	}).map(([size, context]) => ({
		name: `access: at ${size} nothing scrolls sideways`,
		context,
		limit: 60,
		async run({ ui }) {
			for (const [name, go] of Object.values(views).flatMap((steps) => Object.entries(steps))) {
				if (alike.includes(name)) continue
				await go(ui)
				await fits(ui, name)
			}
			await ui.range()
			await ui.some(3)
			const { height } = await ui.grid.boundingBox()
			assert.ok(height >= 100, `the list is ${height} px high`)
		},
	})),
	{
		name: "access: at 360 px list and record come one after the other",
		context: { viewport: { width: 360, height: 740 } },
		async run({ ui }) {
			await ui.range()
			await ui.choose()
			const list = (await ui.grid.isVisible()) ? await ui.grid.boundingBox() : null,
				record = await ui.record.boundingBox()
			assert.ok(!list || record.y >= list.y + list.height - 1 || record.height > 500, JSON.stringify({ list, record }))
			assert.ok(record.width > 300)
			await ui.button("Close", ui.record).click()
			await ui.some(3)
		},
	},
	{
		name: "access: reduced motion",
		context: { reducedMotion: "reduce" },
		async run({ ui, page }) {
			await ui.range()
			await ui.choose()
			const moving = await page.evaluate(() =>
				[...document.querySelectorAll("*")]
					.filter((e) => {
						const s = getComputedStyle(e),
							longest = (text) =>
								Math.max(...text.split(",").map((t) => parseFloat(t) * (t.trim().endsWith("ms") ? 1 : 1000)))
						return (
							longest(s.transitionDuration) > 10 ||
							(s.animationName !== "none" && longest(s.animationDuration) > 10) ||
							s.scrollBehavior === "smooth"
						)
					})
					.map((e) => e.outerHTML.slice(0, 100)),
			)
			assert.deepEqual(moving, [])
		},
	},
	{
		name: "access: the focus is never lost",
		allow: [broken],
		async run({ ui, page }) {
			await ui.range({ f: ["level=error", "-status=600"] })
			await ui.some(3)
			const enter = async (button) => {
				await button.focus()
				await ui.press("Enter")
			}
			const kept = (what) => until(`${what}: something has the focus`, async () => !!(await ui.focused()))
			for (const chip of ["-status=600", "level=error"]) {
				await ui.asks(() => enter(ui.button("Remove " + chip)))
				await kept(chip)
			}
			await ui.choose()
			await ui
				.button("Tree", ui.record)
				.or(ui.record.getByRole("tab", { name: "Tree" }))
				.focus()
			await ui.press("ArrowRight")
			assert.equal((await ui.focused()).name, "JSON", "arrows go from tab to tab")
			await enter(ui.button("Close", ui.record))
			await ui.record.waitFor({ state: "detached" })
			await kept("the record is closed")
			const back = await ui.answer("histogram", "abort")
			await ui.button("Refresh").click()
			await ui.missing.waitFor()
			await back()
			await enter(ui.button("Try again", ui.missing))
			await ui.missing.waitFor({ state: "detached" })
			await kept("nothing is missing any more")
			await enter(ui.button("Command"))
			await ui.press("Escape")
			assert.equal((await ui.focused())?.name, "Command")
		},
	},
	{
		name: "access: nothing jumps while it loads",
		async run({ ui, page }) {
			await page.addInitScript(() => {
				window.__shifts = []
				// Fields have other values after another question, so they move.
				const part = (node) => (node?.nodeType === Node.TEXT_NODE ? node.parentElement : node),
					fields = (node) => part(node)?.closest?.("aside")
				const named = (node) =>
					part(node)
						? `${part(node).localName}.${part(node).className} ${part(node).textContent.slice(0, 30)}`
						: "what has gone"
				const box = ({ x, y, width, height }) => [x, y, width, height].map(Math.round).join(" ")
				new PerformanceObserver((list) => {
					for (const { value, sources } of list.getEntries())
						if (!sources.some(({ node }) => fields(node)))
							window.__shifts.push({
								value,
								sources: sources.map(
									({ node, previousRect, currentRect }) =>
										`${named(node)}: ${box(previousRect)} to ${box(currentRect)}`,
								),
							})
				}).observe({ type: "layout-shift", buffered: true })
			})
			const still = async (what) => {
				await ui.some(3)
				await sleep(100)
				const shifts = await page.evaluate(() => window.__shifts.splice(0)),
					sum = shifts.reduce((n, { value }) => n + value, 0)
				assert.ok(sum < 0.05, `${what}: the layout shifts by ${sum}: ${JSON.stringify(shifts, null, 1)}`)
			}
			await ui.range()
			await still("the first view")
			await ui.find("basket")
			await still("a search")
			await ui.press("Escape")
			await ui.asks(() => ui.press("z"))
			await still("another range")
			await ui.button("Refresh").click()
			await ui.ready()
			await still("Refresh")
		},
	},
	{
		name: "access: twelve columns, thirty filters and the menus of a small screen can be reached",
		context: { viewport: { width: 360, height: 740 } },
		async run({ ui, page }) {
			const column = (n) => (n ? `a_very_long_name_of_a_field.with.parts_${n}` : "status")
			await ui.range({
				col: Array.from({ length: 12 }, (_, n) => column(n)),
				f: Array.from({ length: 30 }, (_, n) => `-status=${600 + n}`),
			})
			await ui.some(3)
			await fits(ui, "twelve columns")
			for (const part of [
				ui.button("Remove column " + column(11)),
				ui.rows.first().getByRole("gridcell").last(),
				ui.button("Remove -status=629"),
			]) {
				await part.scrollIntoViewIfNeeded()
				const { x, width } = await part.boundingBox()
				assert.ok(width > 10 && x < 360, `it is at ${x}, ${width} px wide`)
			}
			for (const name of ["Download", "Columns"]) {
				await ui.button(name).click()
				const menu = name === "Columns" ? page.getByRole("group", { name }) : page.locator(":has(> a[download])")
				const { x, width } = await menu.boundingBox()
				assert.ok(x >= 0 && x + width <= 360, `${name} goes from ${x} to ${x + width}`)
				await ui.press("Escape")
			}
			await ui.press("j")
			const inView = await page.evaluate(() => {
				const { top, bottom } = document.activeElement.getBoundingClientRect()
				return top >= 0 && bottom <= innerHeight
			})
			assert.ok(inView && (await ui.focused()).id, "j goes to a row that can be seen")
		},
	},
	{
		name: "access: marks of the histogram have a contrast of 3:1",
		async run({ ui, page }) {
			await ui.range()
			for (const colorScheme of ["light", "dark"]) {
				await page.emulateMedia({ colorScheme })
				const low = await page.evaluate(() => {
					const light = (color) =>
						color
							.match(/[\d.]+/g)
							.slice(0, 3)
							.map((n) => n / 255)
							.map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
							.reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0)
					const svg = document.querySelector(".hist svg"),
						back = light(getComputedStyle(document.body).backgroundColor)
					return [
						"critical",
						"error",
						"warn",
						"info",
						"debug",
						"trace",
						"other",
						"none",
						"c0",
						"c1",
						"c2",
						"c3",
						"c4",
						"c5",
						"c6",
					].flatMap((name) => {
						const rect = svg.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "rect"))
						rect.setAttribute("class", name)
						const [a, b] = [back, light(getComputedStyle(rect).fill)].sort((a, b) => b - a),
							ratio = (a + 0.05) / (b + 0.05)
						rect.remove()
						return ratio < 3 ? [`${name}: ${ratio.toFixed(2)}`] : []
					})
				})
				assert.deepEqual(low, [], colorScheme)
			}
		},
	},
	{
		name: "dark: by the system, by the switch, remembered",
		context: { colorScheme: "dark" },
		async run(scene) {
			const { ui, page } = scene
			const dark = () =>
				page.evaluate(() => {
					const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number)
					return r + g + b < 200
				})
			await ui.range()
			assert.ok(await dark())
			await ui.button("Theme").click()
			await until("it is light", async () => !(await dark()))
			await page.reload()
			await ui.ready()
			assert.ok(!(await dark()), "it is remembered")
			await page.emulateMedia({ colorScheme: "light" })
			await ui.button("Theme").click()
			await until("it is dark", dark)
		},
	},
	{
		name: "keys: each of the table does what it says",
		limit: 60,
		async run({ ui }) {
			await ui.range()
			await ui.press("/")
			assert.match((await ui.focused())?.name ?? "", /^Search/)
			await ui.press("Escape")
			await ui.grid.focus()
			const selected = async () => (await ui.shown()).find((r) => r.selected)?.index ?? (await ui.focused())?.id
			await ui.press("j")
			const first = await selected()
			await ui.press("j")
			assert.notEqual(await selected(), first)
			await ui.press("k")
			assert.equal(await selected(), first)
			await ui.press("ArrowDown", "Enter")
			await ui.record.waitFor()
			await ui.press("c")
			await ui.context.waitFor()
			await ui.press("Escape", "Escape", "Escape")
			await until("all is closed", async () => (await ui.record.count()) + (await ui.context.count()) === 0)
			for (const [key, level] of [
				["e", /error|critical/i],
				["w", /warn/i],
			]) {
				await ui.press(key)
				await until(`${key} goes to the next one`, async () => {
					const id = ui.part("sel") ?? (await ui.focused())?.id
					return level.test((await ui.shown()).find((r) => r.id === id)?.text ?? "")
				})
			}
			const errors = async () => ui.part("sel") ?? (await ui.focused())?.id
			await ui.press("e")
			const here = await errors()
			await ui.press("e")
			const next = await errors()
			assert.notEqual(next, here)
			await ui.press("E")
			assert.equal(await errors(), here)
			await ui.press("w")
			const warn = await errors()
			await ui.press("w")
			await ui.press("W")
			assert.equal(await errors(), warn)
			await ui.press("Escape")
			const before = ui.part("from")
			await ui.asks(() => ui.press("["))
			assert.ok(ui.part("from") < before)
			await ui.asks(() => ui.press("]"))
			assert.equal(Date.parse(ui.part("from")), Date.parse(before))
			await ui.asks(() => ui.press("z"))
			assert.ok(ui.part("from") < before)
			for (const [key, name] of [
				["t", "Time"],
				["s", "Services"],
				["?", "Keys"],
			]) {
				await ui.press(key)
				await ui.dialog(name).waitFor()
				await ui.press("Escape")
				await until(
					"it is closed",
					async () => (await ui.dialog(name).count()) === 0 || !(await ui.dialog(name).isVisible()),
				)
			}
			const all = await ui.total()
			await ui.asks(() => ui.press("2")) // the second level: error
			assert.notEqual(await ui.total(), all)
			await ui.asks(() => ui.press("2"))
			assert.equal(await ui.total(), all)
			await ui.press("f")
			await until("live", async () => (await ui.live.getAttribute("aria-pressed")) === "true")
			await ui.press("f")
		},
	},
	{
		name: "keys: y copies the record, l the link",
		async run({ ui, page }) {
			await ui.range({ service: "deep" })
			await ui.choose()
			const press = (key) => ({ click: () => page.keyboard.press(key) })
			assert.match(await ui.copied(press("y")), /a record with parts/)
			assert.match(await ui.copied(press("l")), /^http.*#.*sel=/)
		},
	},
	{
		name: "keys: a key within a text is a letter",
		async run({ ui }) {
			await ui.range()
			await ui.search.focus()
			await ui.page.keyboard.type("fjketz?12")
			assert.equal(await ui.search.inputValue(), "fjketz?12")
			assert.equal(await ui.live.getAttribute("aria-pressed"), "false")
			assert.equal(await ui.dialog("Keys").count(), 0)
		},
	},
	{
		name: "keys: everything by keyboard alone",
		limit: 60,
		async run({ ui, page }) {
			// From the first page to a record of the service orders with a level, its context, and back.
			await ui.open()
			await ui.tabTo("Services", (f) => /^Services/.test(f?.name ?? ""))
			await ui.press("Enter")
			await ui.dialog("Services").waitFor()
			const focusIn = (name) => page.evaluate((name) => !!document.activeElement.closest(`dialog, [role=dialog]`), name)
			await until("the focus is in the dialog", () => focusIn("Services"))
			await page.keyboard.type("orders")
			await ui.tabTo("the box of orders", () =>
				page.evaluate(
					() =>
						document.activeElement.type === "checkbox" &&
						/orders/.test(
							document.activeElement.getAttribute("aria-label") ??
								document.activeElement.labels?.[0]?.textContent ??
								"",
						),
				),
			)
			await ui.asks(() => ui.press("Space"))
			await ui.press("Escape")
			await until("the focus goes back", async () => /^Services/.test((await ui.focused())?.name ?? ""))
			assert.equal(ui.part("service"), "orders")
			await ui.press("/")
			await page.keyboard.type("level>=warn")
			await ui.asks(() => ui.press("Enter"))
			await ui.tabTo("the list", (f) => f?.role === "grid" || f?.role === "row" || f?.role === "gridcell", 200)
			await ui.press("ArrowDown", "ArrowDown", "Enter")
			await ui.record.waitFor()
			await ui.tabTo("a filter of the record", (f) => /^Filter for/.test(f?.name ?? ""), 60)
			await ui.asks(() => ui.press("Enter"))
			assert.ok((await ui.filters.getByRole("listitem").count()) >= 1)
			await ui.tabTo("Context", (f) => /^Context/.test(f?.name ?? ""), 120)
			await ui.press("Enter")
			await ui.context.waitFor()
			await ui.press("Escape", "Escape", "Escape")
			await ui.tabTo("a chip", (f) => /^Remove /.test(f?.name ?? ""), 200)
			await ui.asks(() => ui.press("Enter"))
			await ui.tabTo(
				"the histogram's slider",
				(f) =>
					page.evaluate(
						() => document.activeElement.getAttribute("role") === "slider" || document.activeElement.type === "range",
					),
				200,
			)
			await ui.tabTo(
				"Patterns",
				async (f) => {
					if (f?.role === "tab" && /Records/.test(f.name)) await ui.press("ArrowRight")
					return f?.role === "tab" && /Patterns/.test((await ui.focused()).name)
				},
				200,
			)
			await ui.press("Enter")
			await until("patterns", () => ui.part("tab") === "patterns")
			// Wherever the focus was, it could be seen.
			const seen = await page.evaluate(() => {
				const s = getComputedStyle(document.activeElement)
				return (s.outlineStyle !== "none" && parseFloat(s.outlineWidth) > 0) || s.boxShadow !== "none"
			})
			assert.ok(seen, "the focus cannot be seen")
		},
	},
]
