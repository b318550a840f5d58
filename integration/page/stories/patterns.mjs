// The tab Patterns, and what is new against another window.
import assert from "node:assert/strict"
import { until } from "../scene.mjs"

const open = async (ui, more = {}) => {
	await ui.range(more)
	await ui.page.getByRole("tab", { name: "Patterns" }).click()
	await until("the patterns are there", async () =>
		/refused the connection|is paid/.test(await ui.page.getByRole("tabpanel").innerText()),
	)
}

const panel = (ui) => ui.page.getByRole("tabpanel")

export default [
	{
		name: "patterns: templates with count, share, first and last; + and − change the question",
		async run(scene) {
			const { ui, facts } = scene
			await open(ui)
			assert.equal(ui.part("tab"), "patterns")
			const text = await panel(ui).innerText()
			assert.match(text, /order\s+<\S*>\s+of customer\s+<\S*>\s+is paid/, text.slice(0, 500))
			assert.match(text, /%/)
			const row = panel(ui)
				.getByRole("row")
				.or(panel(ui).getByRole("listitem"))
				.filter({ hasText: "of customer" })
				.first()
			const buttons = {
				for: row.getByRole("button", { name: /^Filter for|^\+/ }).first(),
				out: row.getByRole("button", { name: /^Filter out|^−|^-/ }).first(),
			}
			await ui.asks(() => buttons.for.click())
			await ui.totals(facts.services.orders)
			await ui.asks(() => ui.button("Clear filters").click())
			await open(ui)
			await ui.asks(() => buttons.out.click())
			await ui.totals(facts.records - facts.services.orders)
		},
	},
	{
		name: "patterns: new against the window before",
		async run(scene) {
			const { ui, facts } = scene
			const middle = new Date(Date.parse(facts.to) - 10 * 60_000).toISOString()
			await ui.open({ from: middle, to: facts.to, tab: "patterns", against: "before" })
			const mark = panel(ui)
				.getByRole("row")
				.or(panel(ui).getByRole("listitem"))
				.filter({ hasText: "refused the connection" })
				.first()
			await mark.waitFor()
			assert.match(await mark.innerText(), /new/i)
			const other = panel(ui)
				.getByRole("row")
				.or(panel(ui).getByRole("listitem"))
				.filter({ hasText: "of customer" })
				.first()
			assert.doesNotMatch((await other.innerText()).split("\n")[0], /\bnew\b/i)
			for (const against of ["yesterday", `${facts.from}/${middle}`]) {
				await ui.open({ from: middle, to: facts.to, tab: "patterns", against })
				await mark.waitFor()
			}
		},
	},
	{
		name: "patterns: keys of the list do nothing there",
		async run({ ui }) {
			await ui.range()
			await ui.choose()
			await ui.page.getByRole("tab", { name: "Patterns" }).click()
			await ui.page
				.getByRole("tabpanel")
				.getByText(/^Patterns of/)
				.waitFor()
			const before = ui.fragment()
			await ui.press("j", "k", "e", "E", "w", "y")
			assert.equal(ui.fragment(), before)
		},
	},
	{
		name: "patterns: Live goes to the records",
		async run({ ui }) {
			await ui.open({ since: "15m", tab: "patterns" })
			await ui.live.click()
			await until(
				"the list follows",
				async () =>
					(await ui.page.getByRole("tab", { name: "Records" }).getAttribute("aria-selected")) === "true" &&
					(await ui.live.getAttribute("aria-pressed")) === "true",
			)
			await ui.live.click()
		},
	},
	{
		name: "patterns: the histogram's fields are the same on this tab",
		async run({ ui }) {
			await open(ui, { split: "status" })
			assert.equal(ui.part("split"), "status")
			await ui.histogram.getByRole("button", { name: /^502\b/ }).waitFor()
			await ui.page.getByRole("tab", { name: "Records" }).click()
			await ui.some(5)
			await ui.histogram.getByRole("button", { name: /^502\b/ }).waitFor()
		},
	},
]
