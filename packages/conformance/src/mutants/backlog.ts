/** Brokers that show operators a wrong backlog. */
import type { Broker } from "@requeue/core"
import * as Effect from "effect/Effect"
import type { Mutant } from "../Mutant.ts"

/** Changes how a broker shows delayed messages. */
const browsing = (
  name: string,
  kills: string,
  change: (browser: Broker.Browser) => Partial<Broker.Browser>
): Mutant => ({
  name,
  kills,
  broker: (broker) => {
    const { browse } = broker.admin
    const changed: Broker.Admin["browse"] = (options) =>
      Effect.map(browse(options), (browser) =>
        options.from === "delayed" ? { ...browser, ...change(browser) } : browser
      )
    return { ...broker, admin: { ...broker.admin, browse: changed } }
  }
})

/** Changes what a broker reports of its backlog. */
const telling = (name: string, kills: string, change: Partial<NonNullable<Told>>): Mutant => ({
  name,
  kills,
  broker: (broker) => {
    const { backlog } = broker.admin
    const changed: Broker.Admin["backlog"] =
      backlog && ((request) => Effect.map(backlog(request), (told) => ({ ...told, ...change })))
    return { ...broker, admin: { ...broker.admin, backlog: changed } }
  }
})

type Told = Effect.Success<ReturnType<NonNullable<Broker.Admin["backlog"]>>>

const listed =
  "delayed messages are listed, the soonest first, and each comes at its time all the same, as its first attempt"
const removes = "delayed messages that a filter selects are removed, and no others"

export const mutants: ReadonlyArray<Mutant> = [
  telling(
    "does not say why it tells no number of consumers",
    "a backlog reports waiting messages, and for each missing number the reason",
    { consumers: undefined, remarks: {} }
  ),
  telling(
    "tells nothing of messages in backoff",
    "a backlog reports a message in backoff: as delayed, or as in flight where the broker hides it",
    { delayed: 0, backoff: [] }
  ),
  browsing("takes away what it shows", listed, ({ next, remove }) => ({
    next: (count) => Effect.tap(next(count), (page) => remove(page.map(({ delivery }) => delivery)))
  })),
  browsing(
    "counts what it shows as an attempt",
    "a message in backoff is listed with its error, and is gone when it is removed",
    ({ next }) => ({
      next: (count) =>
        Effect.map(next(count), (page) =>
          page.map(({ delivery, due }) => ({ delivery: { ...delivery, attempts: delivery.attempts + 1 }, due }))
        )
    })
  ),
  browsing("says that delayed messages are due now", listed, ({ next }) => ({
    next: (count) => Effect.map(next(count), (page) => page.map(({ delivery }) => ({ delivery, due: 0 })))
  })),
  browsing("says that it removed what it has kept", removes, () => ({ remove: () => Effect.succeed([]) })),
  browsing(
    "removes a message's neighbour as well",
    "removals while messages become due lose none that stays, and double none",
    ({ next, remove }) => {
      let shown: ReadonlyArray<Broker.BrowsedMessage> = []
      return {
        next: (count) => Effect.tap(next(count), (page) => Effect.sync(() => (shown = page))),
        remove: (deliveries) => {
          const isMeant = (message: Broker.BrowsedMessage | undefined) =>
            message !== undefined && deliveries.includes(message.delivery)
          const both = shown.filter((message, index) => isMeant(message) || isMeant(shown[index - 1]))
          return remove(both.map(({ delivery }) => delivery))
        }
      }
    }
  )
]
