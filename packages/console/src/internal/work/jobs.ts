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

/** The letters of a job: those of one cause, or all. */
export interface Selection {
  /** The id of the cause; `undefined` for all letters. */
  readonly cause: string | undefined
  /** The cause in words. */
  readonly title: string
}

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
  readonly kind: "plan" | "redrive" | "purge" | "purge-delayed" | "export"
  readonly place: Place
  readonly selection: Selection
  readonly operator: string
  readonly begun: number
  /** `undefined` while it runs. */
  readonly ended: number | undefined
  /** The report so far; `undefined` for a purge, and before there is any. */
  readonly report: DeadLetters.RedriveReport | undefined
  /** `undefined` for a redrive, and before a purge has ended. */
  readonly purged: Purged | undefined
  /** `undefined` where it is no export. */
  readonly exported: Exported | undefined
  /** Why it failed. */
  readonly trouble: string | undefined
  /** Whether somebody has asked it to stop. */
  readonly isStopping: boolean
  /** The redrive that has followed a dry run: there is one at most. */
  readonly usedBy: string | undefined
}

/** The work of a job: it tells of its progress, and ends soon after the signal. */
export interface Work {
  readonly kind: Job["kind"]
  readonly connection: Connection
  readonly queue: string
  readonly selection: Selection
  /** The id of the dry run that it follows. */
  readonly plan?: string | undefined
  /** For the audit. */
  readonly options: Readonly<Record<string, unknown>>
  readonly run: (
    job: string,
    signal: AbortSignal,
    tell: (progress: Pick<Job, "report"> | Pick<Job, "purged"> | Pick<Job, "exported">) => void
  ) => ReturnType<Connection["use"]>
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

const newJob = (kind: Job["kind"], place: Place, selection: Selection, operator: string, begun: number): Job => ({
  id: newId(),
  kind,
  place,
  selection,
  operator,
  begun,
  ended: undefined,
  report: undefined,
  purged: undefined,
  exported: undefined,
  trouble: undefined,
  isStopping: false,
  usedBy: undefined
})

/** Jobs that are stopped, and waited for, when the scope closes. */
export const make = (audit: Audit.Write): Effect.Effect<Jobs, never, Scope.Scope> =>
  Effect.gen(function* () {
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
        const { exported, purged, report } = jobs.get(id)!
        const lost = yield* Audit.end(audit, operation, {
          outcome: failure === undefined ? ((report ?? purged ?? exported)?.stoppedBy ?? "done") : "failed",
          ...(failure === undefined ? {} : { error: failure }),
          queues: [{ queue: operation.queues[0], ...booked(report, mask), ...purged, ...exported }]
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
      begin: ({ connection, kind, onEnd = () => {}, options, plan, queue, run, selection }, operator) =>
        Effect.gen(function* () {
          const place = { broker: connection.name, queue }
          const other = [...jobs.values()].find(
            (job) => job.ended === undefined && job.place.broker === place.broker && job.place.queue === queue
          )
          if (other !== undefined) {
            const detail = `job ${other.id} of ${other.operator} works on ${queue}`
            return yield* new Refusal({ status: 409, detail, remedy: "Wait for its end, or stop it" })
          }
          const follower = plan === undefined ? undefined : jobs.get(plan)?.usedBy
          if (follower !== undefined) {
            const detail = `the dry run ${plan} was followed by the redrive ${follower}`
            return yield* new Refusal({ status: 409, detail, remedy: "Nothing was done. Count again" })
          }
          const job = newJob(kind, place, selection, operator, yield* Clock.currentTimeMillis)
          const { id } = job
          // Before the audit is written, so that nobody else begins meanwhile.
          jobs.set(id, job)
          const operation = { id, command: `console ${kind}`, operator, broker: place.broker, queues: [queue], options }
          yield* Effect.tapError(Audit.begin(audit, operation), () => Effect.sync(() => void jobs.delete(id)))
          if (plan !== undefined && jobs.has(plan)) change(plan, { usedBy: id })
          const stop = new AbortController()
          const work = Effect.flatMap(Effect.exit(run(id, stop.signal, (told) => change(id, told))), (exit) =>
            Effect.map(finish(id, operation, exit, connection.mask), () => onEnd(jobs.get(id)!))
          )
          running.set(id, { stop, fiber: yield* Effect.forkDetach(work) })
          const oldest = [...jobs.values()].find(({ ended }) => ended !== undefined)
          if (jobs.size > most && oldest !== undefined) jobs.delete(oldest.id)
          return job
        })
    }
  })
