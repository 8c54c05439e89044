/** Browsers, as the cases about them use them. */
import { type Broker, type BrokerError, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Check from "../Check.ts"
import type { Lab } from "../Lab.ts"
import * as Wait from "../Wait.ts"

/** Opens a browser on the case's queue. */
export const browse = ({ broker, queue }: Lab, options: Partial<Broker.BrowseOptions> = {}) =>
  broker.admin.browse({ queue, retry: RetryPolicy.make(), from: "ready", limit: 1000, ...options })

export const idOf = ({ delivery }: Broker.BrowsedMessage): string => delivery.metadata.id

export const idsOf = (page: ReadonlyArray<Broker.BrowsedMessage>): ReadonlyArray<string> => page.map(idOf)

export const fatesOf = (failures: ReadonlyArray<Broker.SettleFailure>) => failures.map(({ fate }) => fate)

/** The deliveries of these messages. */
export const those = (page: ReadonlyArray<Broker.BrowsedMessage>, ...ids: ReadonlyArray<string>) =>
  page.filter((each) => ids.includes(idOf(each))).map(({ delivery }) => delivery)

/** Whether a browser has lost its messages and starts anew. */
export const isLoss = ({ reason }: BrokerError.BrokerError): boolean =>
  reason === "ConnectionLost" || reason === "LeaseLost"

/** Reads pages until all of these are shown. When a browser has lost its messages and starts anew, this does as well. */
export const showing = ({ next }: Broker.Browser, ids: ReadonlyArray<string>, count: number = ids.length) => {
  let shown: ReadonlyArray<Broker.BrowsedMessage> = []
  const page = Effect.matchEffect(next(count), {
    onSuccess: (some) => {
      Check.isTrue(`${count} messages or fewer`, some.length <= count, some.length)
      shown = [...shown, ...some]
      const found = new Set(idsOf(shown))
      return Effect.succeed(ids.every((id) => found.has(id)) ? shown : undefined)
    },
    onFailure: (error) => {
      shown = []
      return isLoss(error) ? Effect.succeed(undefined) : Effect.fail(error)
    }
  })
  return Wait.found(() => `${ids.join(" ")}; shown: ${idsOf(shown).join(" ")}`, page)
}

/** The messages that a handler has received. */
export const come = ({ runs }: Lab): ReadonlySet<string> => new Set(runs.map(({ id }) => id))

/** Starts a consumer, waits for these messages, and checks that no others arrive. */
export const onlyCome = (lab: Lab, ...ids: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    yield* lab.start()
    yield* lab.until(`${ids.join(" ")} come`, () => ids.every((id) => come(lab).has(id)))
    yield* lab.quiet()
    Check.equal("these come", [...come(lab)].toSorted(), ids.toSorted())
  })

/** More messages than a page has. */
export const many = Array.from({ length: 250 }, (_, n) => String(n))
