/** Brokers whose browsers hold too little, remove too much, or mislead. */
import { type Broker } from "@requeue/core"
import { Outgoing } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type { Mutant } from "../Mutant.ts"

type Browse = Broker.Admin["browse"]

/** Changes how a broker opens browsers. */
const opening = (
  name: string,
  kills: string,
  change: (browse: Browse, options: Broker.BrowseOptions, broker: Broker.Service) => ReturnType<Browse>
): Mutant => ({
  name,
  kills,
  broker: (broker) => ({
    ...broker,
    admin: { ...broker.admin, browse: (options) => change(broker.admin.browse, options, broker) }
  })
})

/** Changes browsers. */
const browsing = (
  name: string,
  kills: string,
  change: (browser: Broker.Browser, options: Broker.BrowseOptions) => Partial<Broker.Browser>
): Mutant =>
  opening(name, kills, (browse, options) =>
    Effect.map(browse(options), (browser) => ({ ...browser, ...change(browser, options) }))
  )

/** Sees each page of a browser. */
const seeing =
  ({ next }: Broker.Browser, see: (page: ReadonlyArray<Broker.BrowsedMessage>) => void): Broker.Browser["next"] =>
  (count) =>
    Effect.tap(next(count), (page) => Effect.sync(() => see(page)))

/** Changes the pages of browsers. */
const paging = (
  name: string,
  kills: string,
  change: (page: ReadonlyArray<Broker.BrowsedMessage>) => ReadonlyArray<Broker.BrowsedMessage>
): Mutant => browsing(name, kills, ({ next }) => ({ next: (count) => Effect.map(next(count), change) }))

const once = "a browser shows each waiting message once, the oldest first where the broker has an order"
const returns = "what a browser has shown is in its queue again when its scope has closed"
const inPlace = "what a browser returns is in its old place, and has used up no attempt"
const holds = "a message that a browser holds goes to no consumer"
const removes = "what a browser removes, page by page, is gone, and all the rest comes"
const limits =
  "a browser holds no more than its limit, reports that there is more, and continues when it has removed some"
const names = "a browser names each message, and a second browser names it the same"
const breaks = "a browser whose connection breaks fails, then shows again what it has not removed, by the same names"

let lastName = 0

