/** The contract of RabbitMQ: what a server of this version answers. */
import type { Row } from "../contract/Contract.ts"
import type { Server } from "./contract/bench.ts"
import * as Consuming from "./contract/consuming.ts"
import * as Declaring from "./contract/declaring.ts"
import * as Expiring from "./contract/expiring.ts"
import * as Publishing from "./contract/publishing.ts"

/** All rows for a server. */
export const rows = (version: string): ReadonlyArray<Row<Server>> => [
  ...Declaring.rows(),
  ...Publishing.rows(),
  ...Consuming.rows(version),
  ...Expiring.rows(version)
]
