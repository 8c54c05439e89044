/**
 * The audit of what operators do to dead letters: a line of JSON when an operation begins, and one when it ends, in a file
 * or on standard error. An operation whose first line cannot be written does not begin.
 */
import { DeadLetters } from "@requeue/core"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Flag from "effect/cli/Flag"
import * as Option from "effect/Option"
import { randomUUID } from "node:crypto"
import { writeFileSync } from "node:fs"
import { hostname, userInfo } from "node:os"
import { resolve } from "node:path"
import type { Writable } from "node:stream"
import { Process } from "./Process.ts"
import * as LetterFilter from "./LetterFilter.ts"
import * as RedriveView from "./RedriveView.ts"
import { UsageError } from "./UsageError.ts"

export const flags = {
  audit: Flag.String("audit").pipe(
    Flag.withMetavar("FILE"),
    Flag.withDescription(
      "Append a line of JSON for the beginning and the end of the operation to this file; - for standard error"
    ),
    Flag.optional
  ),
  operator: Flag.String("operator").pipe(
    Flag.withMetavar("NAME"),
    Flag.withDescription("Who does it, for --audit. Default: the user of the operating system"),
    Flag.optional
  )
}

/** The values of the flags. */
export interface Flags {
  readonly audit: Option.Option<string>
  readonly operator: Option.Option<string>
}

/** An operation that begins. */
export interface Operation {
  readonly id: string
  /** The command, as `dead-letters purge`. */
  readonly command: string
  /** The broker's name. */
  readonly broker: string
  readonly queues: ReadonlyArray<string>
  readonly filters: LetterFilter.Filter
  /** Further options, as they are written in JSON. */
  readonly options: Readonly<Record<string, unknown>>
}

/** The end of an operation, as far as its report tells. */
export interface Outcome {
  /** `done`, or why it stopped: `stop-at`, `wait`, `abort`. */
  readonly outcome: string
  readonly queues: ReadonlyArray<unknown>
}

/** A new id of an operation. */
export const newId = (): string => randomUUID().replaceAll("-", "").slice(0, 12)

/** The user of the operating system. */
export const user = (): string => {
  try {
    return userInfo().username
  } catch {
    // A user without a name, as in some containers.
    return String(process.getuid?.() ?? "unknown")
  }
}

const filtersOf = ({ error, id, newerThan, olderThan, origin, reason }: LetterFilter.Filter) => ({
  ...(reason.length === 0 ? {} : { reason }),
  ...(id.length === 0 ? {} : { id }),
  ...Object.fromEntries(
    Object.entries({ error, origin, olderThan, newerThan }).flatMap(([name, value]) =>
      Option.isSome<string | number>(value) ? [[name, value.value]] : []
    )
  )
})

/** Writes a line to a stream, and waits until it has taken it. */
const told = (stream: Writable, line: string): Promise<void> =>
  new Promise((taken, refused) => {
    stream.write(line, (error) => (error ? refused(error) : taken()))
  })

/**
 * Runs an operation between its two lines. `outcome` is asked when it has ended, in whatever way; an operation that fails
 * or is interrupted has an `outcome` that says so, and the error.
 */
export const around =
  ({ audit, operator }: Flags, operation: Operation, outcome: () => Outcome) =>
  <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E | UsageError, R | Process> => {
    if (Option.isNone(audit)) return work
    const file = audit.value
    const who = {
      operation: operation.id,
      command: operation.command,
      operator: Option.getOrElse(operator, user),
      host: hostname(),
      pid: process.pid,
      broker: operation.broker
    }
    const write = (event: "begin" | "end", outcome: object) =>
      Effect.gen(function* () {
        const { cwd, stderr } = yield* Process
        const time = new Date(yield* Clock.currentTimeMillis).toISOString()
        const line = `${JSON.stringify({ time, event, ...who, ...outcome })}\n`
        yield* Effect.tryPromise({
          try: async () => {
            if (file === "-") return told(stderr, line)
            writeFileSync(resolve(cwd(), file), line, { flag: "a", mode: 0o600, flush: true })
          },
          catch: (error) =>
            new UsageError({
              detail: `--audit: ${error instanceof Error ? error.message : String(error)}`,
              remedy:
                event === "begin" ? "Nothing was done. Give a file that can be written" : `Add the line: ${line.trim()}`
            })
        })
      })
    const filters = filtersOf(operation.filters)
    const begin = write("begin", { queues: operation.queues, filters, options: operation.options })
    const end = (exit: Exit.Exit<A, E>) =>
      write("end", {
        ...outcome(),
        ...(Exit.isSuccess(exit) ? {} : { outcome: Exit.hasInterrupts(exit) ? "interrupted" : "failed" }),
        ...errorOf(exit)
      })
    return Effect.andThen(
      begin,
      Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(Effect.exit(restore(work)), (exit) => Effect.andThen(end(exit), exit))
      )
    )
  }

const errorOf = (exit: Exit.Exit<unknown, unknown>) => {
  const error = Option.getOrUndefined(Exit.findErrorOption(exit))
  if (error === undefined) return {}
  const report =
    error instanceof DeadLetters.DeadLettersStopped && error.report !== undefined
      ? { stopped: RedriveView.toJson({ queue: error.queue, report: error.report }) }
      : {}
  return { error: error instanceof Error ? error.message : String(error), ...report }
}
