/** The end of a process whose server has fallen silent. */
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { assert, test } from "vitest"
import { apart, shared } from "../real/server.ts"
import { on, outgoing, queueName, until } from "../world.ts"

const one = await shared()

test.each([
  ["would answer", "10000"],
  ["is known to be gone", "1000"]
])("drain, close and exit take seconds where the server %s, and is silent", async (_, heartbeat) => {
  const queue = queueName("silent")
  await on({ url: one.url }, (broker) => broker.publish([outgoing(queue, "a"), outgoing(queue, "b")]))
  const program = Effect.gen(function* () {
    const { proxied, proxy } = yield* apart(one)
    const file = new URL("closingChild.ts", import.meta.url).pathname
    const address = new URL(proxied)
    for (const [name, value] of [
      ["heartbeat", heartbeat],
      ["connectTimeout", "1000"]
    ] as const)
      address.searchParams.set(name, value)
    const child = spawn(process.execPath, ["--conditions=@requeue/source", file, address.href, queue], {
      stdio: ["pipe", "pipe", "inherit"]
    })
    let said = ""
    child.stdout.on("data", (bytes) => (said += String(bytes)))
    const exited = once(child, "exit")
    yield* Effect.addFinalizer(() => Effect.sync(() => child.kill("SIGKILL")))
    yield* until("two runs", () => said.split("run\n").length > 2)
    proxy.blackhole(true)
    if (heartbeat === "1000") yield* until("the end of the connection", () => said.includes("not connected"))
    const began = performance.now()
    child.stdin.write("drain\n")
    yield* until(
      () => `its end, it said ${said}`,
      () => child.exitCode !== null
    )
    yield* Effect.promise(() => exited)
    const took = performance.now() - began
    const drained = Number(/drained (\d+)/.exec(said)?.[1])
    // A second for the handlers, one for the subscription, two for the connections; heartbeats would keep it for 20.
    assert.isBelow(drained, 4000)
    assert.isBelow(took, 10_000)
  })
  await Effect.runPromise(Effect.scoped(program))
})
