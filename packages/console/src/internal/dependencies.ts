/** The dependencies of routes, which end with the scope. */
import * as Effect from "effect/Effect"
import type * as Audit from "../Audit.ts"
import type { BrokerSource } from "../BrokerSource.ts"
import type { Redact } from "../Redaction.ts"
import type { Dependencies } from "./routes/route.ts"
import * as ShownEvent from "./shownEvent.ts"
import type { TraceUrl } from "./trace.ts"
import * as Body from "./work/body.ts"
import * as Comparison from "./work/comparison.ts"
import * as Connections from "./work/connections.ts"
import * as Delayed from "./work/delayed.ts"
import * as Drafts from "./work/drafts.ts"
import type { Events } from "./work/events.ts"
import * as Jobs from "./work/jobs.ts"
import * as Looks from "./work/looks.ts"
import * as Outage from "./work/outage.ts"
import * as Overview from "./work/overview.ts"
import * as Watch from "./work/watch.ts"

/** The options of the dependencies. */
export interface Options {
  readonly brokers: ReadonlyArray<BrokerSource>
  readonly audit: Audit.Write
  readonly events: Events
  readonly redact: Redact
  readonly timeout: number
  readonly traceUrl: TraceUrl
}

/** Makes the dependencies. It connects to no broker yet. */
export const make = ({ audit, brokers, events, redact, timeout, traceUrl }: Options) =>
  Effect.gen(function* () {
    const each = yield* Effect.forEach(brokers, Connections.make)
    const overviews = yield* Effect.forEach(each, (connection) => Overview.make(connection, timeout))
    const dependencies: Dependencies = {
      audit,
      connections: new Map(each.map((connection) => [connection.name, connection])),
      redact,
      timeout,
      traceUrl,
      overviews,
      events,
      showEvent: ShownEvent.make(redact),
      watch: yield* Watch.make(events, overviews),
      compare: yield* Comparison.make(timeout),
      simulate: Outage.make(),
      looks: yield* Looks.make,
      jobs: yield* Jobs.make(audit),
      turns: Body.turns(),
      drafts: Drafts.make(),
      delayed: Delayed.memory()
    }
    return dependencies
  })
