/** Checks that queues exist. The error for a missing queue suggests the most similar name. */
import { Broker, BrokerError } from "@requeue/core"
import { OptionNames } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"

/** The largest number of names to list if no name is similar. */
const most = 10

/**
 * Returns the advice for a missing queue. `intro` introduces the names, which the broker lists, or which are configured.
 */
const remedy = (name: string, names: ReadonlyArray<string>, intro: string): string => {
  const meant = OptionNames.nearest(name, names)
  if (meant !== undefined) return `Did you mean ${meant}?`
  const others = names.length > most ? ` and ${names.length - most} others` : ""
  return names.length === 0
    ? "Check the name of the queue on the broker"
    : `${intro} ${names.slice(0, most).join(", ")}${others}`
}

/** The basis of the advice on a missing queue. */
export interface Advice {
  /** The names of queues in the configuration. */
  readonly known: ReadonlyArray<string>
  /** Whether the missing queues are dead-letter queues. Then only dead-letter queues are suggested. Default: false. */
  readonly isDead?: boolean
  /** A sentence to add to the advice. Default: none. */
  readonly besides?: string
}

/** Whether a name that no configuration has looks like that of a dead-letter queue. */
const isDeadName = (name: string): boolean => /dlq|dead|parked/i.test(name)

/**
 * Fails with `QueueMissing` if the broker reports that one of the queues does not exist. It creates no queue. The error
 * suggests the most similar name that the broker lists. If the broker lists no names, it suggests a name of the
 * configuration.
 */
export const check = Effect.fnUntraced(function* (
  queues: ReadonlyArray<string>,
  { besides, isDead = false, known }: Advice
) {
  const { admin, capabilities } = yield* Broker.Broker
  for (const queue of queues) {
    const { isMissing = false } = yield* admin.counts(queue)
    if (!isMissing) continue
    const listed = admin.names === undefined ? undefined : Option.getOrUndefined(yield* Effect.option(admin.names))
    // Never suggest a configured name that the broker does not have.
    const names = [...known.filter((name) => listed?.includes(name) ?? true), ...(listed ?? [])]
    const advice = known.includes(queue)
      ? "The queue is configured, but not created yet: run requeue create"
      : remedy(
          queue,
          [...new Set(names)].filter((name) => name !== queue && (!isDead || known.includes(name) || isDeadName(name))),
          listed === undefined ? "Configured queues:" : "Existing queues:"
        )
    return yield* new BrokerError.BrokerError({
      broker: capabilities.broker,
      operation: "find",
      queue,
      reason: "QueueMissing",
      detail: "there is no such queue",
      remedy: besides === undefined ? advice : `${advice}${advice.endsWith("?") ? "" : "."} ${besides}`
    })
  }
})
