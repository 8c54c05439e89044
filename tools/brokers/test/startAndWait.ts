/** A process that starts a broker, says its URL and stays until it is killed. */
import { start } from "../src/index.ts"

const broker = await start("rabbitmq")
console.log(broker.url)
setInterval(() => {}, 1000)
