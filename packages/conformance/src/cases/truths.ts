/** Settlements that fail below the adapter, requested below the consumer: the reported fate of each is true. */
import { Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { type Loss, losses, type Operation } from "../Harness.ts"
import { ends, within, words } from "../internal/calls.ts"
import type { Lab } from "../Lab.ts"
import * as Needs from "../Needs.ts"
import * as Port from "../Port.ts"
import * as Wait from "../Wait.ts"

const test = Case.inGroup("failing calls")

/** The fates of a delivery that is still held. */
const held = {
  refused: ["transient"],
  lostRequest: ["transient", "unknown"],
  lostAnswer: ["transient", "unknown"]
} as const

/** Waits until the reason is known why a delivery is lost: its connection, or its lease. */
const untilLost = (lab: Lab, port: Port.Port, begun: number, before: number) => {
  const { connectionBound, lease } = lab.capabilities
  const isCut = () => connectionBound && (port.reconnects() > 0 || lab.broker.connection().since !== before)
  const isOver = () => lease !== undefined && lab.now() - begun >= lease.duration / 2
  return lab.until(
    "the end of the connection or the lease of what is gone",
    () => isCut() || isOver(),
    connectionBound ? lab.recovery : 0
  )
}

/** Settles while this call fails, and again until it is settled or lost. A lost delivery is redelivered. */
const tells = (lab: Lab, operation: Operation, failure: Loss, settlement: Settlement.Settlement) =>
  Effect.gen(function* () {
    yield* lab.publish("a")
    const port = yield* Port.open(lab.broker, { queue: lab.queue, credit: 1, within: within(lab) })
    let delivery = yield* port.next
    const happened = yield* lab.failNext(operation, failure)
    const [begun, { since }] = [lab.now(), lab.broker.connection()]
    /** Whether the broker has settled it, though it has not answered. */
    const isDone = operation === "settle" && failure === "lostAnswer"
    let tries = 0
    const settle = Effect.gen(function* () {
      tries++
      const [told] = yield* ends(lab, "the settlement", port.settle(delivery, settlement))
      if (told === undefined) return true
      if (told.fate === "lost") {
        if (!isDone || tries === 1) yield* untilLost(lab, port, begun, since)
        if (isDone) return true
        // It is redelivered, unless the broker has done what was requested for the lost one. The next one may be redelivered,
        // too.
        const next = yield* Effect.raceFirst(port.next, Effect.as(lab.untilEmpty, undefined))
        if (next === undefined) return true
        delivery = next
        return undefined
      }
      const fates: ReadonlyArray<string> = held[failure]
      Check.isTrue(`the fate is ${fates.join(" or ")}, or it is gone`, fates.includes(told.fate), told.fate)
      return undefined
    })
    yield* Wait.found("the settlement", settle, { within: within(lab), every: lab.unit })
    yield* lab.until("the failure", happened, lab.recovery)
    // A broker may accept an ack after the lease, and deliver the message again all the same.
    const { lease } = lab.capabilities
    const isLate = lease !== undefined && lab.now() - begun >= lease.duration
    const again = Effect.forever(Effect.flatMap(port.next, (next) => port.settle(next, settlement)))
    yield* isLate ? Effect.raceFirst(lab.untilEmpty, again) : lab.untilEmpty
    if (settlement._tag !== "DeadLetter") return
    const letters = yield* lab.untilDeadLetters(1)
    // An unconfirmed copy may exist in addition to the confirmed one.
    Check.isTrue("no more letters than publishes", letters.length <= (failure === "refused" ? 1 : 2), letters.length)
  })

const fates = losses.flatMap((failure) => [
  test(
    `the fate of an ack ${words[failure]} is true, and it can be asked again`,
    (lab) => tells(lab, "settle", failure, Settlement.Ack),
    Needs.failNext("settle", failure)
  ),
  test(
    `the fate of a dead letter with a copy ${words[failure]} is true, and it can be asked again`,
    (lab) =>
      tells(lab, "publish", failure, Settlement.DeadLetter("permanent", lab.dlq, { name: "Error", message: "no" })),
    Needs.failNext("publish", failure)
  )
])

/** After these failures, nothing has happened. */
const undone = losses.filter((failure) => failure !== "lostAnswer")

const purges = undone.map((failure) =>
  test(
    `a purge with a receive ${words[failure]} fails, or has removed the backlog`,
    function* (lab) {
      yield* lab.publish("a")
      yield* lab.untilPending({ ready: 1 })
      yield* lab.failNext("receive", failure)
      const purged = yield* ends(lab, "the purge", Effect.exit(lab.broker.admin.purge(lab.queue)))
      if (purged._tag === "Success") yield* lab.untilEmpty
    },
    Needs.failNext("receive", failure)
  )
)

export const cases: ReadonlyArray<Case.Case> = [...fates, ...purges]
