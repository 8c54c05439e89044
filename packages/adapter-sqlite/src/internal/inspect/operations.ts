/** A queue's plan for operators: shown, compared with the file, and created. */
import { type Adapter, type BrokerError, Plan, RetryPolicy } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { decode, memory, type Settings } from "../../SqliteOptions.ts"
import * as Capabilities from "../capabilities.ts"
import { node } from "../client.ts"
import * as Connection from "../connect/connection.ts"
import { versionOf } from "../connect/schema.ts"
import * as Rows from "../rows.ts"
import { toBrokerError } from "../toBrokerError.ts"

const queuesOf = ({ queue, retry }: Adapter.PlanRequest): ReadonlyArray<string> => [
  ...new Set([queue, ...RetryPolicy.deadLetterQueues(retry, queue)])
]

const plan = (request: Adapter.PlanRequest): Plan.Plan => ({
  broker: "sqlite",
  queue: request.queue,
  delays: "a column of the message's row",
  objects: queuesOf(request).map((name) => ({ kind: "queue", name, details: "" })),
  flows: [...Plan.retries(request.queue, request.retry), ...Plan.deadLetters(request.queue, request.retry)],
  notes: ["queues are made on first use"]
})

/** Runs a call on the open file, and closes it. */
const using = <A>(
  open: () => Connection.Connection,
  path: string,
  run: (connection: Connection.Connection) => A
): Effect.Effect<A, BrokerError.BrokerError> =>
  Effect.try({
    try: () => {
      const connection = open()
      try {
        return run(connection)
      } finally {
        connection.db.close()
      }
    },
    catch: (cause) => toBrokerError(cause, { operation: "open", path })
  })

const check = (connection: Connection.Connection): Plan.Finding => {
  const detail = String(connection.prepare("PRAGMA quick_check(1)").get()?.["quick_check"])
  return { about: "the file is undamaged", verdict: detail === "ok" ? "good" : "bad", detail }
}

const inspected = (connection: Connection.Connection, request: Adapter.PlanRequest): Plan.Inspection => {
  const hasTables = versionOf(connection.db) > 0
  return {
    objects: plan(request).objects.map((object) => ({
      ...object,
      state: hasTables && Rows.exists(connection, object.name) ? "present" : "missing"
    })),
    findings: [check(connection)]
  }
}

/** Of a file that does not exist, which reading it would create. */
const absent = (request: Adapter.PlanRequest, path: string): Plan.Inspection => ({
  objects: plan(request).objects.map((object) => ({ ...object, state: "missing", why: `${path} does not exist` })),
  findings: []
})

const operator = (decoded: Settings): Adapter.Operator => {
  const path = node.resolve(decoded.path)
  const settings = { ...decoded, path }
  return {
    capabilities: Capabilities.make(settings),
    plan: (request) => Effect.succeed(plan(request)),
    inspect: (request) =>
      Effect.suspend(() =>
        path === memory || node.identity(path) === undefined
          ? Effect.succeed(absent(request, path))
          : using(
              () => Connection.openOnly(settings, node),
              path,
              (connection) => inspected(connection, request)
            )
      ),
    create: (request) =>
      using(
        () => Connection.open(settings, node),
        path,
        (connection) => {
          for (const queue of queuesOf(request)) Rows.declare(connection, queue)
        }
      )
  }
}

/** The answers to `requeue check`, `plan`, `verify` and `create`. */
export const operations: Adapter.Operations = {
  plan: (request, url, options) => Effect.as(Effect.fromResult(decode({ ...options, url })), plan(request)),
  operate: (url, options) => Effect.map(Effect.fromResult(decode({ ...options, url })), operator)
}
