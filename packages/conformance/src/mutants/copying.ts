/** Brokers that store dead letters wrongly. */
import { Outgoing, Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { decorate } from "../internal/decorate.ts"
import type { Mutant } from "../Mutant.ts"

/** Changes every dead letter. */
const copies = (name: string, kills: string, change: (copy: Outgoing.Outgoing) => Outgoing.Outgoing): Mutant => ({
  name,
  kills,
  broker: (broker) =>
    decorate(broker, {
      settle: ({ delivery, settlement }, { queue }) => {
        if (settlement._tag !== "DeadLetter") return undefined
        const copy = Outgoing.deadLetter(delivery, settlement, queue, delivery.metadata.firstPublished)
        return Effect.as(Effect.orDie(broker.publish([change(copy)])), [])
      }
    })
})

export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "makes the queue of a message that may make none",
    kills: "a message that may make no queue goes to none that is missing",
    broker: (broker) =>
      decorate(broker, {
        publish: (messages, publish) => publish(messages.map((message) => ({ ...message, create: true })))
      })
  },
  {
    name: "settles a dead letter before its copy is stored",
    kills: "when a dead-lettering is reported, the dead letter is in its queue",
    broker: (broker, fork) =>
      decorate(broker, {
        settle: ({ delivery, settlement }, { queue }) => {
          if (settlement._tag !== "DeadLetter") return undefined
          const copy = Outgoing.deadLetter(delivery, settlement, queue, delivery.metadata.firstPublished)
          fork(Effect.delay(broker.publish([copy]), 100))
          return { delivery, settlement: Settlement.Ack }
        }
      })
  },
  copies("dead letters lose their headers", "a dead letter keeps its body's bytes and its headers", (copy) => ({
    ...copy,
    headers: {}
  })),
  copies(
    "does not see that a dead letter was moved back",
    "a dead letter that another tool moved back to its queue is redriven, and counted as such",
    (copy) => ({ ...copy, metadata: { ...copy.metadata, redrives: 0 } })
  ),
  copies(
    "does not say which redrive a dead letter comes back from",
    "a letter that comes back is recognised through its retries, and the same redrive continues without it",
    (copy) => ({ ...copy, metadata: { ...copy.metadata, operation: undefined } })
  ),
  copies(
    "does not say what a smaller copy lacks",
    "a dead letter that is accepted only without history records that, and keeps its body and headers",
    (copy) => ({ ...copy, metadata: { ...copy.metadata, truncation: undefined } })
  ),
  copies(
    "cuts the body out of a smaller copy",
    "a dead letter that is accepted only without error records that, and keeps its body and headers",
    (copy) => ({ ...copy, body: new Uint8Array(0) })
  )
]
