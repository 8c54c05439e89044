/** A process that starts a broker, says its URL and stays until it is killed. */
import { start, type BrokerName } from "../src/index.ts"

const broker = await start(process.argv[2] as BrokerName)
console.log(broker.url)
setInterval(() => {}, 1000)
