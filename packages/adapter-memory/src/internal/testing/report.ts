/** Describes events and unfinished messages in the error of a failed assertion. */
import { Delay, type Delivery } from "@requeue/core/port"
import type { Snapshot } from "../../Control.ts"
import type { Happening } from "./tools.ts"

/** Returns a clause for each message that a consumer has or will get. */
export const left = (queues: ReadonlyMap<string, Snapshot>): ReadonlyArray<string> =>
  [...queues].flatMap(([queue, { consumers, delayed, inFlight, ready }]) => {
    const clause = ({ attempts, metadata }: Delivery.Delivery, state: string) =>
      `a message of ${queue} ${state} (attempt ${attempts}, id ${metadata.id})`
    // Without a consumer, messages stay in their queue.
    if (consumers === 0) return []
    return [
      ...inFlight.map((delivery) => clause(delivery, "is in flight")),
      ...ready.map((delivery) => clause(delivery, "waits for its consumer")),
      ...delayed.map(({ delivery, dueIn }) => clause(delivery, `is delayed for another ${Delay.format(dueIn)}`))
    ]
  })

/** Returns the clause of an event. */
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

/** The most clauses in one error. */
const limit = 10

/** Returns the message of a failed assertion: a sentence for one clause, a list for more. */
export const sentence = (expected: string, clauses: ReadonlyArray<string>): string => {
  if (clauses.length === 1) return `expected ${expected}, but ${clauses[0]}`
  const more = clauses.length > limit ? [`- and ${clauses.length - limit} more`] : []
  return [`expected ${expected}, but`, ...clauses.slice(0, limit).map((clause) => `- ${clause}`), ...more].join("\n")
}
