/** Conservation: whatever happens, the books balance. */
import { BatchPolicy, DeadLetterBudget, Failure, type Handler, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import * as Books from "../Books.ts"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { checkKept } from "../internal/kept.ts"
import type { Lab } from "../Lab.ts"
import * as Needs from "../Needs.ts"
import * as Workload from "../Workload.ts"

const test = Case.inGroup("books")

const ids = Workload.ids(60)

/** Treats a message as a random number from 0 to 1 decides. */
const act = (lab: Lab, message: Handler.Received<unknown>, draw: number): Effect.Effect<unknown, unknown> | void => {
  if (draw < 0.15) return message.ack()
  if (draw < 0.3) return message.retry({ delay: Math.floor(draw * 20) % 2 === 0 ? 0 : lab.unit })
  if (draw < 0.45) return Effect.fail(new Error("transient"))
  if (draw < 0.55) return Effect.fail(new Failure.PermanentError({ message: "permanent" }))
  if (draw < 0.65) return Effect.fail(new Failure.DropError({ message: "worthless" }))
  return draw < 0.8 ? Effect.sleep(5) : undefined
}

/** The number of messages that ended so. */
const ended = (lab: Lab, tag: "Succeeded" | "DeadLettered" | "Dropped") => lab.eventsOf(tag).length

/** Runs the random workload; `trouble` happens halfway. */
const workload = (lab: Lab, seed: string, trouble: Effect.Effect<void, unknown>) =>
  Effect.gen(function* () {
    const retry = RetryPolicy.make({ maxRetries: 3 })
    const books = Books.make(ids)
    const batch = BatchPolicy.make({ maxBatchSize: 5, maxBatchTimeout: 20 })
    const draws = yield* Random.withSeed(Effect.all(Array.from({ length: 1000 }, () => Random.next)), seed)
    // Each run of each message has its own random number, so the order of runs does not matter.
    const drawOf = ({ attempts, id }: Handler.Received<unknown>) =>
      draws[(7 * ids.indexOf(id) + attempts) % draws.length]!
    yield* lab.start({ retry, concurrency: 2, batch, onEvent: books.onEvent }, (message) =>
      act(lab, message, drawOf(message))
    )
    yield* lab.send(...ids.slice(0, 30))
    yield* trouble
    // A send into a connection that was just lost fails, and its sender repeats it; one message may then be stored twice.
    yield* Effect.retry(lab.send(...ids.slice(30)), { times: 20, schedule: Schedule.spaced(100) })
    yield* Books.untilEnded(books)
    yield* lab.untilEmpty
    const letters = yield* lab.harness.deadLetters(lab.dlq)
    Books.balance(books, { queued: [], deadLetters: letters.map(({ metadata }) => metadata.id) })
  })

export const cases: ReadonlyArray<Case.Case> = [
  ...["one", "two", "three"].map((seed) =>
    test(`published = acked + dead-lettered + dropped, workload ${seed}`, function* (lab) {
      const begun = lab.now()
      yield* workload(lab, seed, Effect.void)
      const [acked, dead, dropped] = [ended(lab, "Succeeded"), ended(lab, "DeadLettered"), ended(lab, "Dropped")]
      Check.isTrue("of every kind", acked > 0 && dead > 0 && dropped > 0)
      const out = lab.eventsOf("RetryScheduled").length + lab.eventsOf("Released").length
      const ends = [acked + dead + dropped, lab.eventsOf("Received").length]
      checkKept(lab, "ends, and what was received", ends, [ids.length, ids.length + out], begun)
      const settled = lab.entriesOf("Settled").filter(({ error }) => error === undefined)
      Check.equal(
        "each delivery was settled once",
        new Set(settled.map(({ delivery }) => delivery)).size,
        settled.length
      )
      Check.isTrue(
        "no delivery beyond the limit",
        lab.runs.every(({ attempts }) => attempts <= 4)
      )
    })
  ),
  test(
    "nothing is lost when connections break again and again",
    function* (lab) {
      const cut = lab.harness.cutConnections!
      const settling = (count: number) =>
        lab.until(`${count} settlements`, () => lab.entriesOf("Settling").length >= count, lab.recovery)
      // The first cut breaks what is in flight, the second one the new connections.
      const cutTwice = (count: number) => Effect.all([settling(count), cut, Effect.sleep(30), cut])
      yield* workload(lab, "cuts", Effect.asVoid(Effect.forEach([1, 10, 20], cutTwice)))
    },
    Needs.cutConnections
  ),
  test("a budget of dead letters stops the consumer instead of emptying the queue", function* (lab) {
    yield* lab.send(...ids.slice(0, 10))
    const consumer = yield* lab.start(
      { retry: RetryPolicy.make({ maxRetries: 0 }), deadLetterBudget: DeadLetterBudget.make({ max: 3 }) },
      () => Effect.fail(new Error("down"))
    )
    const error = yield* Effect.flip(consumer.done)
    Check.equal("error", error._tag, "DeadLetterBudgetExhausted")
    yield* lab.quiet()
    Check.equal("dead letters", (yield* lab.untilDeadLetters(3)).length, 3)
    yield* lab.untilPending({ ready: 7, inFlight: 0 })
  })
]
