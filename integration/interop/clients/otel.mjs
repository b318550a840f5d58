// The OpenTelemetry SDK with its exporters of OTLP over HTTP: JSON, or protobuf with gzip
// (INTEROP_PROTO).
import { SeverityNumber } from "@opentelemetry/api-logs"
import { OTLPLogExporter as JSONExporter } from "@opentelemetry/exporter-logs-otlp-http"
import { OTLPLogExporter as ProtoExporter } from "@opentelemetry/exporter-logs-otlp-proto"
import { resourceFromAttributes } from "@opentelemetry/resources"
import { BatchLogRecordProcessor, LoggerProvider } from "@opentelemetry/sdk-logs"
import { paced, patience, report, service, sleep, url } from "./common.mjs"

const proto = process.env.INTEROP_PROTO === "1"
const options = { url: `${url}/v1/logs`, compression: proto ? "gzip" : "none", concurrencyLimit: 10 }
const exporter = proto ? new ProtoExporter(options) : new JSONExporter(options)
const believed = []
const plain = exporter.export.bind(exporter)
exporter.export = (batch, done) =>
	plain(batch, (result) => {
		if (result.code === 0) believed.push(...batch.map((r) => r.attributes.mark))
		else console.error(String(result.error))
		done(result)
	})
const provider = new LoggerProvider({
	resource: resourceFromAttributes({ "service.name": service }),
	logRecordLimits: { attributeValueLengthLimit: Infinity },
	processors: [
		new BatchLogRecordProcessor({ exporter, maxQueueSize: 100000, maxExportBatchSize: 50, scheduledDelayMillis: 200 }),
	],
})
const severity = {
	debug: SeverityNumber.DEBUG,
	info: SeverityNumber.INFO,
	warn: SeverityNumber.WARN,
	error: SeverityNumber.ERROR,
}
const log = provider.getLogger("interop")
for await (const r of paced()) {
	log.emit({
		timestamp: [Math.floor(r.ms / 1000), Number(r.nano.slice(-9))],
		severityNumber: severity[r.level],
		severityText: r.level.toUpperCase(),
		body: r.msg,
		attributes: { mark: r.mark, n: r.n },
	})
}
await Promise.race([provider.shutdown(), sleep(patience)])
report(believed)
