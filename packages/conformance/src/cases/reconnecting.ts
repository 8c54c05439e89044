/** Connections that are lost and restored: how that is reported, and the subscriptions and the credit on the new one. */
import { Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { checkKept } from "../internal/kept.ts"
import type { Lab } from "../Lab.ts"
import * as Needs from "../Needs.ts"
import * as Port from "../Port.ts"

const test = Case.inGroup("connections")

const untilUp = (lab: Lab) =>
  lab.until("the connection is up", () => lab.broker.connection().state === "up", lab.recovery)

/** The states of the connection while something happens, and until it is up again. */
const statesDuring = <E>(lab: Lab, change: Effect.Effect<void, E>) =>
  Effect.gen(function* () {
    const states: Array<string> = []
    const see = Effect.sync(() => void states.push(lab.broker.connection().state))
    // `forever` checks at each turn of the event loop, because a connection may soon be up again.
    const watching = yield* Effect.forkChild(Effect.forever(see))
    yield* change
    yield* untilUp(lab)
    yield* Fiber.interrupt(watching)
    return states
  })

export const cases: ReadonlyArray<Case.Case> = [
  test(
    "the connection is said to be up since it was made again, and never since before it was cut",
    function* (lab) {
      yield* lab.start()
      // Another case may have cut a connection that is still down.
      yield* untilUp(lab)
      const until = lab.now() + lab.unit
      yield* Effect.sleep(lab.unit)
      yield* lab.harness.cutConnections!
      yield* lab.untilReconnected
      // One connection may be up before the others.
      yield* untilUp(lab)
      const { since } = lab.broker.connection()
      Check.isTrue("since the cut", since >= until && since <= lab.now(), { since, until })
    },
    Needs.boundConnections
  ),
  test(
    "the connection is said to be down from its cut until it is made again",
    function* (lab) {
      yield* lab.start()
      const states = yield* statesDuring(lab, Effect.andThen(lab.harness.cutConnections!, lab.untilReconnected))
      Check.isTrue("it was down", states.includes("down"))
    },
    Needs.boundConnections
  ),
  test(
    "where deliveries outlive connections, the connection is said to be down while the broker restarts",
    function* (lab) {
      yield* lab.start()
      const begun = lab.now()
      yield* Effect.sleep(lab.unit)
      const states = yield* statesDuring(lab, lab.harness.restart!)
      Check.isTrue("it was down", states.includes("down"))
      const { since } = lab.broker.connection()
      Check.isTrue("up since the restart", since > begun && since <= lab.now(), { since, begun })
    },
    Needs.all(Needs.restart, Needs.lacks("connectionBound"))
  ),
  test(
    "a subscription that begins while the connection is lost gets its messages all the same",
    function* (lab) {
      yield* lab.publish("a")
      yield* lab.harness.cutConnections!
      const port = yield* Port.open(lab.broker, { queue: lab.queue, credit: 1, within: lab.recovery })
      const delivery = yield* port.next
      Check.equal("the message", delivery.metadata.id, "a")
      yield* port.settle(delivery, Settlement.Ack)
      yield* lab.untilEmpty
    },
    Needs.cutConnections
  ),
  test(
    "a new connection is reported before its first delivery",
    function* (lab) {
      yield* lab.publish("a")
      const port = yield* Port.open(lab.broker, { queue: lab.queue, credit: 1, keep: true })
      const begun = lab.now()
      yield* port.next
      Check.equal("told before", port.reconnects(), 0)
      yield* lab.harness.cutConnections!
      yield* lab.until("the redelivery", () => port.waiting() > 0, lab.recovery)
      const order = lab.log.flatMap(({ _tag }) => (_tag === "Delivered" || _tag === "Reconnected" ? [_tag] : []))
      checkKept(lab, "what came second", order[1], "Reconnected", begun)
    },
    Needs.boundConnections
  ),
  test(
    "a subscription without credit has none on its new connection, and that of later there",
    function* (lab) {
      const port = yield* Port.open(lab.broker, { queue: lab.queue, credit: 3 })
      yield* lab.publish("a")
      yield* port.next
      port.credit(0)
      yield* lab.harness.cutConnections!
      yield* lab.untilReconnected
      yield* untilUp(lab)
      yield* lab.quiet()
      Check.equal("delivered without credit", port.waiting(), 0)
      port.credit(3)
      yield* port.settle(yield* port.next, Settlement.Ack)
      yield* lab.untilEmpty
    },
    Needs.boundConnections
  )
]
