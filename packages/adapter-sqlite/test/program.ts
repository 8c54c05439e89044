/** Small programs below the core, in virtual time. */
import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { VirtualTime } from "@requeue/conformance"
import { type Broker, type Delivery, Outgoing, RetryPolicy, type Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { SqliteOptions } from "../src/index.ts"
import { open } from "../src/internal/broker.ts"
import type { Driver } from "../src/internal/client.ts"

/** A path in a new folder, which lasts as long as the scope. */
export const newPath = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => fs.mkdtempSync(join(tmpdir(), "requeue-sqlite-"))),
    (path) => Effect.sync(() => fs.rmSync(path, { recursive: true }))
  ),
  (folder) => join(folder, "queue.db")
)

export const openAt = (path: string, driver: Driver, query = "") =>
  Effect.flatMap(Effect.fromResult(SqliteOptions.decode({ url: `sqlite:${path}${query}` })), (settings) =>
    open(settings, driver)
  )

/** Runs a program in virtual time, and fails with its error. */
export const run = <A, E>(program: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  Effect.runPromise(VirtualTime.run(Effect.scoped(program)))

export const outgoing = (queue: string, id: string, body = new Uint8Array(3), delay = 0) =>
  Outgoing.make({ queue, id, body, headers: {}, delay }, VirtualTime.epoch)

export const send = (
  { publish }: Broker.Service,
  ids: ReadonlyArray<string>,
  body?: Uint8Array<ArrayBuffer>,
  delay?: number
) => publish(ids.map((id) => outgoing("q", id, body, delay)))

export const counts = ({ admin }: Broker.Service) =>
  Effect.map(admin.counts("q"), ({ delayed, inFlight, ready }) => [ready, inFlight, delayed])

/** Subscribes with a credit, and gathers deliveries. */
export const probe = (
  broker: Broker.Service,
  credit: number,
  queue = "q",
  options: Pick<Broker.SubscribeOptions, "shareLimits"> = {}
) =>
  Effect.gen(function* () {
    const inbox: Array<Delivery.Delivery> = []
    const subscription = yield* broker.subscribe({
      ...options,
      queue,
      retry: RetryPolicy.make(),
      deadLetterQueues: ["q.dlq"],
      onDelivery: (delivery) => void inbox.push(delivery),
      onReconnect: () => {}
    })
    subscription.credit(credit)
    const settle = (settlement: Settlement.Settlement, deliveries = inbox.splice(0)) =>
      Effect.map(subscription.settle(deliveries.map((delivery) => ({ delivery, settlement }))), (failures) =>
        failures.map(({ error, fate }) => `${fate} ${error.reason}`)
      )
    return { ...subscription, inbox, settleAll: settle }
  })
