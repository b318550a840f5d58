// The pictures of the docs: `make picture`. The world has fixed times and a fixed seed.
import { sleep, until } from "../scene.mjs"

const context = { viewport: { width: 1200, height: 720 } }
const range = ({ facts }) => {
	const deploy = Date.parse(facts.incident.deploy)
	return {
		from: new Date(deploy - 20 * 60_000).toISOString(),
		to: new Date(deploy + 10 * 60_000).toISOString(),
		utc: "1",
	}
}
const message = ({ facts }) => facts.incident.message.split(" ").slice(0, 3).join(" ")

/** Takes a picture of docs/ when nothing moves any more. */
async function shot(scene, name) {
	await scene.ui.page.mouse.move(600, 715)
	await sleep(400)
	await scene.page.screenshot({ path: `${process.env.PAGE_DOCS}/${name}.png`, animations: "disabled", caret: "hide" })
}

const picture = (name, run, more = {}) => ({
	name: "picture: " + name,
	picture: true,
	world: "picture",
	limit: 60,
	context: { ...context, ...more },
	run: async (scene) => {
		await fetch(scene.facts.admin + "/flush", { method: "POST" }) // so that reads cost something
		await run(scene)
		await shot(scene, name)
	},
})

export default [
	picture("page-records", async (scene) => {
		const { ui } = scene
		await ui.open({ ...range(scene), f: "level>=warn" })
		await ui.choose(ui.rows.filter({ hasText: message(scene) }).nth(1))
	}),
	picture(
		"page-record",
		async (scene) => {
			const { ui } = scene
			await ui.open({ ...range(scene), q: `"${message(scene)}"` })
			await ui.choose(ui.rows.nth(2))
			await ui
				.button("Context", ui.record)
				.or(ui.record.getByRole("tab", { name: "Context" }))
				.first()
				.click()
			await ui.context
				.getByRole("radio", { name: /^Same (request|trace)/ })
				.first()
				.check()
			await until("the context", async () => (await ui.context.locator("[data-id]").count()) > 2)
		},
		{ colorScheme: "dark" },
	),
	picture("page-patterns", async (scene) => {
		const { ui, facts } = scene
		const deploy = Date.parse(facts.incident.deploy)
		await ui.open({
			...range(scene),
			from: new Date(deploy).toISOString(),
			tab: "patterns",
			against: "before",
			f: "level>=warn",
		})
		await until("the patterns", async () => (await ui.page.getByRole("tabpanel").innerText()).includes(message(scene)))
	}),
]
