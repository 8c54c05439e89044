/** A redrive, and its dry run, as a job. */
import { RetryPolicy } from "@requeue/core"
import { Capabilities, KnownQueues } from "@requeue/core/port"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import type { Connection } from "./connections.ts"
import { type Job, told, type Work } from "./job.ts"
import * as Park from "./park.ts"
import { mostOf, type Selection } from "./selection.ts"

/** The wishes of an operator for. */
export interface Asked {
  /** The dry run that it follows: no more letters are redriven than that has counted. */
  readonly plan: Pick<Job, "id" | "report" | "selection" | "to">
  /** Whether it works in stages, and stops by itself; else all letters go at once. */
  readonly isStaged: boolean
  /** Letters in a second at most; `undefined` for no limit. */
  readonly rate: number | undefined
}

/** The sizes of the first stages, and the part of one that may come back. */
export const { stages, stopAt } = DeadLetters.standardStages

/** Letters that were redriven so often already stay. */
export const maxRedrives = 3

/** The policies of the queue that letters go to, or of those whose letters come to a dead-letter queue. */
const policiesOf = (
  { queues }: Connection,
  dead: string,
  to: string | undefined
): ReadonlyArray<RetryPolicy.RetryPolicy> =>
  queues.flatMap(({ name, retry }) => {
    const isMeant = to === undefined ? RetryPolicy.deadLetterQueues(retry, name).includes(dead) : name === to
    return isMeant ? [retry] : []
  })

/** The longest wait behind a stage. Parked letters go back to the queues of the others. */
const waitOf = (connection: Connection, queue: string, to: string | undefined): number =>
  DeadLetters.waitFor(policiesOf(connection, Park.homeOf(connection, queue) ?? queue, to))

const optionsOf = (
  connection: Connection,
  queue: string,
  { isStaged, plan, rate }: Asked
): DeadLetters.RedriveOptions => ({
  to: plan.to,
  maxRedrives,
  rate,
  // As on the command line: letters go to no queue that was deleted.
  create: false,
  limit: plan.report?.redriven,
  ...(isStaged ? { wait: waitOf(connection, queue, plan.to) } : {})
})

const make = (
  kind: "plan" | "redrive",
  connection: Connection,
  queue: string,
  selection: Selection,
  options: DeadLetters.RedriveOptions,
  wait: number | undefined
): Work => ({
  kind,
  connection,
  queue,
  selection,
  to: options.to,
  isLong: kind === "redrive" && wait !== undefined,
  options: { ...options, letters: selection.title },
  run: ({ audit, id: operation, signal, tell }) =>
    connection.use((broker) => {
      if (wait !== undefined) tell({ pace: { wait, untold: Capabilities.untold(broker.capabilities) } })
      return Effect.flatMap(DeadLetters.make(queue), ({ count, redrive }) =>
        Effect.flatMap(
          redrive({
            ...options,
            watch: (target) => KnownQueues.deadLetterQueues(broker, target),
            origin: selection.filter?.origin,
            filter: selection.isMeant,
            dryRun: kind === "plan",
            audit: audit({ to: options.to }),
            operation,
            signal,
            onProgress: (report) => tell({ report })
          }),
          (report) => {
            tell({ report })
            return kind === "plan" ? Effect.void : told(count, tell)
          }
        )
      )
    })
})

/** Counts what a redrive would do, to a queue or to those that letters came from, and moves nothing. */
export const plan = (connection: Connection, queue: string, selection: Selection, to: string | undefined): Work =>
  make(
    "plan",
    connection,
    queue,
    selection,
    { to, maxRedrives, limit: mostOf(selection) },
    waitOf(connection, queue, to)
  )

/** Sends the letters of a dry run to the queue that it was for, or back to those that they came from. */
export const redrive = (connection: Connection, queue: string, asked: Asked): Work => {
  const wait = asked.isStaged ? waitOf(connection, queue, asked.plan.to) : undefined
  return {
    ...make("redrive", connection, queue, asked.plan.selection, optionsOf(connection, queue, asked), wait),
    plan: asked.plan.id
  }
}
