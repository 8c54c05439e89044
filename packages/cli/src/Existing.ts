/** Queues that must be there: one that the broker does not have is refused, with the nearest names. */
import { Broker, BrokerError } from "@requeue/core"
import { OptionNames } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"

/** The most names that are listed where none is near. */
const most = 10

/** `whose` are the names: those that the broker lists, or those that are configured, where nobody knows whether it has them. */
const remedy = (name: string, names: ReadonlyArray<string>, whose: string): string => {
  const meant = OptionNames.nearest(name, names)
  if (meant !== undefined) return `Did you mean ${meant}?`
  const others = names.length > most ? ` and ${names.length - most} others` : ""
  return names.length === 0
    ? "Write its name as the broker has it"
    : `${whose} ${names.slice(0, most).join(", ")}${others}`
}

/**
 * Fails where the broker says that it does not have one of the queues; it makes none. The nearest of the names that the
 * broker lists is the remedy, or of those that are known where it lists none, and `besides` a sentence of its own.
 */
export const check = Effect.fnUntraced(function* (
  queues: ReadonlyArray<string>,
  known: ReadonlyArray<string>,
  besides?: string
) {
  const { admin, capabilities } = yield* Broker.Broker
  for (const queue of queues) {
    const { isMissing = false } = yield* admin.counts(queue)
    if (!isMissing) continue
    const listed = admin.names === undefined ? undefined : Option.getOrUndefined(yield* Effect.option(admin.names))
    // A name that the config file has, and the broker has not, is no advice.
    const names = [...known.filter((name) => listed?.includes(name) ?? true), ...(listed ?? [])]
    const advice = known.includes(queue)
      ? "It is configured and does not exist yet: run requeue create"
      : remedy(
          queue,
          [...new Set(names)].filter((name) => name !== queue),
          listed === undefined ? "Configured are" : "There are"
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
