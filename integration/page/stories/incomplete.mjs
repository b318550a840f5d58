// What is missing is said, in words that an operator can act on, and the words do not go away.
import assert from "node:assert/strict"
import { broken, sleep, until } from "../scene.mjs"

/** An answer without what says that it is whole, for each route that the page asks. */
const cuts = {
	records: (text) =>
		text
			.split("\n")
			.filter((l) => !l.startsWith('{"end"'))
			.join("\n"),
	histogram: (text) => text.slice(0, text.length / 2),
	facets: (text) => text.slice(0, text.length / 2),
	services: (text) => text.slice(0, text.length / 2),
	patterns: (text) => text.slice(0, text.length / 2),
	context: (text) =>
		text
			.split("\n")
			.filter((l) => !l.startsWith('{"end"'))
			.join("\n"),
}

/** Has the page ask each route. */
async function askFor(ui, route) {
	if (route === "services") await ui.button(/^Services/).click()
	if (route === "patterns") await ui.page.getByRole("tab", { name: "Patterns" }).click()
	if (route === "context") {
		await ui.choose()
		await ui
			.button("Context", ui.record)
			.or(ui.record.getByRole("tab", { name: "Context" }))
			.first()
			.click()
	}
}

const loud = async (ui) => {
	const alerts = await ui.page.locator("[role=alert]").allInnerTexts()
	return alerts.some((t) => /cut off|incomplete|broke|missing|version/i.test(t))
}

const bar = (ui, what, timeout = 20000) =>
	until(
		what,
		async () => {
			await ui.missing.first().waitFor({ timeout: 1000 })
			return ui.missing.first().innerText()
		},
		timeout,
	)

