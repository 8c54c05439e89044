/** Events, and messages that are left, as clauses for the message of a failed assertion. */
import { Delay, type Delivery } from "@requeue/core/port"
import type { Snapshot } from "../../Control.ts"
import type { Happening } from "./tools.ts"

/** A clause for each message that a consumer has, or will get; none when all is done. */
export const left = (queues: ReadonlyMap<string, Snapshot>): ReadonlyArray<string> =>
  [...queues].flatMap(([queue, { consumers, delayed, inFlight, ready }]) => {
    const clause = ({ attempts, metadata }: Delivery.Delivery, state: string) =>
      `a message of ${queue} ${state} (attempt ${attempts}, id ${metadata.id})`
    // Without a consumer, nothing happens to the messages of a queue.
    if (consumers === 0) return []
    return [
      ...inFlight.map((delivery) => clause(delivery, "is with its consumer")),
      ...ready.map((delivery) => clause(delivery, "waits to be taken")),
      ...delayed.map(({ delivery, dueIn }) => clause(delivery, `is delayed for another ${Delay.format(dueIn)}`))
    ]
  })

/** The clause of an event. */
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

/** The most clauses that are shown. */
const limit = 10

/** The message of a failed assertion: a sentence where there is one clause, a list where there are more. */
export const sentence = (expected: string, clauses: ReadonlyArray<string>): string => {
  if (clauses.length === 1) return `expected ${expected}, but ${clauses[0]}`
  const more = clauses.length > limit ? [`- and ${clauses.length - limit} more`] : []
  return [`expected ${expected}, but`, ...clauses.slice(0, limit).map((clause) => `- ${clause}`), ...more].join("\n")
}
