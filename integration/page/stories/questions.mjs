// Services, time and the search line: each change asks anew, and stands in the fragment.
import assert from "node:assert/strict"
import { sleep, status, until } from "../scene.mjs"

const count = async (scene, more) => {
	const { from, to } = scene.facts
	return (await scene.api("count?" + new URLSearchParams({ service: "*", from, to, ...more }))).records
}

export default [
	{
		name: "services: found as one types, chosen, with their numbers",
		async run({ ui, facts }) {
			await ui.range()
			await ui.button(/^Services/).click()
			const dialog = ui.dialog("Services")
			await dialog.getByRole("checkbox", { name: "web" }).waitFor()
			assert.match(
				await dialog.innerText(),
				new RegExp(facts.services.web.toLocaleString("en-US")),
				"the number of records of web",
			)
			const names = () =>
				dialog
					.getByRole("checkbox")
					.evaluateAll((all) => all.map((c) => c.getAttribute("aria-label") ?? c.labels?.[0]?.textContent.trim() ?? ""))
			const find = dialog
				.getByRole("textbox", { name: "Find a service" })
				.or(dialog.getByRole("searchbox", { name: "Find a service" }))
			await find.fill("ord")
			await until("only orders is left", async () => {
				const left = (await names()).join()
				return /orders/.test(left) && !/web|cron/.test(left)
			})
			await find.fill("*rde*")
			await ui.asks(() => find.press("Enter"))
			assert.equal(ui.part("service"), "*rde*", "a glob is chosen as it is")
			await ui.totals(facts.services.orders)
			await ui.asks(() => dialog.getByRole("checkbox", { name: "*rde*" }).click())
			await find.fill("")
			await ui.asks(() => dialog.getByRole("checkbox", { name: "orders" }).check())
			await ui.press("Escape")
			await ui.totals(facts.services.orders)
			assert.equal(ui.part("service"), "orders")
			for (const { text } of await ui.some()) assert.match(text, /orders/)
		},
	},
	{
		name: "services: those of the system are behind a switch",
		async run({ ui }) {
			await ui.open("since=1d")
			await ui.button(/^Services/).click()
			const dialog = ui.dialog("Services")
			await dialog.getByRole("checkbox", { name: "web" }).waitFor()
			assert.equal(await dialog.getByRole("checkbox", { name: "_rejected" }).count(), 0)
			await dialog.getByRole("checkbox", { name: "System services" }).check()
			await dialog.getByRole("checkbox", { name: "_rejected" }).waitFor()
		},
	},
	{
		name: "time: quick ranges, and the browser's back",
		async run({ ui }) {
			await ui.open()
			const hour = await ui.total()
			await ui.button(/^Time/).click()
			await ui.asks(() => ui.dialog("Time").getByRole("button", { name: "Last 15 minutes" }).click())
			assert.equal(ui.part("since"), "15m")
			assert.ok((await ui.total()) < hour)
			assert.match(await ui.button(/^Time/).innerText(), /Last 15 minutes/)
			await ui.page.goBack()
			await until("back", () => ui.fragment() === "")
			await ui.ready()
			await ui.totals(hour)
		},
	},
	{
		name: "time: an absolute range, local or UTC, which is shown",
		context: { timezoneId: "Asia/Kolkata" },
		async run({ ui, facts }) {
			await ui.open({ from: facts.from, to: facts.to })
			await ui.button(/^Time/).click()
			const dialog = ui.dialog("Time")
			const [local, utc] = [dialog.getByRole("radio", { name: "Local" }), dialog.getByRole("radio", { name: "UTC" })]
			assert.ok(await local.isChecked(), "local is chosen at first")
			const shown = await dialog.getByRole("textbox", { name: "From" }).inputValue()
			const hour = (shift) => new Date(Date.parse(facts.from) + shift).toISOString().slice(11, 16)
			assert.ok(shown.includes(hour(5.5 * 3_600_000)), `${shown} is not in the zone of the browser`)
			await utc.check()
			await until("the field is in UTC", async () =>
				(await dialog.getByRole("textbox", { name: "From" }).inputValue()).includes(hour(0)),
			)
			const middle = new Date((Date.parse(facts.from) + Date.parse(facts.to)) / 2)
			await dialog.getByRole("textbox", { name: "To" }).fill(middle.toISOString().slice(0, 19).replace("T", " "))
			await ui.asks(() => dialog.getByRole("button", { name: "Apply" }).click())
			assert.equal(Date.parse(ui.part("to")), Math.floor(middle / 1000) * 1000)
			assert.match(await ui.button(/^Time/).innerText(), /UTC/)
			await ui.totals(50_000)
		},
	},
	{
		name: "time: by keys alone, of yesterday",
		async run({ ui }) {
			await ui.open({ utc: "1" })
			await ui.press("t")
			await until(
				"the present choice has the focus",
				async () => (await ui.page.evaluate(() => document.activeElement?.textContent)) === "Last hour",
			)
			const dialog = ui.dialog("Time")
			await dialog.getByRole("textbox", { name: "From" }).fill("yesterday 14:00")
			await dialog.getByRole("textbox", { name: "To" }).fill("yesterday 15:00")
			await ui.asks(() => ui.press("Enter"))
			assert.match(ui.part("from"), /T14:00:00\.0+Z$/)
			assert.equal(Date.parse(ui.part("to")) - Date.parse(ui.part("from")), 3_600_000)
			for (const [name, hours] of [
				["Yesterday", 24],
				["Last 30 minutes", 0.5],
			]) {
				await ui.press("t")
				await ui.asks(() => dialog.getByRole("button", { name, exact: true }).click())
				const length = ui.part("since") ? 0.5 : (Date.parse(ui.part("to")) - Date.parse(ui.part("from"))) / 3_600_000
				assert.equal(length, hours, name)
			}
			await ui.press("t")
			await dialog.getByRole("textbox", { name: "From" }).fill("10 minutes ago")
			await dialog.getByRole("textbox", { name: "To" }).fill("")
			await ui.asks(() => ui.press("Enter"))
			assert.ok(Math.abs(Date.now() - Date.parse(ui.part("from")) - 600_000) < 60_000)
		},
	},
	{
		name: "time: a wrong text is an error at its field, in words",
		async run({ ui }) {
			await ui.range()
			const before = ui.fragment()
			await ui.button(/^Time/).click()
			const dialog = ui.dialog("Time")
			await dialog.getByRole("textbox", { name: "From" }).fill("yesterdayish")
			await dialog.getByRole("button", { name: "Apply" }).click()
			await dialog.getByRole("alert").first().waitFor()
			assert.equal(ui.fragment(), before)
		},
	},
	{
		name: "time: earlier, later and zoom out",
		async run({ ui, facts }) {
			const from = Date.parse(facts.from) + 20 * 60_000,
				to = from + 10 * 60_000
			await ui.open({ from: new Date(from).toISOString(), to: new Date(to).toISOString() })
			const there = () => [Date.parse(ui.part("from")), Date.parse(ui.part("to"))]
			await ui.asks(() => ui.button("Earlier").click())
			assert.ok(there()[0] < from && there()[1] < to, "earlier")
			assert.equal(there()[1] - there()[0], to - from, "the range keeps its length")
			await ui.asks(() => ui.button("Later").click())
			assert.deepEqual(there(), [from, to])
			await ui.asks(() => ui.button("Zoom out").click())
			assert.ok(there()[0] < from && there()[1] > to)
		},
	},
	{
		name: "search: the same numbers as the API has",
		async run(scene) {
			const { ui } = scene
			await ui.range()
			for (const [text, params] of [
				["basket", { text: "basket" }],
				['"answered in"', { text: "answered in" }],
				["/order \\d+1 of/", { expr: "order \\d+1 of" }],
				["-basket", { without: "basket" }],
				["basket -answered", { text: "basket", without: "answered" }],
				["status=502", { where: "status == 502" }],
				["took_ms>800", { where: "took_ms > 800" }],
				["level>=warn", { level: "warn+" }],
				["level=error", { level: "error" }],
				["service=db", { service: "db" }],
				["path=/login status!=200", { where: 'path == "/login" and status != 200' }],
				["status >= 500 OR took_ms > 800", { where: "status >= 500 or took_ms > 800" }],
				[
					"level:error NOT (path:/login OR basket)",
					{ level: "error", where: 'not (path == "/login" or has("basket"))' },
				],
				["status in (502, 503) AND GET", { text: "GET", where: "status in [502, 503]" }],
				["*ask*", { expr: "ask" }],
			]) {
				const want = await count(scene, params)
				assert.ok(want > 0, `the API finds nothing for ${JSON.stringify(params)}`)
				await ui.find(text)
				assert.equal(await ui.total(), want, text)
				assert.equal(await ui.mistake.count(), 0)
				await ui.some()
			}
		},
	},
	{
		name: "search: a mistake is named at its column, and the list stays",
		async run({ ui }) {
			await ui.range()
			const rows = await ui.ids()
			for (const text of ['basket "no end', "basket /(/", "status>", "took_ms>>3"]) {
				await ui.type(text)
				await ui.mistake.waitFor()
				assert.match(await ui.mistake.innerText(), /\d/, `the mistake of ${text} names no column`)
				assert.deepEqual(await ui.ids(), rows, "the rows stay")
				await ui.type("")
				await until("the mistake is gone", async () => (await ui.mistake.count()) === 0)
				await ui.ready()
			}
			await ui.range({ q: 'basket "no end' }, { wait: false })
			await until("the link is not asked, and not empty", async () => {
				const text = await ui.page.locator("main").innerText()
				return /column 8: this quote has no end/.test(text) && /not asked/i.test(text) && !/no record/i.test(text)
			})
		},
		allow: [status(400, "(records|histogram|facets)")],
	},
	{
		name: "search: LogQL in place of it",
		async run(scene) {
			const { ui } = scene
			await ui.range({ logql: '{service_name="orders"} |= "paid"' })
			await ui.totals(await count(scene, { service: "orders", text: "paid" }))
			for (const { text } of await ui.some()) assert.match(text, /orders/)
		},
	},
	{
		name: "search: suggestions of fields, levels and services",
		async run({ ui }) {
			await ui.range()
			const options = ui.page.getByRole("listbox").getByRole("option")
			await ui.search.focus()
			await ui.search.pressSequentially("stat")
			await until("the field status is suggested", async () =>
				(await options.allInnerTexts()).some((t) => t.startsWith("status")),
			)
			await ui.search.fill("")
			await ui.search.pressSequentially("level>=wa")
			await until("a level is suggested", async () => (await options.allInnerTexts()).some((t) => /warn/.test(t)))
			await ui.press("ArrowDown")
			await ui.asks(async () => {
				await ui.press("Enter")
				await ui.press("Enter")
			})
			assert.match(ui.part("q"), /level>=warn/)
			await ui.search.fill("")
			await ui.search.pressSequentially("service=or")
			await until("a service is suggested", async () => (await options.allInnerTexts()).some((t) => /orders/.test(t)))
			await ui.search.fill("")
			await ui.search.pressSequentially("status=")
			await until("values are suggested", async () => (await options.allInnerTexts()).some((t) => /502/.test(t)))
		},
	},
	{
		name: "search: the history of this browser has questions, and no results",
		async run({ ui }) {
			await ui.range()
			await ui.find("gamma-marker -nothing")
			await ui.find("basket status=502")
			await ui.page.reload()
			await ui.ready()
			await ui.search.fill("")
			await ui.search.focus()
			await ui.press("ArrowDown")
			await until("an earlier question is offered", async () =>
				(await ui.page.getByRole("option").allInnerTexts()).some((t) => t.includes("gamma-marker")),
			)
			const kept = await ui.page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }))
			assert.match(kept, /gamma-marker/)
			assert.doesNotMatch(kept, /answered in|\/basket\/\d/, "a result is kept")
			await until("the history can be cleared", async () => {
				await ui.page
					.getByRole("option", { name: /clear/i })
					.or(ui.page.getByRole("button", { name: /clear.*history/i }))
					.first()
					.click({ timeout: 1000 })
			})
			await until(
				"it is cleared",
				async () =>
					assert.doesNotMatch(await ui.page.evaluate(() => JSON.stringify({ ...localStorage })), /gamma-marker/),
				3000,
			)
		},
	},
	{
		name: "search: a new question gives up the one before",
		async run({ ui, page }) {
			await ui.range()
			const gone = []
			page.on("requestfailed", (r) => gone.push(r.url()))
			let held
			const free = new Promise((go) => (held = go))
			await page.route(/records.*q=slow|histogram.*q=slow/, async (r) => {
				await free
				await r.continue().catch(() => {})
			})
			await ui.type("slow")
			await until("it is asked", () => ui.part("q") === "slow")
			await sleep(100)
			await ui.type("basket")
			await until(
				"the first question is given up",
				() => gone.some((u) => /records\?/.test(u)) && gone.some((u) => /histogram\?/.test(u)),
			)
			held()
			await ui.ready()
			for (const { text } of await ui.some()) assert.match(text, /basket/)
		},
	},
	{
		name: "search: an empty result says why, and where the nearest records are",
		async run({ ui, facts }) {
			await ui.open({ from: facts.from, to: facts.to, q: "no-such-text-anywhere" })
			const panel = ui.page.getByRole("tabpanel").or(ui.grid)
			await until("it says that nothing was found", async () =>
				/no record|nothing/i.test(await panel.first().innerText()),
			)
			await until(
				"it says that no range has it, and offers none",
				async () =>
					/matches the search\.\s[^]*none before or after/.test(await panel.first().innerText()) &&
					!(await ui.button(/^Widen/).count()),
			)
			for (const [q, says] of [
				["stauts=502", /is it status\?/],
				["CRITICAL", /write level=critical for the level/],
			]) {
				await ui.open({ from: facts.from, to: facts.to, q })
				await until(`it says what ${q} may have meant`, async () => says.test(await panel.first().innerText()))
			}
			const day = new Date(Date.parse(facts.from) - 26 * 3_600_000).toISOString()
			await ui.open({ from: day, to: new Date(Date.parse(day) + 60_000).toISOString() })
			await until("it says so of a range, and where the next record is", async () =>
				/no record[^]*The next one after: /i.test(await panel.first().innerText()),
			)
		},
	},
]
