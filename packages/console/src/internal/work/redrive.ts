/** A redrive, and its dry run, as a job. */
import { DeadLetters, type Delivery, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as CauseId from "./causeId.ts"
import type { Connection } from "./connections.ts"
import type { Job, Selection, Work } from "./jobs.ts"

/** The wishes of an operator for. */
export interface Asked {
  /** The dry run that it follows: no more letters are redriven than that has counted. */
  readonly plan: Pick<Job, "id" | "report">
  /** Whether it works in stages, and stops by itself; else all letters go at once. */
  readonly isStaged: boolean
  /** Letters in a second at most; `undefined` for no limit. */
  readonly rate: number | undefined
}

/** The sizes of the first stages, and the part of one that may come back. */
export const { stages, stopAt } = DeadLetters.standardStages

/** Letters that were redriven so often already stay. */
export const maxRedrives = 3

/** The policies of the queues whose letters come to a dead-letter queue. */
const policiesOf = ({ queues }: Connection, dead: string): ReadonlyArray<RetryPolicy.RetryPolicy> =>
  queues.flatMap(({ name, retry }) => (RetryPolicy.deadLetterQueues(retry, name).includes(dead) ? [retry] : []))

/** The dead-letter queues to which letters of one may come back from a queue: that one, and those of the queue's policy. */
const watchOf =
  ({ queues }: Connection, dead: string) =>
  (target: string): ReadonlyArray<string> => {
    const retry = queues.find(({ name }) => name === target)?.retry ?? RetryPolicy.make()
    return [dead, ...RetryPolicy.deadLetterQueues(retry, target)]
  }

/** The filter of a selection; `undefined` for all letters. */
export const filterOf = ({ cause }: Selection): ((letter: Delivery.Delivery) => boolean) | undefined =>
  cause === undefined
    ? undefined
    : ({ metadata }) => CauseId.of(DeadLetters.causeOf({ origin: metadata.deadLetter })) === cause

const optionsOf = (
  connection: Connection,
  queue: string,
  { isStaged, plan, rate }: Asked
): DeadLetters.RedriveOptions => ({
  maxRedrives,
  rate,
  // As on the command line: letters go to no queue that was deleted.
  create: false,
  limit: plan.report?.redriven,
  ...(isStaged ? { wait: DeadLetters.waitFor(policiesOf(connection, queue)), watch: watchOf(connection, queue) } : {})
})

const make = (
  kind: "plan" | "redrive",
  connection: Connection,
  queue: string,
  selection: Selection,
  options: DeadLetters.RedriveOptions
): Work => ({
  kind,
  connection,
  queue,
  selection,
  options: { ...options, cause: selection.title },
  run: (operation, signal, tell) =>
    connection.use(() =>
      Effect.flatMap(DeadLetters.make(queue), ({ redrive }) =>
        Effect.map(
          redrive({
            ...options,
            filter: filterOf(selection),
            dryRun: kind === "plan",
            operation,
            signal,
            onProgress: (report) => tell({ report })
          }),
          (report) => tell({ report })
        )
      )
    )
})

/** Counts what a redrive would do, and moves nothing. */
export const plan = (connection: Connection, queue: string, selection: Selection): Work =>
  make("plan", connection, queue, selection, { maxRedrives })

/** Sends letters back to the queues that they came from. */
export const redrive = (connection: Connection, queue: string, selection: Selection, asked: Asked): Work => ({
  ...make("redrive", connection, queue, selection, optionsOf(connection, queue, asked)),
  plan: asked.plan.id
})
