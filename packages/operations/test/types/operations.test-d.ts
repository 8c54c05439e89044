/**
 * A type test: operations take the options that they document, refuse misspelt ones, and say how they fail.
 * Nothing here runs; `npm run check -- types` compiles it.
 */
import type { Broker, BrokerError } from "@requeue/core"
import type { Requeue } from "@requeue/core/promise"
import { DeadLetters } from "@requeue/operations"
import { deadLetters } from "@requeue/operations/promise"
import type { Effect } from "effect"
import { expectTypeOf } from "vitest"

expectTypeOf(DeadLetters.make("orders.dlq")).toEqualTypeOf<
  Effect.Effect<DeadLetters.DeadLetters, never, Broker.Broker>
>()
expectTypeOf<ReturnType<DeadLetters.DeadLetters["redrive"]>>().toEqualTypeOf<
  Effect.Effect<DeadLetters.RedriveReport, BrokerError.BrokerError | DeadLetters.DeadLettersStopped>
>()
expectTypeOf<ReturnType<DeadLetters.DeadLetters["purge"]>>().toEqualTypeOf<
  Effect.Effect<number, BrokerError.BrokerError | DeadLetters.DeadLettersStopped>
>()

declare const requeue: Requeue
const dead = deadLetters(requeue, "orders.dlq")

export const accepted = [
  () => dead.redrive({ to: "orders", limit: 5, filter: () => true, dryRun: true, rate: 10, maxRedrives: 5 }),
  () => dead.redrive({ signal: AbortSignal.timeout(1000), onProgress: ({ redriven }) => console.log(redriven) }),
  () => dead.purge({ filter: ({ redrives }) => redrives > 0, dryRun: true, signal: AbortSignal.timeout(1) }),
  () => dead.purge({ all: true, dryRun: true }),
  () => dead.list({ limit: 5 }),
  () => dead.group({ limit: 5 })
]

export const refused = [
  // @ts-expect-error it is called dryRun
  () => dead.redrive({ dryrun: true }),
  // @ts-expect-error it is called filter
  () => dead.redrive({ where: () => true }),
  // @ts-expect-error it is called dryRun
  () => dead.purge({ dryrun: true }),
  // @ts-expect-error it is called filter
  () => dead.purge({ where: () => true }),
  // @ts-expect-error the filter is an option
  () => dead.purge(() => false),
  // @ts-expect-error all are removed only when it says so
  () => dead.purge(),
  // @ts-expect-error all are removed only when it says so
  () => dead.purge({}),
  // @ts-expect-error all are counted only when it says so
  () => dead.purge({ dryRun: true }),
  // @ts-expect-error it is true, or left out
  () => dead.purge({ all: false }),
  // @ts-expect-error all, or those that the filter selects
  () => dead.purge({ all: true, filter: () => true }),
  // @ts-expect-error a purge has no limit
  () => dead.purge({ limit: 1 }),
  // @ts-expect-error it is "retries-exhausted"
  () => dead.purge({ filter: ({ origin }) => origin?.reason === "retries-exhaused" }),
  // @ts-expect-error it is origin.reason
  () => dead.redrive({ filter: ({ reason }) => reason === "permanent" }),
  // @ts-expect-error it is called limit
  () => dead.list({ limt: 5 }),
  // @ts-expect-error it is called limit
  () => dead.group({ limt: 5 })
]
