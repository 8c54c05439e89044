/** Creates topics and channels before the first publish to them. */
import type { BrokerError } from "@requeue/core/port"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { Settings } from "../../NsqOptions.ts"
import type { Node } from "../connect/nodes.ts"
import { whenClosed } from "../connect/publishing.ts"
import type { Driver } from "../driver.ts"
import * as Http from "../http.ts"
import type { Queue } from "../names.ts"
import * as NsqdHttp from "../nsqdHttp.ts"

/**
 * Creates a queue's topic and channel on an nsqd, once for all simultaneous callers; never with `create: false` or
 * `http: false`. All waiting callers receive a failure; the next call tries again.
 *
 * A retry or dead-letter topic may be deleted later. The next publish makes nsqd recreate it without a channel, where
 * its messages wait. So the channel is created again some seconds after a publish.
 */
export interface Declare {
  (node: Node, queue: Queue): Effect.Effect<void, BrokerError.BrokerError>
  /** Whether nothing remains to be created. */
  readonly isDone: (node: Node, queue: Queue) => boolean
}

/** Maximum number of simultaneous requests. */
const concurrency = 16

/** Time from a publish until the channel of its topic is created again. */
const renewal = Duration.seconds(5)

export const make = (settings: Settings, driver: Driver): Effect.Effect<Declare, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { create } = settings
    const requests = yield* Semaphore.make(concurrency)
    const scope = yield* Effect.scope
    const declared = new Set<string>()
    const making = new Map<string, Deferred.Deferred<void, BrokerError.BrokerError>>()
    const renewing = new Set<string>()
    const keyOf = ({ name }: Node, { channel, topic }: Queue): string => `${name} ${topic} ${channel}`
    const isDone: Declare["isDone"] = (node, queue) =>
      node.address.http === undefined || !create || declared.has(keyOf(node, queue))

    /** Runs in the broker's scope: the first caller may be interrupted while others wait for the same result. */
    const begin = (key: string, made: Effect.Effect<void, BrokerError.BrokerError>) =>
      Effect.uninterruptible(
        Effect.suspend(() => {
          const answer = Deferred.makeUnsafe<void, BrokerError.BrokerError>()
          making.set(key, answer)
          return Effect.map(Effect.forkIn(made, scope), (fiber) => {
            fiber.addObserver((exit) => {
              making.delete(key)
              if (Exit.isSuccess(exit)) declared.add(key)
              Deferred.doneUnsafe(answer, Exit.hasInterrupts(exit) ? Exit.fail(whenClosed) : exit)
            })
            return answer
          })
        })
      )

    const renew = (key: string, made: Effect.Effect<void, BrokerError.BrokerError>): Effect.Effect<unknown> => {
      if (renewing.has(key)) return Effect.void
      renewing.add(key)
      const end = Effect.sync(() => renewing.delete(key))
      return Effect.forkIn(Effect.sleep(renewal).pipe(Effect.andThen(end), Effect.andThen(Effect.ignore(made))), scope)
    }

    const declare = (node: Node, queue: Queue): Effect.Effect<void, BrokerError.BrokerError> =>
      Effect.suspend(() => {
        const { http } = node.address
        if (http === undefined || !create) return Effect.void
        const key = keyOf(node, queue)
        if (declared.has(key) && !queue.isOwn) return Effect.void
        const made = Effect.mapError(
          requests.withPermits(1)(NsqdHttp.create(http, queue, { driver, settings })),
          (error) => Http.unreachable(http, error)
        )
        if (declared.has(key)) return Effect.asVoid(renew(key, made))
        const answer = making.get(key)
        return answer === undefined ? Effect.flatMap(begin(key, made), Deferred.await) : Deferred.await(answer)
      })
    return Object.assign(declare, { isDone })
  })
