// The same question elsewhere: as a command, as a file; and what it costs.
import assert from "node:assert/strict"
import { until } from "../scene.mjs"

/** The commands that the dialog has for the view. */
async function commands(ui) {
	await ui.button(/^Command/).click()
	const dialog = ui.dialog("Command")
	await dialog.waitFor()
	const texts = {}
	for (const [name, tab] of [
		["logquery", "logquery"],
		["curl", "curl"],
		["logql", "LogQL"],
	]) {
		const pre = dialog.locator(`pre[data-command="${name}"]`)
		const button = dialog.getByRole("tab", { name: tab })
		if (await button.count()) await button.click()
		await pre.waitFor()
		texts[name] = await pre.textContent()
	}
	await ui.press("Escape")
	return texts
}

export default [
	{
		name: "command: run, it gives the same lines byte for byte",
		limit: 90,
		async run(scene) {
			const { ui, facts } = scene
			for (const [view, params] of [
				[{ service: "cron" }, { service: "cron" }],
				[{ q: "basket -answered level>=warn" }, { service: "*", text: "basket", without: "answered", level: "warn+" }],
				[
					{ q: '"answered in" status=502', service: ["web", "db"] },
					{ service: ["web", "db"], text: "answered in", where: "status == 502" },
				],
				[{ q: "/order \\d+1 of/" }, { service: "*", expr: "order \\d+1 of" }],
				[
					{ f: ["level=error", "-path=/login"], off: "status=404" },
					{ service: "*", where: 'level == "error" and not (path == "/login")' },
				],
				[{ service: "deep" }, { service: "deep" }],
				[
					{ q: "BASKET status=503", fold: "1" },
					{ service: "*", text: "BASKET", where: "status == 503", fold: "1" },
				],
				[
					{ logql: '{service_name="orders"} |= "of customer 1"' },
					{ logql: '{service_name="orders"} |= "of customer 1"' },
				],
			]) {
				await ui.range(view)
				const { logquery, curl } = await commands(ui)
				const query = new URLSearchParams({ from: facts.from, to: facts.to, limit: 0 })
				for (const [key, value] of Object.entries(params)) for (const v of [value].flat()) query.append(key, v)
				const answer = await fetch(`${scene.url}/api/v1/records?${query}`)
				assert.ok(answer.ok, `${query}: ${answer.status}`)
				const want = (await answer.text()).split("\n").filter(Boolean).sort()
				assert.ok(want.length > 0, `nothing is found for ${query}`)
				const both = await Promise.all([logquery, curl].map((Command) => scene.call("shell", { Command })))
				for (const [n, line] of [logquery, curl].entries()) {
					const run = both[n]
					assert.equal(run.code, 0, `${line}\n${run.stderr}`)
					const lines = run.stdout.split("\n").filter(Boolean)
					// The newest, as far as the command goes; in one order or the other.
					assert.ok(
						lines.length === want.length || (lines.length >= 100 && lines.length < want.length),
						`${lines.length} lines of ${want.length}: ${line}`,
					)
					const all = new Set(want)
					assert.deepEqual(lines.filter((l) => !all.has(l)).slice(0, 3), [], line)
				}
				assert.equal(both[0].stdout, both[1].stdout, `logquery and curl differ:\n${logquery}\n${curl}`)
			}
		},
	},
	{
		name: "command: quoted for sh",
		async run(scene) {
			const { ui } = scene
			for (const q of [
				`"it's \\"quoted\\" $HOME \\\\ back"`,
				'"`touch never`"',
				'"$(touch never)"',
				'"a;b|c&d>e"',
				'"!history"',
				'"-dash"',
				'"ü→"',
			]) {
				await ui.range({ service: "deep", q })
				const { logquery, curl } = await commands(ui)
				for (const line of [logquery, curl]) {
					const run = await scene.call("shell", { Command: line })
					assert.ok(run.code <= 1, `${line}: ${run.code} ${run.stderr}`)
					if (q.includes("HOME")) assert.match(run.stdout, /a record with parts/, line)
				}
			}
			const run = await scene.call("shell", { Command: "ls never" })
			assert.notEqual(run.code, 0, "a text was run")
		},
	},
	{
		name: "command: LogQL that the server takes",
		async run(scene) {
			const { ui, facts } = scene
			for (const view of [
				{ service: "orders", q: "customer" },
				{ q: '"answered in" -"1 ms" level=error' },
				{ q: "status=502" },
			]) {
				await ui.range(view)
				const total = await ui.total()
				const { logql } = await commands(ui)
				const n = (await scene.api("count?" + new URLSearchParams({ logql, from: facts.from, to: facts.to }))).records
				assert.equal(n, total, logql)
			}
		},
	},
	{
		name: "command: the button copies it",
		async run({ ui }) {
			await ui.range({ service: "cron" })
			await ui.button(/^Command/).click()
			const dialog = ui.dialog("Command")
			const text = await dialog.locator('pre[data-command="logquery"]').textContent()
			assert.match(text, /^logquery /)
			assert.equal((await ui.copied(dialog.getByRole("button", { name: /^Copy/ }).first())).trim(), text.trim())
		},
	},
	{
		name: "download: NDJSON and CSV, straight to a file",
		async run(scene) {
			const { ui, page, facts } = scene
			await ui.range({ service: "cron" })
			const get = async (name) => {
				const link = page.getByRole("link", { name }).or(page.getByRole("menuitem", { name })).first()
				if (!(await link.isVisible().catch(() => false)))
					await page
						.getByRole("button", { name: /^Download/ })
						.or(page.locator("summary", { hasText: "Download" }))
						.first()
						.click()
				const href = await link.getAttribute("href")
				assert.ok(href && !href.startsWith("blob:") && !href.startsWith("data:"), `${name}: ${href}`)
				const answer = await fetch(new URL(href, scene.url + "/"))
				assert.match(answer.headers.get("content-disposition") ?? "", /attachment/)
				return answer.text()
			}
			const lines = (await get("NDJSON")).trim().split("\n")
			assert.equal(lines.length, facts.services.cron)
			const csv = (await get("CSV")).trim().split("\n")
			assert.equal(csv.length, facts.services.cron + 1)
			assert.match(csv[0], /^ts,.*msg/)
		},
	},
	{
		name: "download: Escape ends the menu alone, and so does a click elsewhere",
		async run({ ui, page }) {
			await ui.range()
			await ui.choose()
			for (const name of ["Download", "Columns"]) {
				const menu = page.getByRole("group", { name, exact: true })
				for (const end of [() => ui.press("Escape"), () => ui.search.click()]) {
					await ui.button(name).click()
					await menu.waitFor()
					await end()
					await menu.waitFor({ state: "detached" })
					assert.ok(await ui.record.isVisible())
				}
			}
		},
	},
	{
		name: "link: what cannot be copied is not said to be",
		async run({ ui, page }) {
			await ui.range()
			await page.evaluate(() => {
				Object.defineProperty(navigator, "clipboard", { configurable: true, value: undefined })
				document.execCommand = () => false
			})
			await ui.button("Copy link").click()
			await ui.button("Not copied").waitFor()
		},
	},
	{
		name: "cost: requests and bytes of the last question",
		async run({ ui }) {
			await ui.range({ q: "basket" })
			await until("the cost is said", async () =>
				/[\d,]+ requests?, [\d.,]+ (B|KiB|MiB)/.test(await ui.foot.innerText()),
			)
			const requests = async () => Number(/([\d,]+) request/.exec(await ui.foot.innerText())[1].replace(",", ""))
			assert.ok((await requests()) > 0)
		},
	},
	{
		name: "page: its own files are small, and need no token",
		world: "tokens",
		bare: true,
		async run(scene) {
			const accept = { accept: "text/html" } // other programs get a list of the paths
			const html = await fetch(scene.url + "/", { headers: accept })
			assert.equal(html.status, 200)
			for (const [name, want] of [
				["content-security-policy", /default-src 'none'.*require-trusted-types-for 'script'/],
				["x-content-type-options", /nosniff/],
				["referrer-policy", /no-referrer/],
				["cross-origin-opener-policy", /same-origin/],
				["cache-control", /no-cache/],
				["etag", /./],
			]) {
				assert.match(html.headers.get(name) ?? "", want, name)
			}
			const seen = new Set(),
				left = [
					"",
					...[...(await html.text()).matchAll(/(?:src|href)="([^"]+)"/g)]
						.map((m) => m[1])
						.filter((u) => !u.startsWith("data:")),
				]
			let size = 0
			while (left.length) {
				const url = new URL(left.pop(), scene.url + "/").href
				if (seen.has(url)) continue
				seen.add(url)
				const answer = await fetch(url, { headers: accept }),
					text = await answer.text()
				assert.equal(answer.status, 200, `${url}: ${answer.status}`)
				size += text.length
				for (const [, to] of text.matchAll(/(?:from|import)\s*"(\.[^"]+)"/g)) left.push(new URL(to, url).href)
				const never = /innerHTML|dangerouslySetInnerHTML|document\.write|insertAdjacentHTML/
				if (!url.endsWith("/preact.js")) assert.doesNotMatch(text, never, url) // which has the word for those who want it
			}
			scene.figures.bytes = size
			assert.equal(
				(await fetch(scene.url + "/", { headers: { ...accept, "if-none-match": html.headers.get("etag") } })).status,
				304,
			)
		},
	},
]
