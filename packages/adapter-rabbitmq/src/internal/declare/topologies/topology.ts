/** What every delay topology answers. */
import type { RetryPolicy } from "@requeue/core/adapter-kit"
import type { Settings } from "../../../RabbitMqOptions.ts"
import type { Object } from "../objects.ts"

/** The way of a message into a delay. */
export interface Route {
  readonly exchange: string
  readonly routingKey: string
  /** Headers that the way needs; they are taken off on arrival. */
  readonly headers: Readonly<Record<string, string>>
  /** Per-message TTL in milliseconds, where the topology has one. */
  readonly expiration: number | undefined
  /** How long the broker keeps it: never less than was asked. */
  readonly kept: number
  /** What must exist on the way. */
  readonly objects: ReadonlyArray<Object>
}

export interface Topology {
  readonly name: string
  readonly objects: ReadonlyArray<Object>
  readonly notes: ReadonlyArray<string>
  /** What it needs is one list for as many delays as possible: the declarer knows lists again. */
  readonly route: (delay: number) => Route
  readonly native?: (count: number) => number
  readonly waiting?: string
  /** Changes an object that is not the topology's own. */
  readonly amend?: (object: Object) => Object
}

export interface Request {
  readonly queue: string
  readonly retry: RetryPolicy.RetryPolicy | undefined
  readonly settings: Settings
  readonly serverVersion: string
}
