/** Jobs: redrives, their dry runs, removals and exports, each with its books, its audit and a way to stop it. */
import type { DeadLetters } from "@requeue/core"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import { randomUUID } from "node:crypto"
import * as Audit from "../../Audit.ts"
import type { Action } from "../../Authorization.ts"
import type { Place } from "../paths.ts"
import { Refusal } from "../refusal.ts"
import type { Connection } from "./connections.ts"
import type { Selection } from "./selection.ts"

/** The numbers of a purge that has ended. */
export interface Purged {
  /** The letters that it has removed. */
  readonly removed: number
  /** Those that are in the queue when it ends; `undefined` where the broker cannot count. */
  readonly left: number | undefined
  /** Those that another reader has then; `undefined` where somebody may have some, and the broker does not tell. */
  readonly held: number | undefined
  /** Why it went no further; `undefined` when it came to its end. */
  readonly stoppedBy: DeadLetters.StoppedBy | undefined
}

/** The numbers of an export, as far as it is. */
export interface Exported {
  /** The letters that were written. */
  readonly written: number
  /** Those of them of which something was hidden. */
  readonly redacted: number
  /** Letters that were looked at. */
  readonly looked: number
  /** Letters that waited; `undefined` where the broker cannot count. */
  readonly total: number | undefined
  /** Why it went no further: it was stopped, or nobody read it. `undefined` when it came to its end. */
  readonly stoppedBy: "abort" | "reader" | undefined
}

/** A job. Times are in milliseconds since the epoch. */
export interface Job {
  readonly id: string
  readonly kind: "plan" | "redrive" | "purge" | "edit" | "park" | "purge-delayed" | "export"
  readonly place: Place
  readonly selection: Selection
  /** The queue that letters go to; `undefined` for those that they came from, and where they go nowhere. */
  readonly to: string | undefined
  /** The queues that they could go to. */
  readonly targets: ReadonlyArray<string>
  readonly operator: string
  readonly begun: number
  /** `undefined` while it runs. */
  readonly ended: number | undefined
  /** The report so far; `undefined` for a purge, and before there is any. */
  readonly report: DeadLetters.RedriveReport | undefined
  /** `undefined` for a redrive, and before a purge has ended. */
  readonly purged: Purged | undefined
  /** The fate of an edited copy; `undefined` before it is known, and for all others. */
  readonly edited: DeadLetters.EditReport | undefined
  /** `undefined` where it is no export. */
  readonly exported: Exported | undefined
  /** Why it failed. */
  readonly trouble: string | undefined
  /** Whether somebody has asked it to stop. */
  readonly isStopping: boolean
  /** The redrive that has followed a dry run: there is one at most. */
  readonly usedBy: string | undefined
}

/** A job, as its work sees it. */
export interface Running {
  readonly id: string
  readonly signal: AbortSignal
  readonly tell: (
    progress: Pick<Job, "report"> | Pick<Job, "purged"> | Pick<Job, "edited"> | Pick<Job, "exported">
  ) => void
  /** Keeps a line for each letter before it leaves. */
  readonly audit: (goal: Audit.Goal) => DeadLetters.Audit
}

/** The work of a job: it tells of its progress, and ends soon after the signal. */
export interface Work {
  readonly kind: Job["kind"]
  readonly connection: Connection
  readonly queue: string
  readonly selection: Selection
  /** The queue that letters go to. Default: those that they came from, or none. */
  readonly to?: string | undefined
  /** The id of the dry run that it follows. */
  readonly plan?: string | undefined
  /** For the audit. */
  readonly options: Readonly<Record<string, unknown>>
  readonly run: (job: Running) => ReturnType<Connection["use"]>
  /** Called when the last line of the audit is written, or could not be. */
  readonly onEnd?: ((job: Job) => void) | undefined
}

/** All jobs. */
export interface Jobs {
  readonly all: () => ReadonlyArray<Job>
  readonly of: (id: string) => Job | undefined
  /** Begins a job, when its audit is written. It fails where another one works on the queue. */
  readonly begin: (work: Work, operator: string) => Effect.Effect<Job, Refusal>
  /** Asks a job to stop. */
  readonly stop: (id: string) => void
}

/** The role that may begin a job of each kind, and stop it. */
export const roleOf: { readonly [K in Job["kind"]]: Action } = {
  plan: "redrive",
  redrive: "redrive",
  edit: "redrive",
  park: "redrive",
  purge: "purge",
  "purge-delayed": "purge",
  export: "bodies"
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

/** A new id, which is one of an operation as well. */
export const newId = (): string => randomUUID().replaceAll("-", "").slice(0, 12)

const newJob = ({ connection, kind, queue, selection, to }: Work, operator: string, begun: number): Job => ({
  id: newId(),
  kind,
  place: { broker: connection.name, queue, ...selection.search },
  selection,
  to,
  targets: connection.queues.map(({ name }) => name),
  operator,
  begun,
  ended: undefined,
  report: undefined,
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
          yield* Effect.tapError(Audit.begin(audit, operation), () => Effect.sync(() => void jobs.delete(id)))
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
