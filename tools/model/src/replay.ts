/**
 * Replays a trace of the model on the real engine. The broker does what the trace says; after each step, the engine must have
 * done what the trace says, and nothing else. Time is virtual, and passes only while the engine waits for it.
 */
import { Broker, Consumer, Failure, RetryPolicy } from "@requeue/core"
import { Metadata, Outgoing } from "@requeue/core/port"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import type * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import * as Scripted from "./scripted.ts"
import type { Trace } from "./traces.ts"

/** Milliseconds of a later retry, and until an early message is due: longer than all other pauses of a trace together. */
const later = 600_000

/** Seconds that the engine may take for its work after a pause. */
const longest = 1200

type Scripted = ReturnType<typeof Scripted.make>

/** Applies an event of a trace to the engine. */
type Happen = (act: string) => void

/** Returns the steps until the engine differed from the trace; `undefined` if it never did. */
export const replay = (trace: Trace): Effect.Effect<string | undefined, unknown> => {
  const broker = Scripted.make()
  const layer = Layer.merge(
    Layer.succeed(Broker.Broker, broker.service),
    Layer.succeed(References.MinimumLogLevel, "None")
  )
  return Effect.gen(function* () {
    const happen = yield* consumer(trace, broker)
    yield* Effect.addFinalizer(() => Effect.sync(broker.end))
    const past: Array<string> = []
    for (const [act, ...does] of trace.steps) {
      past.push([act, ...does].join("; "))
      happen(act)
      yield* settled
      // It waits for the end of a pause.
      const waits = act.startsWith("Retry") || does.some((each) => each.includes(" runs"))
      for (let second = 0; waits && broker.done() < does.length && second < longest; second++) {
        yield* TestClock.adjust(1000)
      }
      const did = broker.take().toSorted()
      if (did.join() !== does.toSorted().join()) return `${past.join("\n")}\nThe engine: ${did.join("; ") || "nothing"}`
    }
    return undefined
  }).pipe(Effect.scoped, Effect.provide(layer))
}

/** Waits until the engine has done what it does without a pause. */
const settled = Effect.forEach(Array.from({ length: 20 }), () => Effect.yieldNow, { discard: true })

/** How the handler ends. A message that may not be retried is dead-lettered by an ordinary failure. */
const endOf = (verdict: string, isLast: boolean): Effect.Effect<void, unknown> => {
  if (verdict === "Ack") return Effect.void
  if (verdict === "Drop") return Effect.fail(new Failure.DropError("worthless"))
  if (verdict === "Bury") return Effect.fail(isLast ? new Error("again") : new Failure.PermanentError("never"))
  const retryAfter = verdict === "Later" ? later / 1000 : 0
  return Effect.fail(new Failure.RetryLaterError({ message: "again", retryAfter }))
}

const faults: Record<string, Scripted.Fault | undefined> = {
  Ok: undefined,
  Gone: { fate: "lost" },
  Ours: { fate: "transient" },
  Unknown: { fate: "unknown" },
  Refuse: { fate: "rejected" },
  RefuseAll: { fate: "rejected", smaller: false }
}

/** The events of both engines, and `own` ones. The copies are the broker's, by their names. */
const happening =
  (
    broker: Scripted,
    copies: Map<string, Copy>,
    now: () => number,
    own: (kind: string, name: string, more: string) => void
  ): Happen =>
  (act) => {
    const [kind = "", name = "", more = ""] = act.split(" ")
    if (kind === "Cut") return broker.reconnect()
    if (kind in faults) return broker.answer(name, faults[kind])
    if (kind !== "Deliver") return own(kind, name, more)
    const copy = copies.get(name)!
    copy.deliveries++
    const { metadata } = copy
    broker.deliver({
      body: new TextEncoder().encode("0"),
      headers: { copy: name },
      attempts: metadata.attempts + copy.deliveries,
      metadata: { ...metadata, notBefore: more === "early" ? now() + later : 0 },
      receipt: name
    })
  }

/** A copy in the broker. */
interface Copy {
  readonly metadata: Metadata.Metadata
  deliveries: number
}

const origin = Metadata.make("m", 0)

/** The copy that an adapter would make for the settlement. */
const metadataOf = (
  { delivery, settlement }: NonNullable<ReturnType<Scripted["call"]>>,
  now: number
): Metadata.Metadata => {
  if (settlement._tag === "Retry") return Outgoing.retry(delivery, settlement, "q", now).metadata
  return settlement._tag === "Release" ? Outgoing.hop(delivery, settlement, "q", now).metadata : delivery.metadata
}

const consumer = (trace: Trace, broker: Scripted): Effect.Effect<Happen, unknown, Broker.Broker | Scope.Scope> =>
  Effect.gen(function* () {
    const clock = yield* TestClock.testClockWith(Effect.succeed)
    const now = () => clock.currentTimeMillisUnsafe()
    const runs = new Map<string, { readonly isLast: boolean; readonly end: Deferred.Deferred<void, unknown> }>()
    const retry = RetryPolicy.make({ maxRetries: 1 })
    yield* Consumer.start("q", { retry, drainTimeout: 0, handlerTimeout: "unlimited" }, ({ attempts, headers }) => {
      const end = Deferred.makeUnsafe<void, unknown>()
      const isLast = attempts >= retry.maxAttempts
      runs.set(headers["copy"]!, { isLast, end })
      broker.note(`${headers["copy"]} runs${isLast ? " for the last time" : ""}`)
      return Deferred.await(end)
    })
    const copies = new Map<string, Copy>(trace.copies.map((name) => [name, { metadata: origin, deliveries: 0 }]))
    return happening(broker, copies, now, (kind, name, more) => {
      const call = broker.call(name)
      if (kind === "End") {
        const { end, isLast } = runs.get(name)!
        Deferred.doneUnsafe(end, endOf(more, isLast))
      }
      if (kind === "Store") copies.set(more, { metadata: metadataOf(call!, now()), deliveries: 0 })
      // The broker does not count a released message.
      if (kind === "Settle" && call!.settlement._tag === "Release") copies.get(name)!.deliveries--
    })
  })