export const mutants: ReadonlyArray<Mutant> = [
  browsing("shows the last message of a page again", once, ({ next }) => {
    let last: ReadonlyArray<Broker.BrowsedMessage> = []
    return {
      next: (count) =>
        Effect.map(next(count - last.length), (page) => {
          const shown = [...last, ...page]
          last = page.slice(-1)
          return shown
        })
    }
  }),
  paging("shows the youngest of a page first", once, (page) => page.toReversed()),
  paging("keeps the first message of each page to itself", once, (page) => page.slice(1)),
  opening("takes away what it has shown", returns, (browse, options, broker) =>
    Effect.andThen(
      Effect.addFinalizer(() => Effect.ignore(broker.admin.purge(options.queue))),
      browse(options)
    )
  ),
  opening("never returns what it has shown", returns, (browse, options) =>
    Scope.provide(browse(options), Scope.makeUnsafe())
  ),
  opening("returns messages behind all others", inPlace, (browse, options, broker) =>
    Effect.gen(function* () {
      const browser = yield* browse(options)
      const shown: Array<Broker.BrowsedMessage> = []
      yield* Effect.addFinalizer(() =>
        Effect.andThen(
          browser.remove(shown.map(({ delivery }) => delivery)),
          Effect.ignore(
            broker.publish(
              shown.map(({ delivery: { body, headers, metadata } }) => ({
                queue: options.queue,
                body,
                headers,
                metadata,
                delay: 0
              }))
            )
          )
        )
      )
      return { ...browser, next: seeing(browser, (page) => shown.push(...page)) }
    })
  ),
  paging("counts what its browsers show as an attempt", inPlace, (page) =>
    page.map(({ delivery, due: at }) => ({ delivery: { ...delivery, attempts: delivery.attempts + 1 }, due: at }))
  ),
  opening("shows without holding", holds, (browse, options) =>
    Effect.succeed({
      next: (count) => Effect.scoped(Effect.flatMap(browse(options), ({ next }) => next(count))),
      remove: () => Effect.succeed([]),
      identify: () => undefined,
      browsed: () => ({ isWhole: true, hidden: 0 })
    })
  ),
  browsing("says that it has removed what it has kept", removes, () => ({ remove: () => Effect.succeed([]) })),
  browsing("removes the rest of the page as well", removes, (browser) => {
    const shown: Array<Broker.BrowsedMessage> = []
    return {
      next: seeing(browser, (page) => shown.push(...page)),
      remove: () => browser.remove(shown.map(({ delivery }) => delivery))
    }
  }),
  browsing("does not make room for what it removes", removes, (browser, options) => {
    let left = options.limit
    const next = seeing(browser, (page) => {
      left -= page.length
    })
    return { next: (count) => next(Math.min(count, left)) }
  }),
  opening(
    "returns everything when it is told to remove a message twice",
    "a removal that is requested twice is reported as lost, or done, and affects no other",
    (browse, options) =>
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const browser = yield* Scope.provide(browse(options), scope)
        const removed = new Set<unknown>()
        return {
          ...browser,
          remove: (deliveries) =>
            Effect.gen(function* () {
              if (deliveries.some((each) => removed.has(each))) yield* Scope.close(scope, Exit.void)
              for (const each of deliveries) removed.add(each)
              return yield* browser.remove(deliveries)
            })
        }
      })
  ),
  browsing(
    "says that what it no longer holds is removed",
    "a browser whose scope has closed removes what it says, and reports messages that it no longer holds as lost",
    ({ remove }) => ({ remove: (deliveries) => Effect.as(remove(deliveries), []) })
  ),
  browsing("ends with its first empty page", "an empty page is not the end: what comes later is shown", (browser) => {
    let isOver = false
    const next = seeing(browser, (page) => {
      isOver = page.length === 0
    })
    return { next: (count) => (isOver ? Effect.succeed([]) : next(count)) }
  }),
  opening("has no limit", limits, (browse, options) => browse({ ...options, limit: 10_000 })),
  browsing("says at its limit that it has shown all", limits, () => ({
    browsed: () => ({ isWhole: true, hidden: 0 })
  })),
  browsing("names each message anew", names, () => ({ identify: () => String(++lastName) })),
  browsing("names no message", names, () => ({ identify: () => undefined })),
  browsing("names all messages the same", names, () => ({ identify: () => "message" })),
  browsing(
    "names all letters the same",
    "letters of a foreign producer that have one id are each redriven, also when they were browsed before",
    () => ({ identify: () => "letter" })
  ),
  browsing("says nothing of a lost connection", breaks, ({ next }) => ({
    next: (count) => Effect.orElseSucceed(next(count), () => [])
  })),
  browsing("shows nothing any more after a lost connection", breaks, ({ next }) => {
    let isLost = false
    const lose = Effect.sync(() => void (isLost = true))
    return { next: (count) => (isLost ? Effect.succeed([]) : Effect.tapError(next(count), () => lose)) }
  }),
  opening(
    "takes away what comes when it is interrupted",
    "a browser that is interrupted while it asks for more returns all",
    (browse, options, { admin }) =>
      Effect.map(browse(options), (browser) => ({
        ...browser,
        next: (count) =>
          Effect.onInterrupt(Effect.andThen(Effect.sleep(1), browser.next(count)), () =>
            Effect.ignore(admin.purge(options.queue))
          )
      }))
  ),
  opening(
    "makes the queue that it browses",
    "a browser shows nothing of a queue that is missing, and makes none",
    (browse, options, { publish }) =>
      Effect.andThen(
        publish([
          Outgoing.make({ queue: options.queue, id: "m", body: new Uint8Array(), headers: {}, delay: 3_600_000 }, 0)
        ]),
        browse(options)
      )
  ),
  browsing(
    "says that it has removed what it has returned",
    "a browser has returned its page of delayed messages when it shows the next",
    ({ remove }) => ({ remove: (deliveries) => Effect.as(remove(deliveries), []) })
  ),
  opening(
    "shows no delayed message where it cannot",
    "where the broker cannot show delayed messages, to browse them is Unsupported",
    (browse, options) => browse({ ...options, from: "ready" })
  )
]
