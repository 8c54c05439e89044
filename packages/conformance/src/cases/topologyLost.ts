/** Queues that are deleted while they are used: the adapter creates them again, and later messages are handled. */
import { RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import type { Lab } from "../Lab.ts"
import * as Needs from "../Needs.ts"
import * as Wait from "../Wait.ts"

const test = Case.inGroup("deleted queues")

/** Publishes repeatedly, as a producer without Requeue, until a handler runs for a message. */
const publishUntilHandled = (lab: Lab, text: string) => {
  const body = new TextEncoder().encode(JSON.stringify(text))
  const isHandled = () => lab.runs.some((run) => run.body === text)
  const publish = Effect.exit(lab.harness.publishRaw(lab.queue, body, {}))
  return Wait.found(
    `a run for ${text}`,
    Effect.map(publish, () => isHandled() || undefined),
    { within: lab.recovery, every: lab.unit }
  )
}

const deleted = (lab: Lab, queue: string) => lab.harness.deleteQueue!(queue)

export const cases: ReadonlyArray<Case.Case> = [
  test(
    "a queue that is deleted under its consumer is made again by it, and what comes later is handled",
    function* (lab) {
      yield* lab.start()
      yield* lab.send("a")
      yield* lab.untilEvents("Succeeded", 1)
      yield* deleted(lab, lab.queue)
      const begun = lab.now()
      yield* publishUntilHandled(lab, "b")
      const tries = lab.entriesOf("Reconnected").length
      Check.isTrue("it tries with pauses", tries <= 5 + (lab.now() - begun) / 100, tries)
      yield* lab.send("c")
      yield* lab.until("a run for c", () => lab.runs.some(({ id }) => id === "c"), lab.recovery)
      yield* lab.untilEmpty
    },
    Needs.deleteQueue
  ),
  test(
    "a dead-letter queue that is deleted is there again for the next letter",
    function* (lab) {
      yield* lab.start({ retry: RetryPolicy.make({ maxRetries: 0 }) }, () => Effect.fail(new Error("no")))
      yield* lab.send("a")
      yield* lab.untilDeadLetters(1)
      yield* lab.untilEmpty
      yield* deleted(lab, lab.dlq)
      yield* lab.send("b")
      yield* lab.until("its end", () => lab.eventsOf("DeadLettered").length === 2, lab.recovery)
      const letters = yield* lab.untilDeadLetters(1)
      Check.equal(
        "letters",
        letters.map(({ metadata }) => metadata.id),
        ["b"]
      )
      Check.equal("runs", lab.runs.length, 2)
      yield* lab.untilEmpty
    },
    Needs.deleteQueue
  ),
  test(
    "a queue that is deleted between two sends is there again for the second",
    function* (lab) {
      const { send } = yield* lab.producer()
      yield* send("a")
      yield* deleted(lab, lab.queue)
      yield* Effect.timeout(Effect.retry(send("b"), Schedule.spaced(lab.unit)), lab.recovery)
      yield* lab.start()
      yield* lab.untilEvents("Succeeded", 1, lab.recovery)
      Check.equal(
        "handled",
        lab.runs.map(({ body }) => body),
        ["b"]
      )
      yield* lab.untilEmpty
    },
    Needs.deleteQueue
  )
]
