/** `requeue status` on a terminal, while a broker lets it wait. */
import { once } from "node:events"
import { createServer } from "node:net"
import { Readable, Writable } from "node:stream"
import { assert, it } from "vitest"
import { run } from "../src/Program.ts"
import { until } from "./until.ts"

it("says whom it connects to", async () => {
  // It takes connections, and never says a word.
  const server = createServer(() => {})
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as { readonly port: number } // It listens on a port.
  let said = ""
  const write = (text: unknown, _: unknown, done: () => void) => {
    said += String(text)
    done()
  }
  const [stdout, stderr] = [new Writable({ write }), Object.assign(new Writable({ write }), { isTTY: true })]
  const interruption = new AbortController()
  const process = { cwd: () => "/", env: {}, stdin: Readable.from([]), stdout, stderr }
  const ended = run(["status", "--url", `amqp://127.0.0.1:${port}`, "-q", "orders"], process, interruption.signal)
  await until("it says whom it connects to", () => said.includes("connecting to amqp"))
  interruption.abort()
  assert.strictEqual(await ended, 130)
  server.close()
})
