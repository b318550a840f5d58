// Who may see what.
import assert from "node:assert/strict"
import { sleep, status, until } from "../scene.mjs"

/** The lines of the console about a reader whom the server does not know, and about a question of services that one may not read. */
const unknown = status(401, "whoami")
const refused = (...services) =>
	status(
		404,
		`(records|histogram|facets)\\?${services.map((s) => "service=" + s.replace("*", "\\*") + "&").join("")}(from|q|to)=`,
	)

async function login(ui, token) {
	await ui.page.goto(ui.scene.url + "/")
	const dialog = ui.dialog("Log in")
	await dialog.waitFor()
	await dialog.getByLabel("Token").fill(token)
	await dialog.getByRole("button", { name: "Log in" }).click()
	return dialog
}

export default [
	{
		name: "doors: a wrong token is refused in words",
		world: "tokens",
		allow: [unknown, status(401, "login")],
		async run({ ui, facts }) {
			const dialog = await login(ui, "webonly.wrong")
			await dialog.getByRole("alert").waitFor()
			assert.match(await dialog.innerText(), /token/i)
			await login(ui, facts.tokens.webonly)
			await ui.ready()
		},
	},
	{
		name: "doors: the token is in no URL, in no storage of the browser and in no log",
		world: "tokens",
		allow: [unknown],
		async run(scene) {
			const { ui, facts, page } = scene
			const token = facts.tokens.webonly,
				secret = token.split(".")[1],
				urls = []
			page.on("request", (r) => urls.push(r.url()))
			await login(ui, token)
			await ui.ready()
			await ui.some(5)
			const cookies = await page.context().cookies()
			assert.equal(cookies.length, 1)
			const [c] = cookies
			assert.ok(
				c.httpOnly && c.sameSite === "Strict" && c.domain === "127.0.0.1" && c.path === "/",
				JSON.stringify({ ...c, value: "" }),
			)
			const hours = (c.expires - Date.now() / 1000) / 3600
			assert.ok(hours > 11 && hours <= 12.1, `${hours} h`)
			assert.ok(!c.value.includes(secret), "the cookie has the secret")
			const kept = await page.evaluate(() =>
				JSON.stringify([
					{ ...localStorage },
					{ ...sessionStorage },
					document.cookie,
					location.href,
					document.documentElement.outerHTML,
				]),
			)
			assert.ok(!kept.includes(secret), "the page keeps the secret")
			assert.ok(!urls.some((u) => u.includes(secret)), "a URL has the secret")
			assert.ok(!(await scene.call("log", { Who: "server" })).includes(secret), "the log has the secret")
			await page.reload()
			await ui.ready()
			await ui.some(5)
		},
	},
	{
		name: "doors: logged out, the page shows nothing",
		world: "tokens",
		allow: [unknown],
		async run({ ui, facts, page }) {
			await login(ui, facts.tokens.webonly)
			await ui.ready()
			const out = page
				.getByRole("button", { name: "Log out" })
				.or(page.getByRole("menuitem", { name: "Log out" }))
				.first()
			if (!(await out.isVisible().catch(() => false)))
				await page
					.getByRole("button", { name: /menu|more/i })
					.first()
					.click()
			await out.click()
			await ui.dialog("Log in").waitFor()
			assert.equal((await page.context().cookies()).length, 0)
			assert.equal(await ui.rows.count(), 0)
		},
	},
	{
		name: "doors: who may read one service sees no byte of another, in all that the page asks",
		world: "tokens/recorded",
		limit: 90,
		allow: [unknown, refused("v*"), refused("*", "_*")],
		async run(scene) {
			const { ui, facts, page } = scene
			await login(ui, facts.tokens.webonly)
			await ui.ready()
			await ui.some(20)
			const step = async (what, act) => {
				try {
					await act()
				} catch (err) {
					throw new Error(`${what}: ${err.message}`, { cause: err })
				}
				await sleep(150) // what it asks then is kept too
			}
			await step("services", async () => {
				await ui.button(/^Services/).click()
				const dialog = ui.dialog("Services")
				await dialog.getByRole("checkbox", { name: "System services" }).check()
				await dialog
					.getByRole("textbox", { name: "Find a service" })
					.or(dialog.getByRole("searchbox"))
					.first()
					.fill("v*")
			})
			await ui.press("Escape")
			await step("a week", () => ui.open({ since: "7d" }))
			for (const split of ["service", "level", "n", "service,level", "frobnicate"])
				await step("by " + split, () => ui.open({ since: "1h", split }))
			await step("a glob", () => ui.open({ service: "v*" }, { wait: false }))
			await step("all by name", () => ui.open({ service: ["*", "_*"] }, { wait: false }))
			await step("a search", () => ui.open({ since: "1h", q: "open" }))
			await step("a record", () =>
				ui
					.open()
					.then(() => ui.some(20))
					.then(() => ui.choose(ui.rows.nth(14))),
			)
			await step("its context", async () => {
				await ui
					.button("Context", ui.record)
					.or(ui.record.getByRole("tab", { name: "Context" }))
					.first()
					.click()
				await ui.context.getByRole("radio", { name: "All services" }).check()
				await ui.button("10 more before", ui.context).click()
				await ui.button("10 more after", ui.context).click()
			})
			await step("patterns", async () => {
				await ui.open("tab=patterns&against=before")
				await sleep(300)
			})
			await step("fields", async () => {
				await ui.open()
				for (const s of await ui.facets.locator("summary").all()) await s.click()
			})
			await step("suggestions", async () => {
				for (const text of ["service=", "v", "level=", "n="]) {
					await ui.search.fill("")
					await ui.search.pressSequentially(text)
					await sleep(150)
				}
			})
			await step("a command", async () => {
				await ui.press("Escape")
				await ui.button(/^Command/).click()
				await ui.press("Escape")
			})
			await step("live", async () => {
				await ui.open({ live: "1" })
				await scene.call("send", {
					Lines: `{"service":"vault","msg":"xyzzy again"}\n{"service":"web","msg":"one more"}\n`,
				})
				await sleep(1500)
			})
			// Every other button of the page is pressed once too.
			await step("every button", async () => {
				await ui.open()
				// One of those that are alike, as "Filter for …" of each value.
				let pressed = 0
				const names = await page
					.getByRole("button")
					.evaluateAll((all) =>
						all
							.filter((b) => b.checkVisibility())
							.map((b) => (b.getAttribute("aria-label") ?? b.textContent).split(/[ :=]/)[0]),
					)
				for (const name of new Set(names)) {
					if (/^log$/i.test(name)) continue
					const button = page.getByRole("button", { name: new RegExp("^" + name.replace(/[^\w]/g, "\\$&")) }).first()
					if (
						!(await button.waitFor({ timeout: 400 }).then(
							() => true,
							() => false,
						))
					)
						continue // another has taken it away
					await button.click({ timeout: 3000 }).then(
						() => pressed++,
						() => {},
					) // something may lie over it
					await ui.press("Escape")
				}
				assert.ok(pressed >= 10, `${pressed} of ${names}`)
			})
			await page.goto("about:blank")
			await sleep(200)
			const { requests, found, bytes } = await scene.call("recorded", { Needles: facts.needles })
			Object.assign(scene.figures, { requests: requests.length, bytes })
			const routes = new Set(requests.map((r) => r.split("?")[0]))
			for (const route of ["services", "records", "histogram", "facets", "patterns", "whoami", "tail", "context"])
				assert.ok(
					[...routes].some((r) => r.includes("/api/v1/" + route)),
					`the page did not ask ${route}`,
				)
			assert.deepEqual(found, [])
		},
	},
	{
		name: "doors: a service that one may not read is like one that is not there",
		world: "tokens",
		allow: [unknown, refused("vault"), refused("vaulted")],
		async run({ ui, facts }) {
			await login(ui, facts.tokens.webonly)
			await ui.ready()
			const said = async (service) => {
				await ui.open({ service, since: "1h" }, { wait: false, anew: true })
				await until("the questions have failed", async () => (await ui.state()) === "failed")
				assert.match(await ui.missing.innerText(), /no service/i)
				assert.equal(await ui.rows.count(), 0)
				return (await ui.missing.innerText()).replaceAll(service, "NAME")
			}
			assert.equal(await said("vault"), await said("vaulted"))
		},
	},
	{
		name: "doors: another reader of this browser finds nothing of the one before",
		world: "tokens",
		allow: [status(401, "(whoami|records|histogram|facets|parse)"), refused("vault")],
		limit: 60,
		async run({ ui, facts, page }) {
			const enter = async (token) => {
				await ui.dialog("Log in").waitFor()
				await ui.dialog("Log in").getByLabel("Token").fill(token)
				await ui.dialog("Log in").getByRole("button", { name: "Log in" }).click()
			}
			const forgotten = () => page.evaluate(() => !JSON.stringify({ ...localStorage }).includes("xyzzy"))
			await login(ui, facts.tokens.all)
			await ui.ready()
			await ui.open({ service: "vault", since: "1h" })
			await ui.find("xyzzy")
			await ui.some(5)
			assert.ok(!(await forgotten()), "the line remembers what was asked")
			await page.context().clearCookies()
			await ui.button("Refresh").click()
			await ui.dialog("Log in").waitFor()
			await until("the records are hidden", async () => !(await ui.rows.first().isVisible()))
			await enter(facts.tokens.webonly)
			await until(
				"the other's records are gone",
				async () =>
					(await ui.dialog("Log in").count()) + (await ui.rows.count()) === 0 &&
					/no service/i.test(await page.locator("body").innerText()),
			)
			assert.ok(await forgotten(), "the other's questions are there")
			// A log out is one of all tabs.
			await ui.open({ service: "web", since: "1h" })
			await ui.find("record")
			const second = await ui.scene.watch(await page.context().newPage())
			await second.open({ service: "web", since: "1h" })
			await ui.button("Log out").click()
			await second.dialog("Log in").waitFor()
			assert.equal(await second.rows.count(), 0)
			assert.ok(
				await page.evaluate(() => !localStorage.getItem("history")?.includes("record")),
				"a log out leaves questions",
			)
		},
	},
	{
		name: "doors: what the server did not answer is not said of a token",
		world: "tokens",
		allow: [unknown, status(502, "whoami")],
		async run({ ui, page }) {
			const whoami = (url) => url.pathname === "/api/v1/whoami"
			await page.route(whoami, (r) => r.fulfill({ status: 502, body: "" }))
			await ui.open("", { wait: false })
			await ui.dialog("No answer").getByRole("alert").waitFor()
			await page.unroute(whoami)
			await ui.button("Try again", ui.dialog("No answer")).click()
			await ui.dialog("Log in").waitFor()
			assert.equal(await ui.dialog("Log in").getByRole("alert").count(), 0)
		},
	},
	{
		name: "doors: a session that has ended asks for the token again",
		world: "tokens",
		allow: [status(401, "(whoami|records|histogram|facets|parse)")],
		async run({ ui, facts, page }) {
			await login(ui, facts.tokens.webonly)
			await ui.ready()
			await page.context().clearCookies()
			await ui.type("record")
			await ui.dialog("Log in").waitFor()
			await ui.dialog("Log in").getByLabel("Token").fill(facts.tokens.webonly)
			await ui.dialog("Log in").getByRole("button", { name: "Log in" }).click()
			await ui.ready()
			assert.equal(ui.part("q"), "record", "the view is still there")
			await ui.some(5)
		},
	},
]
