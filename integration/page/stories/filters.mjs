// Chips and facets: a click on a value is part of the question.
import assert from "node:assert/strict"
import { until } from "../scene.mjs"

export default [
	{
		name: "filters: + and − on a value, chips off and on, clear",
		async run({ ui, facts }) {
			await ui.range()
			const all = facts.records
			await ui.asks(() => ui.facets.getByRole("button", { name: "Filter out level=debug", exact: true }).click())
			await ui.totals(all - facts.levels.debug)
			for (const { text } of await ui.some(5)) assert.doesNotMatch(text, /\bdebug\b/i)
			await ui.asks(() => ui.facets.getByRole("button", { name: "Filter for level=error", exact: true }).click())
			await ui.totals(facts.levels.error)
			assert.ok((await ui.filters.getByRole("listitem").count()) >= 2)
			const chip = ui.filters.locator("button[aria-pressed=true]").last()
			await ui.asks(() => chip.click())
			await ui.totals(all - facts.levels.debug)
			const off = ui.filters.locator("button[aria-pressed=false]")
			assert.equal(await off.count(), 1, "the chip is kept")
			await ui.page.reload()
			await ui.ready()
			await ui.totals(all - facts.levels.debug)
			await ui.asks(() => off.click())
			await ui.totals(facts.levels.error)
			await ui.asks(() =>
				ui.filters
					.getByRole("button", { name: /^Remove / })
					.first()
					.click(),
			)
			await ui.totals(facts.levels.error)
			await ui.asks(() => ui.button("Clear filters").click())
			await ui.totals(all)
		},
	},
	{
		name: "filters: − on a value leaves none of it",
		async run({ ui, facts, page }) {
			await ui.range()
			await ui.asks(async () => {
				const button = ui.facets.getByRole("button", { name: "Filter out status=404", exact: true })
				if (!(await button.isVisible().catch(() => false))) await ui.facets.getByText("status").first().click()
				await button.click()
			})
			await ui.totals(facts.records - facts.status["404"])
			const link = await page.evaluate(() => location.hash)
			assert.ok(link.includes("404"))
			for (const { text } of await ui.some(20)) assert.doesNotMatch(text, /status=404/)
		},
	},
	{
		name: "filters: values with quotes, blanks and signs are filtered as they are",
		async run({ ui }) {
			await ui.range({ service: "deep" })
			await ui.choose()
			await ui.asks(() =>
				ui.record
					.getByRole("button", { name: /^Filter for with/ })
					.first()
					.click(),
			)
			await ui.totals(1)
			await ui.asks(() => ui.button("Clear filters").click())
			await ui.asks(() =>
				ui.record
					.getByRole("button", { name: /^Filter for http\.request\.path=\/basket/ })
					.first()
					.click(),
			)
			await ui.totals(1)
			await ui.asks(() => ui.button("Clear filters").click())
			await ui.asks(() =>
				ui.record
					.getByRole("button", { name: /^Filter for big=12345678901234567890/ })
					.first()
					.click(),
			)
			await ui.totals(1)
		},
	},
	{
		name: "facets: basis, counts, find, chosen ones on top",
		async run({ ui, facts }) {
			await ui.range()
			await until("the basis is said", async () => /newest 10,000/.test(await ui.facets.innerText()))
			await until("level is exact", async () =>
				(await ui.facets.innerText()).includes(facts.levels.error.toLocaleString("en-US")),
			)
			const find = ui.facets
				.getByRole("textbox", { name: "Find a field" })
				.or(ui.facets.getByRole("searchbox", { name: "Find a field" }))
			await find.fill("took")
			await until("only took_ms is left", async () => {
				const text = await ui.facets.innerText()
				return /took_ms/.test(text) && !/\btrace\b/.test(text)
			})
			await find.fill("")
			const button = ui.facets.getByRole("button", { name: "Filter for path=/login", exact: true })
			if (!(await button.isVisible().catch(() => false)))
				await ui.facets.getByText("path", { exact: true }).first().click()
			await ui.asks(() => button.click())
			const text = await ui.facets.innerText()
			assert.ok(text.indexOf("path") < text.indexOf("status"), "the chosen field comes first")
			const titles = await ui.facets.evaluate((f) => [...f.querySelectorAll("[title]")].map((e) => e.title).join(" "))
			assert.match(text + titles, /\d %/, "shares")
		},
	},
]
