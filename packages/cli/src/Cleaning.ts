/**
 * Finds the operations that list and remove stale objects. Only RabbitMQ has such objects, so the port of adapters does not
 * have these operations. The command line checks whether the adapter's operator has them.
 */
import type { BrokerError, ConfigurationError } from "@requeue/core"
import type { Adapter } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Service } from "./Output.ts"
import * as Table from "./Table.ts"
import type * as Target from "./Target.ts"

/** An object that the configuration does not use. */
export interface StaleObject {
  readonly kind: string
  readonly name: string
  /** The number of messages in the object; `undefined` for an exchange or a binding. */
  readonly messages: number | undefined
  /** Why the object is stale. */
  readonly claim: string
}

/** A stale object, and whether it was removed. */
interface Cleaned extends StaleObject {
  readonly outcome: "removed" | "kept"
  readonly why?: string | undefined
}

interface Scope {
  readonly isWhole: boolean
  readonly prefix?: string | undefined
}

type Requests = ReadonlyArray<Adapter.PlanRequest>
type Failure = BrokerError.BrokerError | ConfigurationError.ConfigurationError

/** Stale objects, and notes on objects that the list leaves out. */
export interface Listing {
  readonly objects: ReadonlyArray<StaleObject>
  readonly notes: ReadonlyArray<string>
}

/** The operations of an operator that lists and removes stale objects. */
export interface Cleaner {
  readonly stale: (requests: Requests, scope: Scope) => Effect.Effect<Listing, Failure>
  readonly clean: (
    requests: Requests,
    scope: Scope,
    signal: AbortSignal
  ) => Effect.Effect<{ readonly objects: ReadonlyArray<Cleaned>; readonly moved: number }, Failure>
}

/** Returns the operator if it can clean; `undefined` for an adapter without stale objects. */
export const of = (operator: Adapter.Operator): (Adapter.Operator & Cleaner) | undefined => {
  const { clean, stale }: Partial<Record<keyof Cleaner, unknown>> = Object(operator)
  return typeof clean === "function" && typeof stale === "function"
    ? (operator as Adapter.Operator & Cleaner) // Its functions exist.
    : undefined
}

/**
 * Whether a command acts on all queues of a configuration. Only then is it known that a shared delay queue is stale.
 */
export const isWhole = ({ queue, url }: Target.Flags): boolean => queue.length === 0 && Option.isNone(url)

/** Lists objects that these queues do not use; none for an adapter without stale objects. */
export const listed = (operator: Adapter.Operator, requests: Requests, scope: Scope): Effect.Effect<Listing, Failure> =>
  of(operator)?.stale(requests, scope) ?? Effect.succeed({ objects: [], notes: [] })

const columns = ["object", "name", "messages", "why it is stale"]

const row = ({ claim, kind, messages, name }: StaleObject): ReadonlyArray<string> => [
  kind,
  name,
  messages === undefined ? "" : String(messages),
  claim
]

/** Formats the list as text; the text is empty if nothing is stale. */
export const text = ({ notes, objects }: Listing): string =>
  objects.length === 0
    ? ""
    : [
        `stale: ${objects.length} objects that these queues do not use; requeue clean removes them`,
        Table.format(columns, objects.map(row)),
        ...notes.map((note) => `note: ${note}`)
      ].join("\n")

/** Formats the outcomes of a removal as text. */
export const outcomes = (objects: ReadonlyArray<Cleaned>, paint: Service["paint"]): string =>
  Table.format(
    ["", "object", "name", "why"],
    objects.map(({ claim, kind, name, outcome, why }) => [
      paint(outcome === "removed" ? "green" : "yellow", outcome),
      kind,
      name,
      why ?? claim
    ])
  )
