/** A route: its method, the role that it needs, and its answer. */
import type { LetterFilter } from "@requeue/operations"
import * as Effect from "effect/Effect"
import type { Action } from "../../Authorization.ts"
import type * as Audit from "../../Audit.ts"
import type { Redact } from "../../Redaction.ts"
import type { Place } from "../paths.ts"
import { Refusal } from "../refusal.ts"
import type { TraceUrl } from "../trace.ts"
import type { Reply, Visit } from "../visit.ts"
import type { Turns } from "../work/body.ts"
import type { Compare } from "../work/comparison.ts"
import type { Show as ShowEvent } from "../shownEvent.ts"
import type { Events } from "../work/events.ts"
import type { Watch } from "../work/watch.ts"
import type * as Delayed from "../work/delayed.ts"
import type { Connection, Trouble } from "../work/connections.ts"
import type { Drafts } from "../work/drafts.ts"
import type { Jobs } from "../work/jobs.ts"
import type { Looks } from "../work/looks.ts"
import type { Simulate } from "../work/outage.ts"
import type { Overview } from "../work/overview.ts"
import * as Park from "../work/park.ts"
import * as Filters from "./filters.ts"

/** The dependencies of routes. */
export interface Dependencies {
  readonly connections: ReadonlyMap<string, Connection>
  /** The queues of each broker. */
  readonly overviews: ReadonlyArray<Overview>
  readonly compare: Compare
  readonly simulate: Simulate
  readonly looks: Looks
  readonly jobs: Jobs
  readonly turns: Turns
  readonly drafts: Drafts
  readonly delayed: Delayed.Memory
  readonly events: Events
  readonly showEvent: ShowEvent
  /** Asks brokers for changes while a page of events is open. */
  readonly watch: Watch
  readonly audit: Audit.Write
  readonly redact: Redact
  /** Milliseconds that a page waits for a broker. */
  readonly timeout: number
  readonly traceUrl: TraceUrl
}

/** A request, with the fields of its form or of its query. */
export interface Asking {
  readonly visit: Visit
  readonly fields: URLSearchParams
  /** A signal that is aborted when the client disconnects. */
  readonly signal: AbortSignal
}

/** A route. A request by `POST` changes or costs something. */
export interface Route {
  readonly method: "GET" | "POST"
  readonly needs: Action
  /** The largest size of the route's form in bytes. Default: enough for names, an id and a token. */
  readonly formLimit?: number | undefined
  readonly answer: (asking: Asking, dependencies: Dependencies) => Effect.Effect<Reply, Refusal | Trouble>
}

/** A place whose queue is configured. */
export interface Located {
  readonly connection: Connection
  readonly place: Place
  readonly filter: LetterFilter.LetterFilter | undefined
}

/** Makes the refusal of a name that is not configured. */
export const unknown = (detail: string) => new Refusal({ status: 404, detail, remedy: "Go back to the overview" })

/**
 * Returns the dead-letter queue and the filter of the fields. The queue must be a dead-letter queue of a configured queue, or
 * have its parked letters.
 */
export const placeOf = (fields: URLSearchParams, { connections }: Dependencies): Effect.Effect<Located, Refusal> => {
  const [broker, queue] = [fields.get("broker") ?? "", fields.get("queue") ?? ""]
  const connection = connections.get(broker)
  if (connection === undefined) return Effect.fail(unknown(`there is no broker ${broker}`))
  return Park.hasLetters(connection, queue)
    ? Effect.map(Filters.of(fields), (asked) => ({
        connection,
        place: { broker, queue, ...(asked === undefined ? {} : { filter: asked.search }) },
        filter: asked?.filter
      }))
    : Effect.fail(unknown(`no configured queue on ${broker} has its dead letters in ${queue}`))
}
