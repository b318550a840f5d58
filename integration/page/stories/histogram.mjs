// The histogram: what it counts, what it is divided by, and how one zooms in it.
import assert from "node:assert/strict"
import { sleep, until } from "../scene.mjs"

const count = async (scene, more) => {
	const { from, to } = scene.facts
	return (await scene.api("count?" + new URLSearchParams({ service: "*", from, to, ...more }))).records
}

/** Drags over the histogram, from one part of its width to another. */
async function drag(ui, from, to, keys = []) {
	const box = await ui.histogram.getByRole("img").boundingBox()
	const y = box.y + box.height / 2
	for (const k of keys) await ui.page.keyboard.down(k)
	await ui.page.mouse.move(box.x + box.width * from, y)
	await ui.page.mouse.down()
	await ui.page.mouse.move(box.x + (box.width * (from + to)) / 2, y, { steps: 3 })
	await ui.page.mouse.move(box.x + box.width * to, y, { steps: 3 })
	await ui.page.mouse.up()
	for (const k of keys) await ui.page.keyboard.up(k)
}

export default [
	{
		name: "histogram: a drag zooms, and the browser's back goes back",
		async run(scene) {
			const { ui, facts } = scene
			await ui.range()
			const all = await ui.total(),
				rows = await ui.ids()
			await ui.asks(() => drag(ui, 0.25, 0.5))
			const [from, to] = [ui.part("from"), ui.part("to")]
			const length = Date.parse(facts.to) - Date.parse(facts.from),
				part = (Date.parse(to) - Date.parse(from)) / length
			assert.ok(part > 0.2 && part < 0.32, `a quarter was dragged over, and it is ${part}`)
			const want = (await scene.api("count?" + new URLSearchParams({ service: "*", from, to }))).records
			await ui.totals(want)
			assert.ok(want < all && want > 0)
			assert.notDeepEqual(await ui.ids(), rows)
			await ui.page.goBack()
			await ui.totals(all)
			await until("the same rows", async () => assert.deepEqual((await ui.ids()).slice(0, 5), rows.slice(0, 5)))
		},
	},
	{
		name: "histogram: a click on a bar zooms into its span",
		async run(scene) {
			const { ui, facts } = scene
			await ui.range()
			const all = await ui.total(),
				box = await ui.histogram.getByRole("img").boundingBox()
			const bar = await ui.histogram.locator("svg rect").last().boundingBox()
			await ui.page.mouse.move(bar.x + bar.width / 2, box.y + box.height / 2)
			await ui.asks(() => ui.page.mouse.click(bar.x + bar.width / 2, box.y + box.height / 2))
			const from = ui.part("from"),
				to = ui.part("to"),
				part = (Date.parse(to) - Date.parse(from)) / (Date.parse(facts.to) - Date.parse(facts.from))
			assert.ok(part > 0 && part < 0.1, `${from} to ${to}`)
			const want = await count(scene, { from, to })
			assert.ok(want > 0 && want < all)
			await ui.totals(want)
			await ui.page.goBack()
			await ui.totals(all)
		},
	},
	{
		name: "histogram: a click in the legend leaves one level alone, and with Shift all others",
		async run(scene) {
			const { ui, facts } = scene
			await ui.range()
			const all = await ui.total(),
				button = (name) => ui.button(new RegExp(`^${name}\\b`), ui.histogram)
			await ui.asks(() => button("error").click())
			await ui.totals(facts.levels.error)
			assert.equal(await button("error").getAttribute("aria-pressed"), "true")
			await ui.asks(() => button("warn").click())
			await ui.totals(facts.levels.warn)
			await ui.asks(() => button("warn").click({ modifiers: ["Shift"] }))
			await ui.totals(all - facts.levels.warn)
			assert.equal(await button("warn").getAttribute("aria-pressed"), "false")
			await ui.asks(() => button("warn").click({ modifiers: ["Shift"] }))
			await ui.totals(all)
		},
	},
	{
		name: "histogram: until an answer is there, the legend is of the one before, and filters by that",
		async run({ ui, facts, page }) {
			await ui.range()
			let free
			const held = new Promise((go) => (free = go))
			await page.route(/histogram\?.*split=status/, async (r) => {
				await held
				await r.continue().catch(() => {}) // it was given up
			})
			await page.getByRole("combobox", { name: "Histogram by" }).selectOption("status")
			await ui.button(/^error\b/, ui.histogram).click()
			await until("there is a filter", () => ui.part("f"))
			assert.equal(ui.part("f"), "level=error")
			free()
			await ui.ready()
			await ui.totals(facts.levels.error)
		},
	},
	{
		name: "histogram: a double click goes back",
		async run({ ui, facts }) {
			await ui.range()
			await ui.asks(() => drag(ui, 0.25, 0.5))
			await ui.asks(() => ui.histogram.getByRole("img").dblclick())
			await until("the range before", async () => assert.equal(await ui.total(), facts.records), 3000)
		},
	},
	{
		name: "histogram: zoomed by the keyboard alone",
		async run(scene) {
			const { ui } = scene
			await ui.range()
			const all = await ui.total()
			const [from, to] = ["From", "To"].map((name) => ui.histogram.getByRole("slider", { name, exact: true }))
			await from.focus()
			await ui.press(...Array(12).fill("ArrowRight"))
			await to.focus()
			await ui.press(...Array(12).fill("ArrowLeft"))
			const button = ui.button("Zoom to selection")
			await button.focus()
			await ui.asks(() => ui.press("Enter"))
			const want = (
				await scene.api("count?" + new URLSearchParams({ service: "*", from: ui.part("from"), to: ui.part("to") }))
			).records
			assert.ok(want < all && want > 0)
			await ui.totals(want)
		},
	},
	{
		name: "histogram: a level of the legend changes the question, and not only the rows that are here",
		async run(scene) {
			const { ui, facts } = scene
			await ui.range()
			const all = await ui.total(),
				legend = ui.button(/^critical\b/, ui.histogram)
			const pressed = await legend.getAttribute("aria-pressed")
			await ui.asks(() => legend.click())
			assert.notEqual(await legend.getAttribute("aria-pressed"), pressed)
			const total = await ui.total()
			assert.ok(
				[facts.levels.critical, all - facts.levels.critical].includes(total),
				`neither only critical nor all others: ${total}`,
			)
			const only = total === facts.levels.critical
			for (const { text } of await ui.some(5)) assert.equal(/critical/i.test(text), only, text.slice(0, 100))
			await ui.asks(() => legend.click())
			await ui.totals(all)
		},
	},
	{
		name: "histogram: by service, by any field and by two",
		async run(scene) {
			const { ui, facts } = scene
			await ui.range()
			const by = ui.page.getByRole("combobox", { name: "Histogram by" }),
				and = ui.page.getByRole("combobox", { name: "and by" })
			const set = async (box, value) => {
				if ((await box.evaluate((e) => e.tagName)) === "SELECT") await box.selectOption(value)
				else {
					await box.fill(value)
					await box.press("Enter")
				}
			}
			await ui.asks(() => set(by, "service"))
			for (const name of ["web", "orders"])
				await ui.histogram.getByRole("button", { name: new RegExp(`^${name}\\b`) }).waitFor()
			await ui.asks(() => set(by, "status"))
			assert.equal(ui.part("split"), "status")
			for (const status of Object.keys(facts.status))
				await ui.histogram.getByRole("button", { name: new RegExp(`^${status}\\b`) }).waitFor()
			await ui.histogram.getByRole("button", { name: /none/ }).waitFor() // of records without it
			await ui.asks(() => set(and, "level"))
			assert.equal(ui.part("split"), "status,level")
			await ui.histogram.getByRole("button", { name: /^502 \/ error/ }).waitFor()
			await ui.totals(facts.records)
		},
	},
	{
		name: "histogram: a value of a field in the legend filters by it",
		async run(scene) {
			const { ui, facts } = scene
			await ui.range({ split: "status" })
			const legend = ui.histogram.getByRole("button", { name: /^502\b/ })
			await legend.waitFor()
			await ui.asks(() => legend.click())
			const n = facts.status["502"]
			await until("only it, or all others", async () => [n, facts.records - n].includes(await ui.total()))
			await ui.some(5)
		},
	},
	{
		name: "histogram: a table of its numbers",
		async run({ ui, facts }) {
			await ui.range()
			const table = ui.page.getByRole("table", { name: "Numbers of the histogram" })
			if (!(await table.isVisible().catch(() => false))) await ui.histogram.locator("summary").first().click()
			await table.waitFor()
			const sum = await table.evaluate((t) =>
				[...t.rows].slice(1).map((r) => [...r.cells].slice(1).map((c) => Number(c.textContent.replace(/,/g, "")) || 0)),
			)
			const total = sum.flat().reduce((a, b) => a + b, 0),
				all = facts.records
			assert.equal(total, 2 * all, "each record is in its level, and in all records")
			assert.match(await ui.histogram.getByRole("img").getAttribute("aria-label"), /record/)
		},
	},
	{
		name: "histogram: buckets are round spans",
		async run({ ui, page }) {
			const said = []
			page.on("response", async (r) => {
				if (/histogram\?/.test(r.url())) said.push((await r.json().catch(() => ({}))).by)
			})
			const round = /^(1|2|5|10|15|30)(s|m)$|^(1|3|6|12)h$|^[1-9]\d*d$|^24h$|^\d+(ms|us|ns)$/
			await ui.range()
			for (const since of ["15m", "3h", "1d", "7d"]) await ui.open({ since })
			await until("five answers", () => said.length >= 5)
			for (const by of said) assert.match(by.replace(/(\d[hm])0s$/, "$1").replace(/(\dh)0m$/, "$1"), round)
		},
	},
	{
		name: "histogram: a text filter is counted exactly",
		async run(scene) {
			const { ui } = scene
			await ui.range({ q: "customer" })
			await ui.totals(await count(scene, { text: "customer" }))
		},
	},
	{
		name: "histogram: shift and drag make the second window of a comparison",
		async run({ ui }) {
			await ui.range()
			await ui.asks(() => drag(ui, 0.1, 0.3, ["Shift"]))
			assert.match(ui.part("against") ?? "", /\d\d\d\d-.*\/.*\d\d\d\d-/)
		},
	},
]
