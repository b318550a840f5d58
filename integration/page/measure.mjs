// Measures of the browser: the time of our own scripts, and memory.

/** Names of events of a trace in which scripts of the page run. */
const scripts = new Set([
	"FunctionCall",
	"EvaluateScript",
	"RunMicrotasks",
	"v8.run",
	"v8.compileModule",
	"v8.evaluateModule",
])

/**
 * The longest CPU times of our own scripts, in ms, while act runs. Nested events are in their outermost
 * one. Its story is alone: a browser makes one trace at a time, and other stories make scripts slower.
 */
export async function longest(scene, page, act) {
	await scene.browser.startTracing(page, { categories: ["devtools.timeline", "v8", "blink.user_timing"] })
	const mark = "of " + scene.story.name
	let trace
	try {
		await act()
		await page.evaluate((mark) => performance.mark(mark), mark) // its thread is the one of this page
	} finally {
		trace = JSON.parse((await scene.browser.stopTracing()).toString())
	}
	const events = trace.traceEvents ?? trace,
		ours = events.find((e) => e.name === mark)
	if (!ours) throw new Error("the trace does not have the page")
	const took = []
	let end = 0
	for (const e of events
		.filter((e) => e.ph === "X" && e.pid === ours.pid && e.tid === ours.tid && scripts.has(e.name))
		.sort((a, b) => a.ts - b.ts || b.dur - a.dur)) {
		if (e.ts < end) continue
		end = e.ts + e.dur
		// The time of the thread leaves out those of other programs on the machine.
		took.push({ ms: (e.tdur ?? e.dur) / 1000, name: e.name, at: e.args?.data?.functionName ?? "" })
	}
	return took
		.sort((a, b) => b.ms - a.ms)
		.slice(0, 5)
		.map((t) => ({ ...t, ms: Math.round(t.ms * 10) / 10 }))
}

/** The bytes of the heap after a collection. */
export async function heap(page) {
	const cdp = await page.context().newCDPSession(page)
	await cdp.send("HeapProfiler.enable")
	for (let n = 0; n < 3; n++) await cdp.send("HeapProfiler.collectGarbage")
	await cdp.send("Performance.enable")
	const { metrics } = await cdp.send("Performance.getMetrics")
	await cdp.detach()
	return Object.fromEntries(metrics.map((m) => [m.name, m.value])).JSHeapUsedSize
}
