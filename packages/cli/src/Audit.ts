/**
 * Writes the audit of operations on dead letters to a file or to standard error, in lines of JSON: one when an operation
 * begins, one for each letter before it leaves, and one when the operation ends. An operation whose first line cannot be
 * written does not begin, and a letter whose line cannot be written stays.
 */
import { AuditLine, DeadLetters } from "@requeue/operations"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Flag from "effect/cli/Flag"
import * as Option from "effect/Option"
import { closeSync, constants, fstatSync, fsyncSync, openSync, readSync, statSync, writeSync } from "node:fs"
import { hostname, userInfo } from "node:os"
import { resolve } from "node:path"
import type { Writable } from "node:stream"
import * as Interruption from "./Interruption.ts"
import { Process } from "./Process.ts"
import * as LetterFilter from "./LetterFilter.ts"
import * as RedriveView from "./RedriveView.ts"
import * as TextFlag from "./TextFlag.ts"
import { UsageError } from "./UsageError.ts"

export const flags = {
  audit: TextFlag.make("audit").pipe(
    Flag.withMetavar("FILE"),
    Flag.filter(
      (file) => file !== "",
      () => "must be the name of a file, or - for standard error"
    ),
    Flag.withDescription(
      "Append lines of JSON to this file, for the beginning and the end of the operation and for each letter; - for standard error"
    ),
    Flag.optional
  ),
  operator: TextFlag.make("operator").pipe(
    Flag.withMetavar("NAME"),
    Flag.withDescription("The operator's name for --audit. Default: the user of the operating system"),
    Flag.optional
  )
}

/** The values of the audit's flags. */
export interface Flags {
  readonly audit: Option.Option<string>
  readonly operator: Option.Option<string>
}

/** An operation that begins. */
export interface Operation {
  readonly id: string
  /** The command, such as `dead-letters purge`. */
  readonly command: string
  /** The broker's name. */
  readonly broker: string
  readonly queues: ReadonlyArray<string>
  readonly filters: LetterFilter.Filter
  /** Further options of the operation, as values for JSON. */
  readonly options: Readonly<Record<string, unknown>>
}

/** The end of an operation, made from its report. */
export interface Outcome {
  /** `done`, or why it stopped: `stop-at`, `wait`, `abort`. */
  readonly outcome: string
  readonly queues: ReadonlyArray<unknown>
}

/** Returns the name of the operating system's user. */
export const user = (): string => {
  try {
    return userInfo().username
  } catch {
    // A user without a name, as in some containers.
    return String(process.getuid?.() ?? "unknown")
  }
}

/** Writes a line to a stream, and waits until it is written. */
const taken = (stream: Writable, line: string): Promise<void> =>
  new Promise((resolve, reject) => {
    stream.write(line, (error) => (error ? reject(error) : resolve()))
  })

/** Whether the last line of a file has no end, because a write was incomplete. */
const isTorn = (file: number): boolean => {
  const { size } = fstatSync(file)
  const last = Buffer.alloc(1)
  return size > 0 && readSync(file, last, 0, 1, size - 1) === 1 && last.toString() !== "\n"
}

/**
 * Appends a line to a file, and syncs it to disk. If the file ends with an incomplete line, for example from a full disk,
 * it ends that line first. It never waits: a pipe that no program reads, or that is full, is an error. Windows has no such
 * pipes, and no flag for them.
 */
const appendTo = (file: string, line: string): void => {
  const { O_APPEND, O_CREAT, O_NONBLOCK, O_RDWR, O_WRONLY } = constants
  const isFile = statSync(file, { throwIfNoEntry: false })?.isFile() ?? true
  const opened = openSync(file, O_APPEND | O_CREAT | (isFile ? O_RDWR : O_WRONLY) | O_NONBLOCK, 0o600)
  try {
    const bytes = Buffer.from(isFile && isTorn(opened) ? `\n${line}` : line)
    if (writeSync(opened, bytes) < bytes.length) throw new Error(`only a part of the line fits into ${file}`)
    if (isFile) fsyncSync(opened)
  } finally {
    closeSync(opened)
  }
}

