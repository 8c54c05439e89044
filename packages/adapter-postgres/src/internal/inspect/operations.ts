/** A queue's plan for operators: shows it, compares it with the database, and creates it. */
import { type Adapter, type BrokerError, Plan, RetryPolicy, Timers } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { decode, type Settings } from "../../PostgresOptions.ts"
import * as Capabilities from "../capabilities.ts"
import { pg, type Session } from "../client.ts"
import * as Connections from "../connect/connections.ts"
import { limited } from "../connect/gather.ts"
import * as Schema from "../connect/schema.ts"
import * as Statements from "../statements.ts"
import { toBrokerError } from "../toBrokerError.ts"

const queuesOf = ({ queue, retry }: Adapter.PlanRequest): ReadonlyArray<string> => [
  ...new Set([queue, ...RetryPolicy.deadLetterQueues(retry, queue)])
]

const plan = (request: Adapter.PlanRequest, { schema }: Settings): Plan.Plan => ({
  broker: "postgres",
  queue: request.queue,
  delays: "a column of the message's row",
  objects: queuesOf(request).map((name) => ({ kind: "queue", name, details: `a row of ${schema}.queue` })),
  flows: [...Plan.retries(request.queue, request.retry), ...Plan.deadLetters(request.queue, request.retry)],
  notes: ["queues are made on first use"]
})

/** Runs a call on a separate connection. */
const using = <A>(
  settings: Settings,
  operation: string,
  run: (session: Session) => Promise<A>
): Effect.Effect<A, BrokerError.BrokerError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const timers = yield* Timers.make
      const session = yield* Effect.acquireRelease(Connections.connect(settings, pg), ({ close }) =>
        Effect.ignore(Effect.tryPromise(close))
      )
      return yield* Effect.tryPromise({
        try: () => limited(run(session), session, { timers, timeout: settings.timeout }),
        catch: (cause) => toBrokerError(cause, { operation })
      })
    })
  )

const operator = (settings: Settings): Adapter.Operator => {
  const statements = Statements.make(settings.schema)
  const existing = async (session: Session, names: ReadonlyArray<string>): Promise<ReadonlySet<unknown>> => {
    if ((await Schema.read(session, statements, settings.schema)) === undefined) return new Set()
    return new Set((await session.query(statements.exist, [names])).flat())
  }
  return {
    capabilities: Capabilities.make(settings),
    plan: (request) => Effect.succeed(plan(request, settings)),
    inspect: (request) =>
      using(settings, "inspect", async (session) => {
        const { objects } = plan(request, settings)
        const found = await existing(
          session,
          objects.map(({ name }) => name)
        )
        return {
          objects: objects.map((object) => ({ ...object, state: found.has(object.name) ? "present" : "missing" })),
          findings: []
        }
      }),
    create: (request) =>
      using(settings, "create", async (session) => {
        await Schema.check(session, statements, { ...settings, create: true })
        await session.query(statements.declare, [queuesOf(request)])
      })
  }
}

const opened = (settings: Settings): Effect.Effect<Adapter.Operator, BrokerError.BrokerError, Scope.Scope> =>
  Effect.as(
    using(settings, "connect", async () => undefined),
    operator(settings)
  )

/** The answers to `requeue check`, `plan`, `verify` and `create`. */
export const operations: Adapter.Operations = {
  plan: (request, url, options) =>
    Effect.map(Effect.fromResult(decode({ ...options, url })), (settings) => plan(request, settings)),
  operate: (url, options) => Effect.flatMap(Effect.fromResult(decode({ ...options, url })), opened)
}
