/** How a consumer that ends returns messages to the queue. */
import { Codec, QueueDefinition } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import * as Needs from "../Needs.ts"

const test = Case.inGroup("shutdown")

export const cases: ReadonlyArray<Case.Case> = [
  test(
    "what is given back has used up no attempt",
    function* (lab) {
      yield* lab.send("a", "b")
      for (let round = 0; round < 3; round++) {
        const consumer = yield* lab.start({}, () => Effect.never)
        yield* lab.until("a run", () => lab.runs.length === round + 1)
        yield* consumer.drain(0)
      }
      const before = lab.runs.length
      yield* lab.start()
      yield* lab.untilRuns(before + 2)
      Check.equal(
        "attempts",
        lab.runs.map(({ attempts }) => attempts),
        lab.runs.map(() => 1)
      )
    },
    Needs.has("uncountedRelease")
  ),
  test(
    "a message that waits for its codec is returned at once, and has used up no attempt",
    function* (lab) {
      const slow = QueueDefinition.make<unknown>(lab.queue, {
        codec: { ...Codec.json, decode: () => new Promise<unknown>(() => {}) }
      })
      yield* lab.send("a")
      for (let round = 1; round <= 3; round++) {
        const consumer = yield* lab.start({}, () => Effect.void, slow)
        yield* lab.until("it is delivered", () => lab.entriesOf("Delivered").length >= round)
        const report = yield* consumer.drain(lab.recovery)
        Check.equal("report", [report.complete, report.interrupted], [true, 0])
        Check.equal("released", lab.eventsOf("Released").length, round)
      }
      yield* lab.start()
      const [run] = yield* lab.untilRuns(1)
      Check.equal("attempts", run!.attempts, 1)
      yield* lab.untilEmpty
    },
    Needs.has("uncountedRelease")
  ),
  test(
    "what comes because of a resume right before the end has used up no attempt",
    function* (lab) {
      const names = Array.from({ length: 400 }, (_, index) => `${index}`)
      yield* lab.send(...names)
      for (let round = 0; round < 20; round++) {
        const consumer = yield* lab.start({ concurrency: 7, prefetch: 5 })
        consumer.pause()
        yield* Effect.sleep(0)
        consumer.resume()
        yield* Effect.sleep(round % 4)
        yield* consumer.drain()
      }
      yield* lab.start({ prefetch: 100 })
      yield* lab.untilRuns(names.length)
      Check.equal(
        "unused attempts",
        lab.runs.filter(({ attempts }) => attempts > 1),
        []
      )
    },
    Needs.has("uncountedRelease")
  ),
  test(
    "where giving back counts, the message is not lost for it and attempts only grow",
    function* (lab) {
      yield* lab.send("a")
      const consumer = yield* lab.start({}, () => Effect.never)
      yield* lab.untilRuns(1)
      yield* consumer.drain(0)
      yield* lab.start()
      const runs = yield* lab.untilRuns(2)
      Check.isTrue("attempts grow", runs[1]!.attempts > runs[0]!.attempts, runs[1]!.attempts)
    },
    Needs.lacks("uncountedRelease")
  )
]
