/** The tools that every part of the adapter shares. */
import type { Deadlines } from "@requeue/core/port"
import type { Settings } from "../AcmeOptions.ts"
import type { Client } from "./client.ts"

/** `now` is in milliseconds since the epoch. */
export interface Tools {
  readonly client: Client
  readonly deadlines: Deadlines.Deadlines
  readonly settings: Settings
  readonly now: () => number
}
