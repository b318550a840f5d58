// winston-log2gelf: GELF over HTTP, one record a request. It does not look at the answers.
import winston from 'winston';
import Log2gelf from 'winston-log2gelf';
import { at, paced, report, service, sleep, url } from './common.mjs';

const { hostname, port } = new URL(url);
const transport = new Log2gelf({ host: hostname, port, protocol: 'http', level: 'debug', hostname: 'shop-1', service });
const log = winston.createLogger({ level: 'debug', transports: [transport] });
for await (const r of paced()) {
  at(r, () => log.log({ level: r.level, message: r.msg, mark: r.mark, n: r.n }));
}
await sleep(2000);
report(null);
