/** Jobs: redrives, dry runs, purges and exports. Each has its numbers and its audit, and can be stopped. */
import { AuditLine, type DeadLetters } from "@requeue/operations"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import * as Audit from "../../Audit.ts"
import { Refusal } from "../refusal.ts"
import type { Connection } from "./connections.ts"
import type { Place } from "../paths.ts"
import type { Failed, Job, Work } from "./job.ts"

/** All jobs. */
export interface Jobs {
  readonly all: () => ReadonlyArray<Job>
  readonly of: (id: string) => Job | undefined
  /** Returns the job that works on a queue now. */
  readonly running: (place: Pick<Place, "broker" | "queue">) => Job | undefined
  /** Begins a job after its audit line is written. Fails if another job works on the queue. */
  readonly begin: (work: Work, operator: string) => Effect.Effect<Job, Refusal>
  /** Asks a job to stop. */
  readonly stop: (id: string) => void
}

/** The largest number of jobs that are kept. */
const most = 200

/** Returns the failures of a report. Secrets are removed from the errors of drivers. */
const failedOf = (report: DeadLetters.RedriveReport, mask: Connection["mask"]): ReadonlyArray<Failed> =>
  report.failures.map(({ error, id, isPublished }) => ({
    id,
    isPublished,
    why: error === undefined ? undefined : mask(error.message)
  }))

/** Returns a report for the audit. */
const booked = ({ failed, report }: Job) =>
  report && {
    ...report,
    failures: report.failures.map(({ error, id, isPublished }, index) => ({
      id,
      isPublished,
      reason: error?.reason ?? null,
      message: failed[index]?.why ?? null
    }))
  }

const newJob = (
  { connection, kind, operation, queue, selection, staged, to }: Work,
  operator: string,
  begun: number,
  id = AuditLine.newId()
): Job => ({
  id,
  kind,
  place: { broker: connection.name, queue, ...selection.search },
  selection,
  to,
  targets: connection.queues.map(({ name }) => name),
  operator,
  operation: operation ?? (kind === "redrive" ? { id, begun } : undefined),
  begun,
  ended: undefined,
  report: undefined,
  staged,
  failed: [],
  left: undefined,
  pace: undefined,
  purged: undefined,
  edited: undefined,
  exported: undefined,
  trouble: undefined,
  isStopping: false,
  usedBy: undefined
})

const runningOn = (jobs: ReadonlyMap<string, Job>, { broker, queue }: Pick<Place, "broker" | "queue">) =>
  [...jobs.values()].find(({ ended, place }) => ended === undefined && place.broker === broker && place.queue === queue)

/** Returns why a job cannot begin: another job works on its queue, or has already followed its dry run. */
const obstacleOf = (jobs: ReadonlyMap<string, Job>, { connection, plan, queue }: Work): Refusal | undefined => {
  const other = runningOn(jobs, { broker: connection.name, queue })
  if (other !== undefined) {
    const detail = `job ${other.id} of ${other.operator} works on ${queue}`
    return new Refusal({ status: 409, detail, remedy: "Wait until the job ends, or stop it", job: other.id })
  }
  const follower = plan === undefined ? undefined : jobs.get(plan)?.usedBy
  if (follower === undefined) return undefined
  const detail = `the dry run ${plan} was followed by the redrive ${follower}`
  return new Refusal({ status: 409, detail, remedy: "Nothing was done. Count again", job: follower })
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

/** Makes the jobs of a console. When the scope closes, all jobs are stopped, and their ends are awaited. */
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

    const finish = (id: string, operation: Audit.Operation, exit: Exit.Exit<unknown, Error>) =>
      Effect.gen(function* () {
        const error = Exit.findErrorOption(exit)
        const failure =
          error._tag === "Some" ? error.value.message : Exit.isFailure(exit) ? "the job was interrupted" : undefined
        const job = jobs.get(id)!
        const { edited, exported, purged, report } = job
        const stoppedBy = (report ?? purged ?? exported)?.stoppedBy
        const lost = yield* Audit.end(audit, operation, {
          outcome: failure === undefined ? (edited?.outcome ?? stoppedBy ?? "done") : "failed",
          ...(failure === undefined ? {} : { error: failure }),
          queues: [{ queue: operation.queues[0], ...booked(job), ...purged, ...exported, ...edited }]
        })
        const trouble = [failure, lost === undefined ? undefined : `The audit has no end line for this job: ${lost}`]
        running.delete(id)
        const told = trouble.filter((each) => each !== undefined)
        change(id, { ended: yield* Clock.currentTimeMillis, trouble: told.length === 0 ? undefined : told.join(". ") })
      })

    const tell = (id: string, mask: Connection["mask"]) => (told: Partial<Job>) =>
      change(id, told.report === undefined ? told : { ...told, failed: failedOf(told.report, mask) })

    return {
      running: (place) => runningOn(jobs, place),
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
          // Set before the audit is written: no other job begins meanwhile.
          jobs.set(id, job)
          const operation = operationOf(job, asked)
          yield* Effect.onError(Audit.begin(audit, operation), () => Effect.sync(() => void jobs.delete(id)))
          if (plan !== undefined && jobs.has(plan)) change(plan, { usedBy: id })
          const stop = new AbortController()
          const inside = {
            id,
            signal: stop.signal,
            tell: tell(id, connection.mask),
            audit: Audit.ofLetters(audit, operation, runPromise)
          }
          const work = Effect.flatMap(Effect.exit(run(inside)), (exit) =>
            Effect.map(finish(id, operation, exit), () => asked.onEnd?.(jobs.get(id)!))
          )
          running.set(id, { stop, fiber: yield* Effect.forkDetach(work) })
          const oldest = [...jobs.values()].find(({ ended }) => ended !== undefined)
          if (jobs.size > most && oldest !== undefined) jobs.delete(oldest.id)
          return job
        })
    }
  })
