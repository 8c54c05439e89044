/** Limits of a virtual host. */
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import { put } from "../../real/adoptedBooks.ts"
import { shared } from "../../real/server.ts"
import { on, outgoing, queueName, reasonOf, until } from "../../world.ts"
import { consume } from "./trap.ts"

const {
  broker: { managementUrl },
  url
} = await shared()

test.runIf(managementUrl)("a limit of queues that is reached is told with the remedy that helps", async () => {
  const vhost = queueName("small")
  const limit = (value: number) => put(managementUrl!, `vhost-limits/${vhost}/max-queues`, { value })
  const all = { configure: ".*", write: ".*", read: ".*" }
  const own = new URL(url)
  own.pathname = `/${vhost}`
  await put(managementUrl!, `vhosts/${vhost}`, {})
  await put(managementUrl!, `permissions/${vhost}/${own.username}`, all)
  // The queue, its letters and the undelivered.
  await limit(3)
  await on({ url: own.href }, (broker) =>
    Effect.gen(function* () {
      yield* consume("full", [], {})
      const send = broker.publish([outgoing("another", "a")])
      const error = yield* Effect.flip(send)
      assert.strictEqual(reasonOf(error), "AccessRefused")
      assert.match(String(error), /queue limit in .* is reached\. Raise that limit, as max-queues/)
      yield* Effect.promise(() => limit(4))
      yield* until("room", () => Effect.runPromise(Effect.isSuccess(send)))
    })
  )
})
