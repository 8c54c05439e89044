/** The end of a connection ends its calls. */
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import { strict } from "./strict.ts"
import { on, outgoing, queueName, until } from "../real/world.ts"

const { another } = await strict()

test("no call goes on when the connection has been closed: its process ends", async () => {
  await using own = await another()
  const queue = queueName("cut")
  const calls = () => Object.values(own.calls()).reduce((all, count) => all + count, 0)
  let sent: Promise<unknown> = Promise.resolve()
  await on({ url: own.url, requestTimeout: 1000 }, (broker) =>
    Effect.gen(function* () {
      yield* broker.publish([outgoing(queue, "m1")])
      own.ignore({ times: 1000 })
      const before = calls()
      sent = Effect.runPromise(Effect.flip(broker.publish([outgoing(queue, "m2")])))
      yield* until("the call", () => calls() > before)
    })
  )
  const after = calls()
  assert.match(String(await sent), /Timeout: .*the connection has been closed/)
  assert.strictEqual(calls(), after)
})
