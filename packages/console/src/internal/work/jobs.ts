/** Jobs: redrives, their dry runs, removals and exports, each with its books, its audit and a way to stop it. */
import { AuditLine, type DeadLetters } from "@requeue/operations"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import * as Audit from "../../Audit.ts"
import { Refusal } from "../refusal.ts"
import type { Connection } from "./connections.ts"
import type { Job, Work } from "./job.ts"

/** All jobs. */
export interface Jobs {
  readonly all: () => ReadonlyArray<Job>
  readonly of: (id: string) => Job | undefined
  /** Begins a job, when its audit is written. It fails where another one works on the queue. */
  readonly begin: (work: Work, operator: string) => Effect.Effect<Job, Refusal>
  /** Asks a job to stop. */
  readonly stop: (id: string) => void
}

/** Jobs that are kept. */
const most = 200

/** A report for the audit; errors of drivers are told without secrets. */
const booked = (report: DeadLetters.RedriveReport | undefined, mask: Connection["mask"]) =>
  report && {
    ...report,
    failures: report.failures.map(({ error, id, isPublished }) => ({
      id,
      isPublished,
      reason: error?.reason ?? null,
      message: error === undefined ? null : mask(error.message)
    }))
  }

const newJob = ({ connection, kind, queue, selection, to }: Work, operator: string, begun: number): Job => ({
  id: AuditLine.newId(),
  kind,
  place: { broker: connection.name, queue, ...selection.search },
  selection,
  to,
  targets: connection.queues.map(({ name }) => name),
  operator,
  begun,
  ended: undefined,
  report: undefined,
  left: undefined,
  pace: undefined,
  purged: undefined,
  edited: undefined,
  exported: undefined,
  trouble: undefined,
  isStopping: false,
  usedBy: undefined
})

/** Why a job cannot begin: another one works on its queue, or has followed its dry run. */
const obstacleOf = (jobs: ReadonlyMap<string, Job>, { connection, plan, queue }: Work): Refusal | undefined => {
  const other = [...jobs.values()].find(
    ({ ended, place }) => ended === undefined && place.broker === connection.name && place.queue === queue
  )
  if (other !== undefined) {
    const detail = `job ${other.id} of ${other.operator} works on ${queue}`
    return new Refusal({ status: 409, detail, remedy: "Wait for its end, or stop it" })
  }
  const follower = plan === undefined ? undefined : jobs.get(plan)?.usedBy
  if (follower === undefined) return undefined
  const detail = `the dry run ${plan} was followed by the redrive ${follower}`
  return new Refusal({ status: 409, detail, remedy: "Nothing was done. Count again" })
}

const operationOf = ({ id, kind, operator, place: { broker, queue } }: Job, work: Work): Audit.Operation => ({
  id,
  command: `console ${kind}`,
  operator,
  broker,
  queues: [queue],
  filters: work.selection.filter,
  options: work.options
})

/** Jobs that are stopped, and waited for, when the scope closes. */
export const make = (audit: Audit.Write): Effect.Effect<Jobs, never, Scope.Scope> =>
  Effect.gen(function* () {
    const runPromise = Effect.runPromiseWith(yield* Effect.context())
    const jobs = new Map<string, Job>()
    const running = new Map<string, { readonly stop: AbortController; readonly fiber: Fiber.Fiber<void> }>()
    yield* Effect.addFinalizer(() =>
      Effect.suspend(() => {
        for (const { stop } of running.values()) stop.abort()
        return Fiber.awaitAll([...running.values()].map(({ fiber }) => fiber))
      })
    )
    const change = (id: string, changed: Partial<Job>) => void jobs.set(id, { ...jobs.get(id)!, ...changed })

    const finish = (
      id: string,
      operation: Audit.Operation,
      exit: Exit.Exit<unknown, Error>,
      mask: Connection["mask"]
    ) =>
      Effect.gen(function* () {
        const error = Exit.findErrorOption(exit)
        const failure =
          error._tag === "Some" ? error.value.message : Exit.isFailure(exit) ? "it was interrupted" : undefined
        const { edited, exported, purged, report } = jobs.get(id)!
        const stoppedBy = (report ?? purged ?? exported)?.stoppedBy
        const lost = yield* Audit.end(audit, operation, {
          outcome: failure === undefined ? (edited?.outcome ?? stoppedBy ?? "done") : "failed",
          ...(failure === undefined ? {} : { error: failure }),
          queues: [{ queue: operation.queues[0], ...booked(report, mask), ...purged, ...exported, ...edited }]
        })
        const trouble = [failure, lost === undefined ? undefined : `the audit has no line of its end: ${lost}`]
        running.delete(id)
        const told = trouble.filter((each) => each !== undefined)
        change(id, { ended: yield* Clock.currentTimeMillis, trouble: told.length === 0 ? undefined : told.join(". ") })
      })

    return {
      all: () => [...jobs.values()].toReversed(),
      of: (id) => jobs.get(id),
      stop: (id) => {
        if (!running.has(id)) return
        running.get(id)?.stop.abort()
        change(id, { isStopping: true })
      },
      begin: (asked, operator) =>
        Effect.gen(function* () {
          const { connection, plan, run } = asked
          const obstacle = obstacleOf(jobs, asked)
          if (obstacle !== undefined) return yield* obstacle
          const job = newJob(asked, operator, yield* Clock.currentTimeMillis)
          const { id } = job
          // Before the audit is written, so that nobody else begins meanwhile.
          jobs.set(id, job)
          const operation = operationOf(job, asked)
          yield* Effect.onError(Audit.begin(audit, operation), () => Effect.sync(() => void jobs.delete(id)))
          if (plan !== undefined && jobs.has(plan)) change(plan, { usedBy: id })
          const stop = new AbortController()
          const inside = {
            id,
            signal: stop.signal,
            tell: (told: Partial<Job>) => change(id, told),
            audit: Audit.ofLetters(audit, operation, runPromise)
          }
          const work = Effect.flatMap(Effect.exit(run(inside)), (exit) =>
            Effect.map(finish(id, operation, exit, connection.mask), () => asked.onEnd?.(jobs.get(id)!))
          )
          running.set(id, { stop, fiber: yield* Effect.forkDetach(work) })
          const oldest = [...jobs.values()].find(({ ended }) => ended !== undefined)
          if (jobs.size > most && oldest !== undefined) jobs.delete(oldest.id)
          return job
        })
    }
  })