type Event = "begin" | "end"

/** Returns the error of an audit line that was not written. */
const refused = (event: Event, line: string, error: unknown): UsageError =>
  new UsageError({
    detail: `--audit: ${why(error)}`,
    remedy:
      event === "begin"
        ? "Nothing was done. Give --audit a file that can be written"
        : `Add this line to the audit: ${line.trim()}`
  })

const why = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  return "code" in error && error.code === "ENXIO" ? `${error.message}: a pipe without a reader` : error.message
}

/** Appends a line to the file of the flag, or to standard error. */
const writing = (file: string) =>
  Effect.map(Process, ({ cwd, stderr }) => ({
    stderr,
    append: (line: string): void => appendTo(resolve(cwd(), file), line),
    write: async (line: string): Promise<void> =>
      file === "-" ? taken(stderr, line) : appendTo(resolve(cwd(), file), line)
  }))

/**
 * Returns the audit of a queue's letters, which writes a line for each letter before it leaves. Without the flag `--audit`,
 * it returns `undefined` for every queue.
 */
export const ofLetters = (
  { audit, operator }: Flags,
  { broker, command, id }: Pick<Operation, "broker" | "command" | "id">,
  goal: Pick<AuditLine.Operation, "isRemoval" | "to">
) =>
  Effect.gen(function* () {
    if (Option.isNone(audit)) return () => undefined
    const { write } = yield* writing(audit.value)
    const clock = yield* Clock.Clock
    const who = { operation: id, command, operator: Option.getOrElse(operator, user), broker }
    return (queue: string): DeadLetters.Audit =>
      async (letters) => {
        const lines = AuditLine.ofLetters({ ...who, queue, ...goal }, letters, clock.currentTimeMillisUnsafe())
        await write(lines).catch((error: unknown) => {
          throw new Error(`--audit: ${why(error)}`)
        })
      }
  })

/**
 * Runs an operation, and writes the audit lines for its beginning and its end. `outcome` makes the last line after the
 * operation has ended in any way. If the operation fails or is interrupted, that line has the error as well. If a second
 * Ctrl-C ends the operation at once, its outcome is `abandoned`.
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
    const filters = LetterFilter.of(operation.filters)
    return Effect.gen(function* () {
      const { append, stderr, write } = yield* writing(file)
      const clock = yield* Clock.Clock
      const lineOf = (event: Event, told: object): string =>
        `${JSON.stringify({ time: new Date(clock.currentTimeMillisUnsafe()).toISOString(), event, ...who, ...told })}\n`
      const written = (event: Event, told: object) =>
        Effect.suspend(() => {
          const line = lineOf(event, told)
          return Effect.tryPromise({
            try: () => write(line),
            catch: (error) => refused(event, line, error)
          })
        })
      const end = (exit: Exit.Exit<A, E>) =>
        written("end", {
          ...outcome(),
          ...(Exit.isSuccess(exit) ? {} : { outcome: Exit.hasInterrupts(exit) ? "interrupted" : "failed" }),
          ...errorOf(exit)
        })
      const abandoned = () => {
        const line = lineOf("end", { ...outcome(), outcome: "abandoned" })
        try {
          if (file === "-") stderr.write(line)
          else append(line)
        } catch (error) {
          stderr.write(`${refused("end", line, error).message}\n`)
        }
      }
      yield* written("begin", { queues: operation.queues, filters, options: operation.options })
      return yield* Effect.uninterruptibleMask((restore) =>
        Effect.exit(restore(work)).pipe(
          Interruption.withLastWords(abandoned),
          Effect.flatMap((exit) => Effect.andThen(end(exit), exit))
        )
      )
    })
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