export default [
	...Object.entries(cuts).map(([route, cut]) => ({
		name: `incomplete: ${route} without its end fails loudly`,
		async run({ ui }) {
			if (["records", "histogram", "facets"].includes(route)) {
				await ui.answer(route, (r, answer, body) => r.fulfill({ response: answer, body: cut(body) }))
				await ui.range({}, { wait: false })
			} else {
				await ui.range()
				await ui.answer(route, (r, answer, body) => r.fulfill({ response: answer, body: cut(body) }))
				await askFor(ui, route)
			}
			await until("it is said loudly", () => loud(ui))
			if (["records", "histogram", "facets"].includes(route)) {
				await until("the questions have failed", async () => (await ui.state()) === "failed")
				await ui.page.unrouteAll()
				await ui.button("Try again").first().click()
				await ui.ready()
				await until("all is well again", async () => !(await loud(ui)))
			}
		},
	})),
	{
		name: "incomplete: records that break off in the middle",
		async run({ ui }) {
			await ui.range()
			await ui.answer("records", (r, answer, body) =>
				r.fulfill({ response: answer, body: body.slice(0, body.length / 2) }),
			)
			await ui.type("basket")
			await until("it is said loudly", () => loud(ui))
		},
	},
	{
		name: "incomplete: a connection that breaks",
		allow: [broken],
		async run({ ui }) {
			await ui.range()
			await ui.answer("records", "abort")
			await ui.type("basket")
			await until("it is said in words", async () =>
				(await ui.page.locator("[role=alert]").allInnerTexts()).some((t) => /server|connection|network/i.test(t)),
			)
			await ui.page.unrouteAll()
			await ui.button("Try again").first().click()
			await ui.ready()
			await ui.some(5)
		},
	},
	{
		name: "incomplete: the rows of a question that has failed are marked, and Try again asks it",
		allow: [broken],
		async run({ ui, page }) {
			await ui.range({ q: "customer" })
			await ui.some(5)
			const panel = page.getByRole("tabpanel"),
				back = await ui.answer("records", "abort")
			await ui.type("rows")
			await until("they are marked", async () => /of the question before/.test(await panel.innerText()))
			await until("the question has failed", async () => (await ui.state()) === "failed")
			await back()
			const asked = await ui.asked()
			await ui.button("Try again", panel).click()
			await until("it asks", async () => (await ui.asked()) > asked)
			await ui.ready()
			await until("they are of the question", async () => {
				const rows = await ui.shown()
				return rows.length >= 5 && rows.every(({ text }) => /for \d+ rows/.test(text))
			})
			assert.doesNotMatch(await panel.innerText(), /of the question before/)
		},
	},
	{
		name: "incomplete: an ingester that is dead and holds records",
		world: "dead",
		limit: 90,
		async run(scene) {
			const { ui } = scene
			await ui.open("", { wait: false })
			const text = await bar(ui, "the bar is there", 30000)
			assert.match(text, /ingester/i, text)
			scene.figures.words = text.replace(/\s+/g, " ").slice(0, 300)
			await ui.some(10)
			await sleep(1500)
			await bar(ui, "it does not go away by itself")
			await ui.type("web")
			await until("it is asked", () => ui.part("q") === "web")
			await bar(ui, "nor by another question", 30000)
			await scene.call("start", { Who: "ingester1" })
			await until(
				"try again finds them",
				async () => {
					if (await ui.missing.count()) await ui.button("Try again").first().click()
					await sleep(500)
					await ui.ready(5000).catch(() => {})
					return (await ui.missing.count()) === 0
				},
				40000,
			)
			await ui.totals(130)
		},
	},
	{
		name: "incomplete: a damaged blob",
		world: "damaged",
		async run(scene) {
			const { ui } = scene
			await ui.open("service=web&since=3h", { wait: false })
			const text = await bar(ui, "the bar is there")
			scene.figures.words = text.replace(/\s+/g, " ").slice(0, 300)
			assert.match(text, /web\/\d{4}\/\d\d\/\d\d\//, `the blob is not named: ${text}`)
			await sleep(1000)
			await bar(ui, "it does not go away by itself")
			await scene.call("mend")
			await ui.button("Try again").first().click()
			await until("all is well again", async () => (await ui.missing.count()) === 0)
			await ui.totals(2000)
		},
	},
	{
		name: "incomplete: days that have expired",
		world: "expired",
		async run(scene) {
			const { ui } = scene
			await ui.range({}, { wait: false })
			await until("it is said that days have expired", async () =>
				/expired/i.test(await ui.page.locator("body").innerText()),
			)
			await ui.totals(100)
		},
	},
	{
		name: "incomplete: the server is gone and comes back",
		world: "live/server",
		limit: 60,
		allow: [broken],
		async run(scene) {
			const { ui } = scene
			await ui.open("since=15m")
			await scene.call("kill", { Who: "server" })
			await ui
				.button("Refresh")
				.or(ui.page.getByRole("button", { name: /refresh/i }))
				.first()
				.click()
			await until("it is said in words", async () =>
				/server does not answer|is it running|cannot be reached/i.test(await ui.page.locator("body").innerText()),
			)
			await ui.type("another question")
			await until("the records are said to be of another question", async () =>
				/of the question before/.test(await ui.page.locator("body").innerText()),
			)
			assert.doesNotMatch(await ui.histogram.innerText(), /error\s+0/, "an unknown number is not 0")
			await scene.call("start", { Who: "server" })
			await ui
				.button(/try again/i)
				.first()
				.click()
			await ui.ready()
			await ui.find("")
			await ui.some(1)
		},
	},
	{
		name: "incomplete: numbers of a sample say so",
		async run({ ui }) {
			await ui.range()
			await until("the facets say what they are of", async () => /newest 10,000/.test(await ui.facets.innerText()))
			await ui.page.getByRole("tab", { name: "Patterns" }).click()
			await until("so do the patterns", async () =>
				/of the newest [\d,]+|[\d,]+ of [\d,]+ records|all [\d,]+ records|[\d,]+ records/i.test(
					await ui.page.getByRole("tabpanel").innerText(),
				),
			)
		},
	},
]
