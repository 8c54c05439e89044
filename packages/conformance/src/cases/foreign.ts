/** Messages of producers without Requeue. */
import { Backoff, RetryPolicy } from "@requeue/core"
import { Metadata, Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import * as Needs from "../Needs.ts"
import * as Port from "../Port.ts"

const test = Case.inGroup("foreign messages")

export const cases: ReadonlyArray<Case.Case> = [
  test("a foreign producer's message is consumed as it is", function* (lab) {
    yield* lab.harness.publishRaw(lab.queue, new TextEncoder().encode('{"foreign":"ü"}'), {})
    yield* lab.start({}, (message) => {
      if (message.attempts === 1) message.retry({ delay: 0 })
    })
    const [first, second] = yield* lab.untilRuns(2)
    Check.equal("body", first!.body, { foreign: "ü" })
    Check.equal("attempts", [first!.attempts, second!.attempts], [1, 2])
    Check.isTrue("it has an id", first!.id.length > 0)
    Check.equal("the id stays the same", second!.id, first!.id)
  }),
  test("a foreign message has the same id and time of first publish at each delivery", function* (lab) {
    yield* lab.harness.publishRaw(lab.queue, new TextEncoder().encode("1"), {})
    const port = yield* Port.open(lab.broker, { queue: lab.queue, credit: 1, within: lab.recovery })
    const names: Array<string> = []
    for (let count = 1; count <= 3; count++) {
      const delivery = yield* port.next
      names.push(`${delivery.metadata.id}, ${delivery.metadata.firstPublished}`)
      // Waits until two timestamps differ.
      yield* Effect.sleep(5)
      yield* port.settle(delivery, Settlement.Release())
    }
    Check.equal("ids and times", new Set(names).size, 1)
  }),
  test(
    "a foreign producer's headers are kept",
    function* (lab) {
      yield* lab.harness.publishRaw(lab.queue, new TextEncoder().encode("1"), { "x-tenant": "a" })
      yield* lab.start()
      const [run] = yield* lab.untilRuns(1)
      Check.equal("header", run!.headers["x-tenant"], "a")
    },
    Needs.has("headers")
  ),
  test(
    "where the broker has no headers, those of Requeue's own messages survive all the same",
    function* (lab) {
      const producer = yield* lab.producer()
      yield* producer.send("a", { headers: { "x-tenant": "a" } })
      yield* lab.harness.publishRaw(lab.queue, new TextEncoder().encode("1"), {})
      yield* lab.start()
      const runs = yield* lab.untilRuns(2)
      Check.equal("header", runs.find(({ body }) => body === "a")?.headers["x-tenant"], "a")
      Check.equal("no invented headers", runs.find(({ body }) => body === 1)?.headers, {})
    },
    Needs.lacks("headers")
  ),
  test(
    "a foreign header of the metadata's name is no error",
    function* (lab) {
      yield* lab.harness.publishRaw(lab.queue, new TextEncoder().encode("1"), { [Metadata.header]: '{"v":7}' })
      yield* lab.start()
      const [run] = yield* lab.untilRuns(1)
      Check.equal("message", [run!.body, run!.attempts], [1, 1])
      Check.isTrue("it has an id", run!.id.length > 0)
    },
    Needs.has("headers")
  ),
  test(
    "metadata that a foreign sender made up is bounded: attempts are whole, delays end, and retries as well",
    function* (lab) {
      const made = {
        v: 1,
        id: "made-up",
        a: 0,
        t0: lab.now(),
        nb: 1e300,
        rd: 0.5,
        h: Array.from({ length: 50 }, () => [0.5, -1, "e", 1e300])
      }
      for (const [body, fields] of [
        ["1", made],
        ["2", { ...made, a: 0.5 }]
      ] as const) {
        const headers = { [Metadata.header]: JSON.stringify(fields) }
        yield* lab.harness.publishRaw(lab.queue, new TextEncoder().encode(body), headers)
      }
      const retry = RetryPolicy.make({ maxRetries: 1, backoff: Backoff.sequence([0, 0]) })
      yield* lab.start({ retry }, () => Effect.fail(new Error("boom")))
      const letters = yield* lab.untilDeadLetters(2)
      for (const body of [1, 2]) {
        const attempts = lab.runs.filter((run) => run.body === body).map((run) => run.attempts)
        Check.equal(`attempts of ${body}`, attempts, [1, 2])
      }
      Check.equal(
        "attempts of dead letters",
        letters.map(({ metadata }) => metadata.deadLetter?.attempts),
        [2, 2]
      )
      Check.equal(
        "redrives",
        letters.map(({ metadata }) => metadata.redrives),
        [0, 0]
      )
    },
    Needs.has("headers")
  )
]
