/** A broker that records the events of every message. */
import type { Broker, BrokerError, Metadata, Outgoing, Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Transaction from "../transaction.ts"
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

  const keep = (messages: ReadonlyArray<Outgoing.Outgoing>, at: number): void =>
    void sent.push(...messages.map((message) => ({ ...message, at })))

  const publish: Broker.Service["publish"] = (messages) =>
    Effect.suspend(() => {
      const at = now()
      const entries = sendings(messages, at)
      note(entries)
      return broker.publish(messages).pipe(
        Effect.tap(() => Effect.sync(() => keep(messages, at))),
        Effect.tapError(() => Effect.sync(() => strike(entries)))
      )
    })

  const publishWithin: Broker.Service["publishWithin"] =
    broker.publishWithin &&
    ((transaction, messages) =>
      onCommit(broker.publishWithin!(transaction, messages), transaction, () => {
        note(sendings(messages, now()))
        keep(messages, now())
      }))

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
      ackWithin:
        inner.ackWithin &&
        ((transaction, deliveries) =>
          onCommit(inner.ackWithin!(transaction, deliveries), transaction, () =>
            note(
              deliveries.map(({ attempts, metadata }) => {
                return { _tag: "Succeeded", at: now(), queue, id: metadata.id, attempts, inTransaction: true }
              })
            )
          )),
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

  return { broker: { ...broker, publish, publishWithin, subscribe }, happenings, sent }
}

const sendings = (messages: ReadonlyArray<Outgoing.Outgoing>, at: number): ReadonlyArray<Happening> =>
  messages.map(({ delay, metadata, queue }) => ({ _tag: "Sent", at, queue, id: metadata.id, delay }))

/** Calls back at the commit of a transaction in which `call` has succeeded. */
const onCommit = <A>(call: Effect.Effect<A, BrokerError.BrokerError>, transaction: unknown, record: () => void) =>
  Effect.tap(call, () =>
    Effect.sync(() => {
      if (transaction instanceof Transaction.Changes) transaction.onCommit(record)
    })
  )

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
