/** The contract of nsqd and nsqlookupd: what the simulated servers do as the real ones do. */
import * as Connections from "./contract/connections.ts"
import * as Deliveries from "./contract/deliveries.ts"
import * as Publishing from "./contract/publishing.ts"
import * as Restarts from "./contract/restarts.ts"
import { flags, type Row } from "./contract/Script.ts"
import * as Time from "./contract/time.ts"
import * as Topics from "./contract/topics.ts"

export type { Server } from "./contract/Script.ts"

/** Rows, and the flags of the nsqd for them. */
export interface Part {
  readonly name: string
  readonly flags: Readonly<Record<string, number>>
  /** Whether each row needs an nsqd of its own, because it is restarted. */
  readonly restarts: boolean
  readonly rows: ReadonlyArray<Row>
}

export const parts: ReadonlyArray<Part> = [
  {
    name: "with low limits",
    flags,
    restarts: false,
    rows: [...Connections.rows, ...Publishing.rows, ...Topics.rows, ...Deliveries.rows, ...Time.rows]
  },
  { name: "restarted", flags, restarts: true, rows: Restarts.rows },
  {
    name: "without memory",
    flags: { ...flags, ...Restarts.withoutMemory },
    restarts: true,
    rows: Restarts.rowsWithoutMemory
  }
]
