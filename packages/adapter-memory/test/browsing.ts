/** A broker whose browsers are others. */
import { Broker, BrokerError } from "@requeue/core"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"

/** Changes every browser of a broker that is asked for this queue. */
export const browsing =
  (change: (browser: Broker.Browser) => Partial<Broker.Browser>, name = "q.dlq") =>
  (broker: Broker.Service): Broker.Service => ({
    ...broker,
    admin: {
      ...broker.admin,
      browse: (options) =>
        Effect.map(broker.admin.browse(options), (browser) =>
          options.queue === name ? { ...browser, ...change(browser) } : browser
        )
    }
  })

const leaseLost = (queue: string) =>
  new BrokerError.BrokerError({
    broker: "memory",
    operation: "browse",
    queue,
    reason: "LeaseLost",
    detail: "for the test"
  })

/**
 * Every browser of this queue holds messages for so many milliseconds at most. Then all are in the queue again, and the browser
 * opens it anew.
 */
export const leasing =
  (millis: number, name = "q.dlq") =>
  (broker: Broker.Service): Broker.Service => ({
    ...broker,
    admin: {
      ...broker.admin,
      browse: (options) =>
        options.queue === name ? openLeased(broker.admin.browse(options), name, millis) : broker.admin.browse(options)
    }
  })

const openLeased = (open: ReturnType<Broker.Admin["browse"]>, queue: string, millis: number) =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const clock = yield* Clock.Clock
    const opening = Effect.gen(function* () {
      const own = yield* Scope.fork(scope)
      const browser = yield* Scope.provide(open, own)
      return { browser, own, end: clock.currentTimeMillisUnsafe() + millis }
    })
    let current: Effect.Success<typeof opening> | undefined = yield* opening
    const { browsed, identify } = current.browser
    /** Ends the lease where its time is over; answers whether it has ended. */
    const expire = Effect.gen(function* () {
      if (current === undefined) return true
      if (clock.currentTimeMillisUnsafe() < current.end) return false
      yield* Scope.close(current.own, Exit.void)
      current = undefined
      return true
    })
    let isTold = true
    return {
      browsed,
      identify,
      next: (count) =>
        Effect.gen(function* () {
          const hasExpired = yield* expire
          if (hasExpired && isTold) {
            isTold = false
            return yield* leaseLost(queue)
          }
          isTold = true
          current ??= yield* opening
          return yield* current.browser.next(count)
        }),
      remove: (deliveries) =>
        Effect.gen(function* () {
          yield* expire
          if (current !== undefined) return yield* current.browser.remove(deliveries)
          return deliveries.map((delivery) => ({ delivery, error: leaseLost(queue), fate: "lost" as const }))
        })
    } satisfies Broker.Browser
  })
