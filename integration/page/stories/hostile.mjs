// Records that try to be more than text, or too much of it.
import assert from "node:assert/strict"
import { median, sleep, status, until } from "../scene.mjs"
import { longest } from "../measure.mjs"

const clean = async (ui) => {
	assert.equal(await ui.page.evaluate(() => window.hacked), undefined, "a script of a record ran")
	const made = await ui.page.evaluate(() =>
		[
			...document.querySelectorAll(
				"#app img, #app iframe, #app script, #app style, #app link, #app object, #app embed",
			),
		].map((e) => e.outerHTML.slice(0, 100)),
	)
	assert.deepEqual(made, [], "a record made elements")
	const links = await ui.page.evaluate(() =>
		[...document.querySelectorAll("#app a")]
			.filter(
				(a) =>
					!["http:", "https:", "blob:"].includes(a.protocol) ||
					(a.origin !== location.origin && !(a.rel.includes("noopener") && a.rel.includes("noreferrer"))),
			)
			.map((a) => a.outerHTML.slice(0, 200)),
	)
	assert.deepEqual(links, [], "a link of a record")
}

export default [
	{
		name: "hostile: markup of a record is text, wherever it is shown",
		world: "hostile",
		limit: 60,
		async run(scene) {
			const { ui, facts } = scene
			await ui.range({ service: "markup" })
			const rows = await ui.some(facts.markup)
			const all = rows.map((r) => r.text).join("\n")
			for (const text of [
				'<img src=x onerror="window.hacked=1">',
				"</script><script>window.hacked=1</script>",
				"javascript:window.hacked=1",
				"<style>*{display:none}</style>",
			]) {
				assert.ok(all.includes(text), `${text} is not shown`)
			}
			await clean(ui)
			// One that could hold others up, from the right to the left, stays within its own row.
			for (let n = 0; n < facts.markup; n++) {
				await ui.choose(ui.rows.nth(n))
				await clean(ui)
			}
			for (const name of ["JSON", "Tree"]) {
				await ui.record
					.getByRole("tab", { name })
					.or(ui.record.getByRole("button", { name, exact: true }))
					.or(ui.record.getByRole("radio", { name }))
					.first()
					.click()
				await clean(ui)
			}
			await ui
				.button("Context", ui.record)
				.or(ui.record.getByRole("tab", { name: "Context" }))
				.first()
				.click()
			await ui.context.locator("[data-id]").first().waitFor()
			await clean(ui)
			const shut = ui.facets.locator("details:not([open]) > summary")
			for (let n = 0; n < 10 && (await shut.count()); n++) await shut.first().click()
			await clean(ui)
			await ui.page.getByRole("tab", { name: "Patterns" }).click()
			await ui.page
				.getByRole("tabpanel")
				.getByText(/^Patterns of/)
				.waitFor()
			await clean(ui)
			await ui.range({ service: "markup", q: '"<img src=x"', f: '"</script>"', split: "value", col: "value" })
			await clean(ui)
		},
	},
	{
		name: "hostile: control characters, colours of terminals and directions are shown as signs",
		world: "hostile",
		async run({ ui }) {
			await ui.range({ service: "markup" })
			const rows = await ui.some(20)
			const of = (text) =>
				rows.find((r) => r.text.includes(text))?.text ??
				assert.fail(`no row with ${text}: ${rows.map((r) => r.text.slice(0, 80)).join("\n")}`)
			const nul = of("nul ")
			assert.ok(!/[\u0000-\u0008\u007f]/.test(nul), "a control character is shown as it is")
			assert.match(nul, /nul (␀|\\0|\\u0000|\\x00|�)/, nul.slice(0, 120))
			const red = rows.find((r) => /(^|[^\w])red/.test(r.text) && /link/.test(r.text))?.text
			assert.ok(
				red && !red.includes("\u001b") && !/\[31m|\[0m/.test(red),
				`colours of a terminal: ${red?.slice(0, 160)}`,
			)
			const rtl = of("exe")
			const isolated = await ui.rows
				.filter({ hasText: "exe" })
				.first()
				.evaluate((r) => {
					const walk = (e) =>
						["isolate", "isolate-override", "plaintext"].includes(getComputedStyle(e).unicodeBidi) ||
						[...e.children].some(walk)
					return walk(r)
				})
			assert.ok(!/[\u202A-\u202E\u2066-\u2069]/.test(rtl) || isolated, "a direction could go beyond its text")
			for (const { text } of rows) assert.ok(!text.includes("\n"), "a row is one line")
		},
	},
	{
		name: "hostile: 40 KB of marks stay in their row",
		world: "hostile",
		async run({ ui }) {
			await ui.range({ service: "markup" })
			const rows = await ui.some(20)
			for (const { text } of rows) assert.ok(text.length < 10_000, `a row has ${text.length} characters`)
			const boxes = await ui.rows.evaluateAll((all) =>
				all.map((r) => ({ h: r.getBoundingClientRect().height, over: getComputedStyle(r).overflow })),
			)
			for (const b of boxes) assert.ok(b.h <= 24 && /hidden|clip/.test(b.over), JSON.stringify(b))
		},
	},
	{
		name: "hostile: ten lines of 900 KiB, and the browser stays quick",
		world: "hostile",
		alone: true,
		limit: 150,
		async run(scene) {
			const { ui, page } = scene
			const longests = []
			for (let run = 0; run < 3; run++) {
				const took = await longest(scene, page, async () => {
					await page.goto("about:blank")
					await ui.range({ service: "long" })
					await ui.some(10)
					await ui.choose(ui.rows.nth(2))
					await sleep(300)
					await ui.press("Escape")
				})
				longests.push(took[0]?.ms ?? 0)
				scene.figures["scripts " + run] = took.slice(0, 3)
			}
			for (const { text } of await ui.shown()) assert.ok(text.length < 10_000, `a row has ${text.length} characters`)
			scene.figures.longest = longests
			assert.ok(median(longests) < 100, `scripts of ${longests} ms`)
		},
	},
	{
		name: "hostile: a record of 10,000 fields",
		world: "hostile",
		alone: true,
		limit: 150,
		async run(scene) {
			const { ui, page } = scene
			const longests = []
			for (let run = 0; run < 3; run++) {
				const took = await longest(scene, page, async () => {
					await page.goto("about:blank")
					await ui.range({ service: "wide" })
					await ui.choose()
					await until("its fields are there", async () => /field_1\b/.test(await ui.record.innerText()))
				})
				longests.push(took[0]?.ms ?? 0)
				scene.figures["scripts " + run] = took.slice(0, 3)
			}
			scene.figures.longest = longests
			assert.ok(median(longests) < 100, `scripts of ${longests} ms`)
			await ui.record.getByRole("tab", { name: "JSON" }).click()
			await ui.record
				.getByRole("button", { name: /^show all/i })
				.or(ui.record.getByText(/^show all/i))
				.first()
				.click()
			await until("the last field can be seen", async () => /value 9999/.test(await ui.record.innerText()))
			const listed = async (re) => re.test(await ui.facets.innerText())
			await until("the list of fields says that there are others", () => listed(/more fields than these 200/))
			await ui.facets.getByRole("textbox", { name: "Find a field" }).fill("field_9999")
			await until("one of them is found by its name", () => listed(/field_9999/))
		},
	},
	{
		name: "hostile: a field of 1 MiB is for download only",
		world: "hostile",
		async run(scene) {
			const { ui } = scene
			await ui.range({ service: "big" })
			await ui.choose()
			const link = ui.record
				.getByRole("link", { name: /download/i })
				.or(ui.record.getByRole("button", { name: /download/i }))
				.first()
			await link.waitFor()
			assert.ok((await ui.record.innerText()).length < 300_000)
			const href = await link.getAttribute("href")
			if (href && !href.startsWith("blob:")) {
				const body = await (await fetch(new URL(href, scene.url + "/"))).text()
				assert.ok(body.includes("0123456789abcdef".repeat(65_500)), "the file has the whole value")
			}
		},
	},
	{
		name: "hostile: a crafted link says what is left out, and asks no more than another",
		limit: 90,
		async run({ ui, page }) {
			let asked = 0
			page.on("request", (r) => r.url().includes("/api/") && asked++)
			for (const link of [
				"since=99999999999d",
				"from=%2B275760-09-13T00:00:00Z",
				"tab=patterns&from=-271821-04-20T00:00:00Z&to=2026-01-01T00:00:00Z",
				"every=1ms",
				"every=999999999d",
				"against=zz/2026-01-01T00:00:00Z",
				"col=a&".repeat(8000),
				"f=a&".repeat(100_000),
				"sel=__proto__",
				"split=__proto__,constructor&col=__proto__&tab=constructor",
			]) {
				asked = 0
				await ui.open(link, { wait: false })
				await until(
					`words about ${link.slice(0, 60)}`,
					async () => /This link is (broken|too long)/.test(await ui.mistake.first().innerText()),
					20000,
				)
				await sleep(300)
				assert.ok(asked < 20, `${asked} questions for ${link.slice(0, 60)}`)
			}
			await ui.type("basket")
			await until("they go with the next question", async () => !(await ui.mistake.count()))
		},
	},
	{
		name: "hostile: settings of another page of the origin, and answers that are not ours",
		allow: [status(502, "whoami"), /status of 404 .*\/favicon\.ico/],
		limit: 90,
		async run({ ui, page }) {
			for (const kept of ["5", '{"0":1}', '[1,null,{},"basket"]']) {
				await page.goto(ui.scene.url + "/ui/page.css")
				await page.evaluate(
					(text) => ["history", "theme", "who /"].forEach((key) => localStorage.setItem(key, text)),
					kept,
				)
				await ui.range({}, { anew: true })
				await ui.search.click()
				await ui.search.pressSequentially("ba")
				await ui.some(5)
			}
			const html = (status) => (r) =>
				r.fulfill({ status, contentType: "text/html", body: "<h1>Sign in</h1><script>window.hacked=1</script>" })
			for (const [route, how, words] of [
				["whoami", html(200), /not of this server/],
				["whoami", html(502), /answers with 502/],
				["whoami", (r) => r.fulfill({ status: 200, body: "{}" }), /not of this server/],
				["facets", html(200), /not of this server/],
				["records", (r) => r.fulfill({ status: 302, headers: { location: "https://sign-in.example/" } }), /a redirect/],
				["records", (r) => r.fulfill({ status: 200, body: '{"end":{}}\n' }), /The page has failed/],
			]) {
				const match = (url) => url.pathname === "/api/v1/" + route
				await page.route(match, how)
				await ui.open("since=1h", { wait: false, anew: true })
				await until(`words about ${route}`, async () => words.test(await page.getByRole("alert").first().innerText()))
				await page.unroute(match)
			}
			await page.getByRole("link", { name: "Begin anew" }).click()
			await ui.ready()
			await clean(ui)
		},
	},
	{
		name: "hostile: a line that is not UTF-8",
		world: "hostile",
		async run({ ui }) {
			await ui.open({ service: "bytes", since: "1h" })
			for (const { text } of await ui.some(1)) assert.match(text, /not UTF-8: .* end/)
			await ui.choose()
		},
	},
]
