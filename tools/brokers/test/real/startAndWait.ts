/** A process that starts a broker, says its URL and stays until it is killed. */
import { isName, start } from "../../src/start.ts"

const [name = "rabbitmq"] = process.argv.slice(2)
if (!isName(name)) throw new RangeError(name)
const broker = await start(name)
console.log(broker.url)
setInterval(() => {}, 1000)
