/** What happened, and what is left to happen, in clauses for the message of a failed assertion. */
import { Delay, type Delivery } from "@requeue/core/adapter-kit"
import type { Snapshot } from "../../Control.ts"
import type { Happening } from "./tools.ts"

/** A clause for each message that a consumer has, or will get; none when all is done. */
export const left = (queues: ReadonlyMap<string, Snapshot>): ReadonlyArray<string> =>
  [...queues].flatMap(([queue, { consumers, delayed, inFlight, ready }]) => {
    const clause = ({ attempts, metadata }: Delivery.Delivery, state: string) =>
      `a message of ${queue} ${state} (attempt ${attempts}, id ${metadata.id})`
    // Nothing comes of what lies in a queue that nobody consumes.
    if (consumers === 0) return []
    return [
      ...inFlight.map((delivery) => clause(delivery, "is with its consumer")),
      ...ready.map((delivery) => clause(delivery, "waits to be taken")),
      ...delayed.map(({ delivery, dueIn }) => clause(delivery, `is delayed for another ${Delay.format(dueIn)}`))
    ]
  })

export const happened = (happening: Happening): string => {
  const attempt = "attempts" in happening ? `attempt ${happening.attempts}, ` : ""
  const { at, id, queue } = happening
  return `a message of ${queue} was ${done(happening)} at ${Delay.format(at)} (${attempt}id ${id})`
}

const done = (happening: Happening): string => {
  switch (happening._tag) {
    case "Sent":
      return happening.delay === 0 ? "sent" : `sent with a delay of ${Delay.format(happening.delay)}`
    case "Received":
      return "delivered"
    case "Succeeded":
      return "acked"
    case "RetryScheduled":
      return `retried with a delay of ${Delay.format(happening.delay)}`
    case "DeadLettered":
      return `dead-lettered to ${happening.target} (${happening.reason})`
    case "Dropped":
      return "dropped"
    case "Released":
      return "released"
  }
}

/** Clauses that are shown; nobody reads more. */
const limit = 10

/** A sentence where there is one clause, a list where there are more. */
export const sentence = (expected: string, clauses: ReadonlyArray<string>): string => {
  if (clauses.length === 1) return `expected ${expected}, but ${clauses[0]}`
  const more = clauses.length > limit ? [`- and ${clauses.length - limit} more`] : []
  return [`expected ${expected}, but`, ...clauses.slice(0, limit).map((clause) => `- ${clause}`), ...more].join("\n")
}
