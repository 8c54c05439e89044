/** Connections that break: messages in flight are redelivered, and the redelivery is counted. */
import { BatchPolicy } from "@requeue/core"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { broken } from "../internal/faults.ts"
import { checkKept } from "../internal/kept.ts"
import type { Lab } from "../Lab.ts"
import * as Needs from "../Needs.ts"

const test = Case.inGroup("connections")

/**
 * Sends four messages, which arrive in batches of two. The connection breaks during the first batch; after `noticed`, its handler
 * continues.
 */
const cutInBatch = <E>(lab: Lab, noticed: Effect.Effect<void, E>) =>
  Effect.gen(function* () {
    const gate = yield* Deferred.make<void>()
    yield* lab.send("a", "b", "c", "d")
    const batch = BatchPolicy.make({ maxBatchSize: 2, maxBatchTimeout: 60_000 })
    yield* lab.startBatch({ batch }, () => Deferred.await(gate))
    yield* lab.untilRuns(2)
    yield* lab.harness.cutConnections!
    yield* noticed
    yield* Deferred.succeed(gate, undefined)
  })

export const cases: ReadonlyArray<Case.Case> = [
  test(
    "a connection that breaks in the middle of a batch loses nothing",
    function* (lab) {
      yield* cutInBatch(lab, lab.untilReconnected)
      const acked = () => new Set(lab.eventsOf("Succeeded").map(({ id }) => id))
      yield* lab.until("all are acked", () => acked().size === 4, lab.recovery)
      yield* lab.untilEmpty
      const begun = new Set(lab.runs.slice(0, 2).map(({ id }) => id))
      Check.isTrue(
        "attempts are not under-counted",
        lab.runs.slice(2).every(({ attempts, id }) => !begun.has(id) || attempts >= 2)
      )
    },
    Needs.boundConnections
  ),
  test(
    "where deliveries outlive connections, one that breaks in the middle of a batch changes nothing",
    function* (lab) {
      yield* cutInBatch(lab, lab.quiet())
      yield* lab.untilEvents("Succeeded", 4, lab.recovery)
      Check.equal("runs", lab.runs.map(({ id }) => id).toSorted(), ["a", "b", "c", "d"])
      Check.equal(
        "attempts of those that were running",
        lab.runs.slice(0, 2).map(({ attempts }) => attempts),
        [1, 1]
      )
      checkKept(lab, "failed settlements", lab.eventsOf("SettleFailed").length, 0, lab.runs[0]!.at)
      Check.equal("nothing was reported to the core", lab.entriesOf("Reconnected").length, 0)
      yield* lab.untilEmpty
    },
    Needs.unboundConnections
  ),
  test(
    "a consumer goes on after its connection broke, with all its credit",
    function* (lab) {
      yield* lab.start({ concurrency: 2 }, () => Effect.sleep(10))
      yield* lab.send("a")
      yield* lab.untilEvents("Succeeded", 1)
      yield* lab.harness.cutConnections!
      yield* lab.untilReconnected
      yield* lab.send("b", "c")
      yield* lab.untilEvents("Succeeded", 3, lab.recovery)
      const credits = () => lab.entriesOf("Credit").map(({ limit }) => limit)
      yield* lab.until("the credit of before", () => credits().at(-1) === credits()[1])
    },
    Needs.boundConnections
  ),
  test(
    "what handlers still have of a lost connection takes room: no more is held than before",
    function* (lab) {
      const gate = yield* Deferred.make<void>()
      const consumer = yield* lab.start({ concurrency: 2 }, () => Deferred.await(gate))
      const window = lab.entriesOf("Credit").at(-1)!.limit
      yield* lab.send(...Array.from({ length: 10 }, (_, index) => String(index)))
      yield* lab.untilRuns(2)
      const held = () => {
        const { buffered, inProgress } = consumer.stats()
        return buffered + inProgress
      }
      // The connection has all of the credit: an adapter that never returns it has none left.
      yield* lab.until("a full window", () => held() >= window, lab.recovery)
      // No lease is extended either, which would reveal one by one what is lost.
      lab.faults.extend = () => broken("Timeout")
      yield* lab.harness.cutConnections!
      yield* lab.untilReconnected
      lab.faults.extend = undefined
      // Redeliveries of the two take their slots, or else those of other messages.
      yield* lab.until("what there is room for", () => held() >= window, lab.recovery)
      yield* lab.quiet(lab.harness.settleTime + lab.unit)
      Check.isTrue("no more is held, with the two of before", held() <= window, held())
      yield* Deferred.succeed(gate, undefined)
      yield* lab.untilEmpty
      yield* lab.until("all the credit in the end", () => lab.entriesOf("Credit").at(-1)!.limit === window)
    },
    Needs.boundConnections
  ),
  test(
    "what was redelivered has a higher attempt, never a lower one",
    function* (lab) {
      yield* lab.send("a")
      yield* lab.start({ drainTimeout: 0 }, (message) => {
        if (message.attempts === 1) return Effect.fail(new Error("no"))
        return lab.entriesOf("Reconnected").length === 0 ? Effect.never : Effect.void
      })
      yield* lab.untilRuns(2)
      yield* lab.harness.cutConnections!
      yield* lab.until("the redelivery", () => lab.entriesOf("Delivered").length > 2, lab.recovery)
      Check.isTrue("attempts", lab.entriesOf("Delivered")[2]!.delivery.attempts >= 2)
    },
    Needs.boundConnections
  ),
  test(
    "a delayed message still comes at its time after the connection broke",
    function* (lab) {
      yield* lab.start()
      const sent = lab.now()
      yield* lab.sendDelayed("a", 4 * lab.unit)
      yield* lab.harness.cutConnections!
      const [run] = yield* lab.untilRuns(1, lab.recovery)
      lab.checkNotEarly("the message", 4 * lab.unit, sent, run!.at)
    },
    Needs.cutConnections
  ),
  test(
    "a message that is redelivered while its handler runs is not run again when that run succeeds",
    function* (lab) {
      const gate = yield* Deferred.make<void>()
      yield* lab.send("a")
      yield* lab.start({}, () => Deferred.await(gate))
      yield* lab.untilRuns(1)
      yield* lab.harness.cutConnections!
      yield* lab.until("the redelivery", () => lab.entriesOf("Delivered").length >= 2, lab.recovery)
      yield* Deferred.succeed(gate, undefined)
      yield* lab.untilEvents("Succeeded", 1)
      Check.equal("runs", lab.runs.length, 1)
      yield* lab.untilEmpty
    },
    Needs.boundConnections
  )
]
