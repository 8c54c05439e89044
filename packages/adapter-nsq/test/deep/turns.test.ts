/** Credits fewer than connections, on several nsqd: none waits for long, and none behind a slow one. */
import { Control } from "@requeue/conformance"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import { held } from "../real/raw.ts"
import { server } from "./server.ts"
import { consume, measured, now, on, queueName, until, type Run } from "../world.ts"

const [left, right] = [await server({ nodes: 3 }), await server({ nodes: 3 })]
const nodes = [...left.direct.nsqd!, ...right.direct.nsqd!]
const http = [...left.http, ...right.http]

/** Publishes to one nsqd, whichever it is. */
const put = (base: string, topic: string, body: string) =>
  Effect.promise(async () => {
    const { ok, status } = await fetch(`http://${base}/pub?topic=${topic}`, { method: "POST", body })
    if (!ok) throw new Error(`${topic}: ${status}`)
  })

describe.each([1, 3, 6])("a consumer of one message at a time, on %i nsqd", (count) => {
  test.for([0, 1])("with %i that may wait: what comes to any of them is handled within 60 ms", (prefetch, context) =>
    measured({ nsqd: nodes.slice(0, count) }, (_, control) =>
      Effect.gen(function* () {
        const queue = queueName("idle")
        const runs = new Map<string, number>()
        yield* consume(queue, [], { prefetch }, ({ body }) => void runs.set(String(body), now()))
        const late: Array<Parameters<typeof Control.check>[1][number]> = []
        for (let index = 0; index < 30; index++) {
          // At another moment of a round each time.
          yield* Effect.sleep(20 + ((index * 17) % 60))
          const from = now()
          yield* put(http[(index * 5) % count]!, queue, `${index}`)
          yield* until(`message ${index}`, () => runs.has(`${index}`), 60_000)
          const at = runs.get(`${index}`)!
          // Half of a round on average, in which each of the connections, two to an nsqd, has a turn: each may be late.
          late.push({ what: `message ${index}`, late: at - from, bound: 60, from, at, hops: count })
        }
        // Three of 30 may be late: a pause of the machine lengthens the turns until the next message, and no control sees it.
        yield* Control.check(control, late, 0.1)
      })
    )(context)
  )
})

describe("without prefetch, on three nsqd", () => {
  test("no message waits behind a slow one while another consumer is idle, wherever it comes", async () => {
    const queue = queueName("slow")
    const some = { nsqd: nodes.slice(0, 3) }
    const runs: Array<Run> = []
    await on(some, () =>
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        const slow = ({ body }: { readonly body: unknown }) =>
          String(body) === "slow" ? Deferred.await(gate) : undefined
        yield* consume(queue, runs, { prefetch: 0 }, slow)
        yield* Effect.promise(() =>
          on(some, () =>
            Effect.gen(function* () {
              yield* consume(queue, runs, { prefetch: 0 }, slow)
              yield* put(http[0]!, queue, '"slow"')
              yield* until("the slow one", () => runs.length === 1)
              for (let round = 1; round <= 10; round++) {
                for (const base of http.slice(0, 3)) yield* put(base, queue, '"quick"')
                yield* until("the quick ones", () => runs.length === 1 + 3 * round)
              }
              yield* Deferred.succeed(gate, undefined)
              yield* until("an empty queue", async () => (await held(http.slice(0, 3), queue)) === 0)
            })
          )
        )
      })
    )
    assert.lengthOf(runs, 31)
  })
})
