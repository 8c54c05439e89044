/** Looks at dead letters, and leaves them where they are. */
import * as Effect from "effect/Effect"
import type { Delivery } from "../../message/Delivery.ts"
import type { Service } from "../../port/Broker.ts"
import type { BrokerError } from "../../port/BrokerError.ts"
import { type DeadLetter, fromDelivery } from "./deadLetter.ts"
import * as Groups from "./groups.ts"
import type { ListOptions } from "./options.ts"
import * as Sweep from "./sweep.ts"

/** The most letters for which the adapter itself is asked; it answers all of them at once. */
const page = 100

/**
 * Shows up to `limit` letters that the filter means to `visit`, oldest first, and gives them back at the end. Answers how
 * many it looked at, of how many there are.
 */
const through = (
  broker: Service,
  queue: string,
  { filter, limit }: ListOptions,
  visit: (letter: DeadLetter) => void
): Effect.Effect<{ readonly looked: number; readonly total: number | undefined }, BrokerError> =>
  Effect.gen(function* () {
    let looked = 0
    const select = (letter: Delivery): boolean => {
      looked++
      const isMeant = Sweep.matches(letter, filter)
      if (isMeant) visit(fromDelivery(letter))
      return isMeant
    }
    const { error, summary } = yield* Sweep.run(broker, queue, { limit }, { select, copy: "look", onStep: () => {} })
    if (error !== undefined) return yield* error
    return { looked, total: summary.queued }
  })

export const list = (
  broker: Service,
  queue: string,
  { filter, limit = 100 }: ListOptions = {}
): Effect.Effect<ReadonlyArray<DeadLetter>, BrokerError> => {
  if (filter === undefined && limit <= page) {
    return Effect.map(broker.admin.peek(queue, limit), (deliveries) => deliveries.map(fromDelivery))
  }
  return Effect.suspend(() => {
    const letters: Array<DeadLetter> = []
    return Effect.as(
      through(broker, queue, { filter, limit }, (letter) => letters.push(letter)),
      letters
    )
  })
}

export const group = (
  broker: Service,
  queue: string,
  { filter, limit = 1000 }: ListOptions = {}
): Effect.Effect<Groups.Groups, BrokerError> =>
  Effect.suspend(() => {
    const { add, all } = Groups.make()
    return Effect.map(through(broker, queue, { filter, limit }, add), ({ looked, total }) => all(looked, total))
  })
