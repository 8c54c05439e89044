/** Facts and options of one broker: a service that may run on several must be able to state those of all. */
import { Backoff, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"

const test = Case.inGroup("native facts")

/** Native options of a broker that does not exist. */
const elsewhere = { elsewhere: Object.freeze({ exchange: "events", routingKey: "a" }) }

export const cases: ReadonlyArray<Case.Case> = [
  test("what is asked of another broker is passed over, at each attempt and in the dead letter", function* (lab) {
    const producer = yield* lab.producer()
    yield* producer.send("one", { native: elsewhere })
    yield* producer.sendBatch([
      { body: "two", native: elsewhere },
      { body: "three", native: {} }
    ])
    yield* lab.start({ retry: RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(0) }) }, ({ body }) =>
      body === "one" ? Effect.fail(new Error("boom")) : Effect.void
    )
    yield* lab.untilDeadLetters(1)
    const runs = yield* lab.untilRuns(4)
    Check.equal("bodies", runs.map(({ body }) => String(body)).toSorted(), ["one", "one", "three", "two"])
    yield* lab.untilEmpty
  }),
  test("a message has facts of its own broker alone, frozen, and the same at each read", function* (lab) {
    const told: Array<unknown> = []
    yield* lab.send("a")
    yield* lab.start({}, (message) => {
      const { native } = message
      const names = Object.keys(native).filter((name) => name !== lab.broker.capabilities.broker)
      const frozen = [native, ...Object.values(native)].map((facts) => Object.isFrozen(facts))
      told.push([names, frozen.includes(false), JSON.stringify(native) === JSON.stringify(message.native)])
      if (message.attempts === 1) message.retry({ delay: 0 })
    })
    yield* lab.untilRuns(2)
    Check.equal("names of others, what is not frozen, whether it is the same", told, [
      [[], false, true],
      [[], false, true]
    ])
  })
]
