// pino-socket: lines of JSON over TCP.
import pino from "pino"
import { at, paced, report, service, sleep, url } from "./common.mjs"

const { hostname: address, port } = new URL(url)
const transport = pino.transport({ target: "pino-socket", options: { address, port: Number(port), mode: "tcp" } })
const log = pino({ name: service, level: "debug" }, transport)
for await (const r of paced()) at(r, () => log[r.level]({ mark: r.mark, n: r.n }, r.msg))
await sleep(2000)
report(null)
