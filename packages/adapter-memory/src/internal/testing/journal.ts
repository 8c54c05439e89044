/** A broker that records the events of every message. */
import type { Broker, Metadata, Outgoing, Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Happening } from "./tools.ts"

interface Sent extends Outgoing.Outgoing {
  /** Milliseconds since the test began. */
  readonly at: number
}

/** The broker and its records. */
export interface Journal {
  readonly broker: Broker.Service
  readonly happenings: ReadonlyArray<Happening>
  /** The messages that were published, redrives included, in order. */
  readonly sent: ReadonlyArray<Sent>
}

/** Wraps a broker. `now` is in milliseconds since the test began. */
export const make = (broker: Broker.Service, now: () => number): Journal => {
  const happenings: Array<Happening> = []
  const sent: Array<Sent> = []

  // Recorded before the call, because a delivery may follow at once; removed if the call fails.
  const note = (entries: Iterable<Happening>): void => void happenings.push(...entries)
  const strike = (entries: Iterable<Happening | undefined>): void => {
    for (const entry of entries) if (entry !== undefined) happenings.splice(happenings.lastIndexOf(entry), 1)
  }

  const publish: Broker.Service["publish"] = (messages) =>
    Effect.suspend(() => {
      const at = now()
      const entries = messages.map(({ delay, metadata, queue }): Happening => {
        return { _tag: "Sent", at, queue, id: metadata.id, delay }
      })
      note(entries)
      return broker.publish(messages).pipe(
        Effect.tap(() => Effect.sync(() => sent.push(...messages.map((message) => ({ ...message, at }))))),
        Effect.tapError(() => Effect.sync(() => strike(entries)))
      )
    })

  const subscribe: Broker.Service["subscribe"] = (options) => {
    const { queue } = options
    const subscription = broker.subscribe({
      ...options,
      onDelivery: (delivery) => {
        const { attempts, metadata } = delivery
        note([{ _tag: "Received", at: now(), queue, id: metadata.id, attempts }])
        options.onDelivery(delivery)
      }
    })
    return Effect.map(subscription, (inner) => ({
      ...inner,
      settle: (requests) =>
        Effect.suspend(() => {
          const entries = new Map(
            requests.map(({ delivery, settlement }) => {
              const { attempts, metadata } = delivery
              return [delivery, { at: now(), queue, id: metadata.id, attempts, ...end(settlement) }]
            })
          )
          note(entries.values())
          return Effect.tap(inner.settle(requests), (failures) =>
            Effect.sync(() => strike(failures.map(({ delivery }) => entries.get(delivery))))
          )
        })
    }))
  }

  return { broker: { ...broker, publish, subscribe }, happenings, sent }
}

/** Drops the stack trace, which tests could not compare. */
const named = ({ message, name }: Metadata.ErrorSummary) => ({ name, message })

const end = (settlement: Settlement.Settlement) => {
  switch (settlement._tag) {
    case "Ack":
      return { _tag: "Succeeded" } as const
    case "Retry":
      return { ...settlement, _tag: "RetryScheduled" } as const
    case "DeadLetter":
      return {
        _tag: "DeadLettered",
        reason: settlement.reason,
        target: settlement.queue,
        error: named(settlement.error)
      } as const
    case "Drop":
      return { ...settlement, _tag: "Dropped", error: named(settlement.error) } as const
    case "Release":
      return { ...settlement, _tag: "Released" } as const
  }
}
