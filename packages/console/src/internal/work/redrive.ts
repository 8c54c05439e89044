/** A redrive, and its dry run, as a job. */
import { RetryPolicy } from "@requeue/core"
import { Capabilities, KnownQueues } from "@requeue/core/port"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import type { Connection } from "./connections.ts"
import { type Job, type Operation, type Staged, told, type Work } from "./job.ts"
import * as Park from "./park.ts"
import { mostOf, type Selection } from "./selection.ts"

/** The choices of the operator for a redrive. */
export interface Asked {
  /** The dry run that the redrive follows. The redrive takes no more letters than the dry run has counted. */
  readonly plan: Pick<Job, "id" | "operation" | "report" | "selection" | "to">
  /** The stages, and the part of a stage that may come back; `undefined` to redrive all letters at once. */
  readonly staged: Staged | undefined
  /** The largest number of letters a second; `undefined` for no limit. */
  readonly rate: number | undefined
}

/** The default stages. */
export const { stages, stopAt } = DeadLetters.standardStages

/** The number of redrives after which letters stay in the dead-letter queue. */
export const maxRedrives = 3

/** Returns the policies of the target queue, or of all queues that use this dead-letter queue. */
const policiesOf = (
  { queues }: Connection,
  dead: string,
  to: string | undefined
): ReadonlyArray<RetryPolicy.RetryPolicy> =>
  queues.flatMap(({ name, retry }) => {
    const isMeant = to === undefined ? RetryPolicy.deadLetterQueues(retry, name).includes(dead) : name === to
    return isMeant ? [retry] : []
  })

/**
 * Returns the longest wait after a stage. Parked letters go back to the same queues as the letters of the dead-letter
 * queue.
 */
const waitOf = (connection: Connection, queue: string, to: string | undefined): number =>
  DeadLetters.waitFor(policiesOf(connection, Park.homeOf(connection, queue) ?? queue, to))

const optionsOf = (
  connection: Connection,
  queue: string,
  { plan, rate, staged }: Asked
): DeadLetters.RedriveOptions => ({
  to: plan.to,
  maxRedrives,
  rate,
  // A deleted queue is not created again, as with the CLI.
  create: false,
  limit: plan.report?.redriven,
  ...(staged === undefined ? {} : { ...staged, wait: waitOf(connection, queue, plan.to) })
})

interface Given {
  readonly options: DeadLetters.RedriveOptions
  /** The longest wait after each stage; `undefined` without stages. */
  readonly wait: number | undefined
  readonly operation: Operation | undefined
}

const make = (
  kind: "plan" | "redrive",
  connection: Connection,
  queue: string,
  selection: Selection,
  { operation, options, wait }: Given
): Work => ({
  kind,
  connection,
  queue,
  selection,
  to: options.to,
  operation,
  isLong: kind === "redrive" && wait !== undefined,
  options: { ...options, letters: selection.title, ...(operation === undefined ? {} : { operation: operation.id }) },
  run: ({ audit, id, signal, tell }) =>
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
            operation: operation?.id ?? id,
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

/** Counts what a redrive would do, and moves nothing. `operation` is the operation that the redrive would continue. */
export const plan = (
  connection: Connection,
  queue: string,
  selection: Selection,
  { operation, to }: { readonly to: string | undefined; readonly operation: Operation | undefined }
): Work =>
  make("plan", connection, queue, selection, {
    options: { to, maxRedrives, limit: mostOf(selection) },
    wait: waitOf(connection, queue, to),
    operation
  })

/** Sends the letters of a dry run to its target queue, or back to their own queues. */
export const redrive = (connection: Connection, queue: string, asked: Asked): Work => {
  const { plan, staged } = asked
  return {
    ...make("redrive", connection, queue, plan.selection, {
      options: optionsOf(connection, queue, asked),
      wait: staged === undefined ? undefined : waitOf(connection, queue, plan.to),
      operation: plan.operation
    }),
    plan: plan.id,
    staged
  }
}
