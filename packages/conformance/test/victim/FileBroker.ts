/**
 * A broker with leases in a file that many processes share: small, correct, and written after the adapter's guide alone.
 * The suite's own tests break it below the port, one line at a time, and see whether a case finds that.
 */
import { Broker, BrokerError, type Capabilities, Connection, Delay, type Outgoing } from "@requeue/core/port"
import { Browser } from "@requeue/kit"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { randomUUID } from "node:crypto"
import * as Driver from "./driver.ts"
import { lease, pollInterval, type Process, subscribe } from "./subscription.ts"

const capabilities: Capabilities.Capabilities = {
  broker: "file",
  retryDelay: { native: Delay.max, beyond: undefined },
  sendDelay: { native: Delay.max, beyond: undefined },
  delayResolution: pollInterval,
  durableDelays: true,
  durableMessages: true,
  uncountedRelease: true,
  headers: true,
  historyOnRetry: true,
  maxBodySize: 1024 * 1024,
  connectionBound: false,
  lease: { duration: lease, max: Number.POSITIVE_INFINITY },
  ordered: true,
  settleBatch: 1,
  settleWait: 0,
  counts: { ready: true, inFlight: true, delayed: true },
  exactCounts: true,
  uncountedBrowse: false
}

const refusalOf = ({ body, queue }: Outgoing.Outgoing): BrokerError.BrokerError | undefined => {
  return body.length <= capabilities.maxBodySize
    ? undefined
    : new BrokerError.BrokerError({
        broker: "file",
        operation: "publish",
        queue,
        reason: "BodyTooLarge",
        detail: `the body has ${body.length} bytes, the limit is ${capabilities.maxBodySize}`
      })
}

/** The broker as one process has it, and its driver. */
export interface Opened {
  readonly broker: Broker.Service
  readonly driver: Driver.Driver
}

/** Opens the file at this path for one process, until the scope closes. `isOn`: whether its machine still runs. */
export const make = (path: string, isOn: () => boolean): Effect.Effect<Opened, never, Scope.Scope> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const now = () => clock.currentTimeMillisUnsafe()
    const driver = yield* Driver.make(path, isOn)
    const connection = Connection.track("up", now)
    const declare = (queues: Iterable<string>) =>
      driver.call("publish", (file) => [...queues].forEach((queue) => file.declare(queue)))
    const publish = (messages: ReadonlyArray<Outgoing.Outgoing>) =>
      Effect.suspend(() => {
        const refused = messages.map(refusalOf).find((error) => error !== undefined)
        if (refused !== undefined) return Effect.fail(refused)
        return driver.call("publish", (file) => {
          for (const message of messages) {
            file.declare(message.queue)
            file.publish(message, now())
          }
        })
      })
    const process: Process = {
      driver,
      name: randomUUID(),
      now,
      publish,
      declare,
      copied: new Set(),
      browsed: (hasSucceeded) => connection.set(hasSucceeded ? "up" : "down")
    }
    const broker: Broker.Service = {
      capabilities,
      connection: connection.current,
      publish,
      subscribe: (options) => subscribe(options, process),
      admin: {
        browse: (options) =>
          Browser.overSubscription({ capabilities, subscribe: (own) => subscribe(own, process) }, options),
        counts: (queue) => driver.call("receive", (file) => file.count(queue, now())),
        purge: (queue) => driver.call("receive", (file) => file.purge(queue, now()))
      }
    }
    return { broker, driver }
  })
