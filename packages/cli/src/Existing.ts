/** Checks that queues exist. The error for one that does not suggests the nearest name. */
import { Broker, BrokerError } from "@requeue/core"
import { OptionNames } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"

/** The most names to list if none is similar. */
const most = 10

/** `intro` introduces the names: those that the broker lists, or else the configured ones. */
const remedy = (name: string, names: ReadonlyArray<string>, intro: string): string => {
  const meant = OptionNames.nearest(name, names)
  if (meant !== undefined) return `Did you mean ${meant}?`
  const others = names.length > most ? ` and ${names.length - most} others` : ""
  return names.length === 0 ? "Check its name on the broker" : `${intro} ${names.slice(0, most).join(", ")}${others}`
}

/** How to advise on a queue that is missing. */
export interface Advice {
  /** Names of the configuration. */
  readonly known: ReadonlyArray<string>
  /** Whether the queues are dead-letter queues: then no other queue is suggested. Default: false. */
  readonly isDead?: boolean
  /** A sentence to add. Default: none. */
  readonly besides?: string
}

/** Whether the name of a queue, which no configuration has, is that of a dead-letter queue. */
const isDeadName = (name: string): boolean => /dlq|dead|parked/i.test(name)

/**
 * Fails with `QueueMissing` if the broker reports that it does not have one of the queues. It creates no queue. The error
 * suggests the nearest of the names that the broker lists; if it lists none, of the known names.
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
      ? "It is configured and does not exist yet: run requeue create"
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
