/**
 * The audit of operators: one JSON line before an operation begins, one for each letter before it leaves the queue, and one
 * after the operation. If a line cannot be written, the operation does not begin, or the letter stays. The lines have the
 * fields of `requeue dead-letters redrive --audit`.
 */
import { Failure } from "@requeue/core"
import { AuditLine, type DeadLetters, type LetterFilter } from "@requeue/operations"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import { open } from "node:fs/promises"
import { hostname } from "node:os"
import type { Writable } from "node:stream"
import { Refusal } from "./internal/refusal.ts"

/**
 * Stores audit lines, each with its line end, and resolves when they are stored. A call has one line, or the lines of up to
 * 100 letters. An error stops the operation.
 */
export type Write = (line: string) => void | Promise<void>

/** An operation for the audit. */
export interface Operation {
  readonly id: string
  /** The operation, such as `console redrive`. */
  readonly command: string
  readonly operator: string
  readonly broker: string
  readonly queues: ReadonlyArray<string>
  /** The filter that selects the letters. Default: none. */
  readonly filters?: LetterFilter.LetterFilter | undefined
  /** The options of the request. */
  readonly options: Readonly<Record<string, unknown>>
}

/** Appends a line. First it ends a line that an earlier write left incomplete, for example on a full disk. */
const append = async (path: string, line: string): Promise<void> => {
  const file = await open(path, "a+", 0o600)
  try {
    const { size } = await file.stat()
    const last = size === 0 ? undefined : (await file.read(Buffer.alloc(1), 0, 1, size - 1)).buffer.toString()
    await file.appendFile(last === undefined || last === "\n" ? line : `\n${line}`)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Returns a writer that appends lines to a file one by one, and waits until each is on the disk. Only the owner can read the file. */
export const toFile = (path: string): Write => {
  let last: Promise<unknown> = Promise.resolve()
  return (line) => {
    const kept = last.then(() => append(path, line))
    last = kept.catch(() => undefined)
    return kept
  }
}

/**
 * Returns a writer to a stream such as `process.stderr`, which waits until the stream has accepted each line. If the stream
 * fails, writing the line fails and the process goes on.
 */
export const toStream = (stream: Writable): Write => {
  stream.on("error", () => undefined)
  return (line) =>
    new Promise((resolve, reject) => {
      stream.write(line, (error) => (error ? reject(error) : resolve()))
    })
}

/** Milliseconds until a line must be stored. */
const timeout = 10_000

const messageOf = (error: unknown): string => Failure.summarize(error).message

const lineOf = (event: "begin" | "end", { id, ...operation }: Operation, told: object) =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    const time = new Date(now).toISOString()
    const who = { operation: id, ...operation, host: hostname(), pid: process.pid }
    return `${JSON.stringify({ time, event, ...who, ...told })}\n`
  })

const keep = (write: Write, line: string): Effect.Effect<void, string> =>
  Effect.tryPromise({ try: async () => write(line), catch: messageOf }).pipe(
    Effect.timeoutOrElse({ duration: timeout, orElse: () => Effect.fail(`no answer in ${timeout / 1000} s`) })
  )

/** Writes the audit line for the beginning of an operation. If that fails, the operation must not begin. */
export const begin = (write: Write, operation: Operation): Effect.Effect<void, Refusal> =>
  Effect.flatMap(lineOf("begin", operation, {}), (line) =>
    Effect.mapError(keep(write, line), (reason) => {
      const detail = `the audit could not be written: ${reason}`
      return new Refusal({ status: 503, detail, remedy: "Nothing was done. Make the audit writable, then try again" })
    })
  )

/** Where the letters of an operation go. */
export type Goal = Pick<AuditLine.Operation, "isRemoval" | "to">

/**
 * Writes a line for each letter of an operation before it leaves the queue. `run` runs effects with the console's clock.
 */
export const ofLetters =
  (
    write: Write,
    { broker, command, id, operator, queues }: Operation,
    run: <A, E>(effect: Effect.Effect<A, E>) => Promise<A>
  ) =>
  (goal: Goal): DeadLetters.Audit =>
  async (letters) => {
    const who = { operation: id, command, operator, broker, queue: queues[0] ?? "", ...goal }
    const kept = Effect.flatMap(Clock.currentTimeMillis, (now) => keep(write, AuditLine.ofLetters(who, letters, now)))
    const lost = await run(Effect.match(kept, { onSuccess: () => undefined, onFailure: (reason) => reason }))
    if (lost !== undefined) throw new Error(lost)
  }

/** Writes the audit line for the end of an operation. Returns the error if the line could not be written. */
export const end = (write: Write, operation: Operation, outcome: object): Effect.Effect<string | undefined> =>
  Effect.flatMap(lineOf("end", operation, outcome), (line) =>
    Effect.match(keep(write, line), { onSuccess: () => undefined, onFailure: (reason) => reason })
  )

/**
 * Runs a short operation between the audit lines for its beginning and its end. Fails if one of the two lines cannot be
 * written.
 */
export const around =
  (write: Write, operation: Operation) =>
  <A, E>(work: Effect.Effect<A, E>): Effect.Effect<A, E | Refusal> =>
    Effect.gen(function* () {
      yield* begin(write, operation)
      const exit = yield* Effect.exit(work)
      const error = Option.getOrUndefined(Exit.findErrorOption(exit))
      const outcome = error === undefined ? { outcome: "done" } : { outcome: "failed", error: messageOf(error) }
      const lost = yield* end(write, operation, outcome)
      if (lost === undefined) return yield* exit
      const detail = `the audit could not be written: ${lost}`
      return yield* new Refusal({
        status: 503,
        detail,
        remedy: "The result is not shown. Make the audit writable, then try again"
      })
    })
