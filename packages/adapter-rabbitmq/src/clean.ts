/**
 * Stale objects: lists and removes Requeue's queues, exchanges and bindings that a configuration does not use any more.
 *
 * This is a separate entry, so programs that only consume or publish do not load it.
 *
 * The management interface is required to remove stale objects, and to list all of them: give its address as the option
 * `management`.
 *
 * @example
 * ```ts
 * import { clean } from "@requeue/adapter-rabbitmq/clean"
 * import { RetryPolicy } from "@requeue/core"
 * import * as Effect from "effect/Effect"
 *
 * const options = { url: "amqp://localhost", management: "http://localhost:15672" }
 * const kept = clean([{ queue: "orders", retry: RetryPolicy.make() }], options).pipe(
 *   Effect.map(({ objects }) => objects.filter(({ outcome }) => outcome === "kept"))
 * )
 * ```
 */
import type { Adapter } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Cleaning from "./internal/clean/cleaning.ts"
import type * as Listing from "./internal/clean/listing.ts"
import * as Connection from "./internal/connect/connection.ts"
import * as Declarer from "./internal/declare/declare.ts"
import { decode, type Options } from "./RabbitMqOptions.ts"

export type { Cleaned, Report } from "./internal/clean/cleaning.ts"
export type { Listing, Problem, Scope, StaleObject } from "./internal/clean/listing.ts"

const open = (options: Options) =>
  Effect.gen(function* () {
    const settings = yield* Effect.fromResult(decode(options))
    const connection = yield* Connection.make(settings, "operator")
    return Cleaning.make(settings, connection, yield* Declarer.make(connection, settings))
  })

/**
 * Lists Requeue's objects on the server that a configuration does not use, with their messages. It changes nothing.
 *
 * `requests` are the queues of the configuration with their policies. "Stale" means only that no request uses the object.
 * Another service may share a delay queue. If that queue is removed, the service declares it again.
 */
export const stale = (
  requests: ReadonlyArray<Adapter.PlanRequest>,
  options: Options,
  scope: Listing.Scope = {}
): Effect.Effect<Listing.Listing, Listing.Problem> =>
  Effect.scoped(Effect.flatMap(open(options), (cleaning) => cleaning.stale(requests, scope)))

/**
 * Removes the objects that {@link stale} lists, except objects in use. It moves their messages to where they belong, with
 * the rest of their delay. It takes 15 s or more. If you interrupt it, also by `signal`, it restores the objects that it
 * has begun to remove; run it again.
 */
export const clean = (
  requests: ReadonlyArray<Adapter.PlanRequest>,
  options: Options,
  scope: Listing.Scope = {},
  signal?: AbortSignal
): Effect.Effect<Cleaning.Report, Listing.Problem> =>
  Effect.scoped(Effect.flatMap(open(options), (cleaning) => cleaning.clean(requests, scope, signal)))
