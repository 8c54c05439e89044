/**
 * The audit of what operators do: a line of JSON before an operation begins, and one when it has ended. An operation whose
 * first line cannot be written does not begin. Its fields are those of `requeue dead-letters redrive --audit`.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import { appendFile } from "node:fs/promises"
import { hostname } from "node:os"
import { Refusal } from "./internal/refusal.ts"

/** Takes a line with its line end, and resolves when it is kept. What it throws stops the operation. */
export type Write = (line: string) => void | Promise<void>

/** An operation that begins. */
export interface Operation {
  readonly id: string
  /** The operation, as `console redrive`. */
  readonly command: string
  readonly operator: string
  readonly broker: string
  readonly queues: ReadonlyArray<string>
  /** The request, as it is written in JSON. */
  readonly options: Readonly<Record<string, unknown>>
}

/** Appends lines to a file, which only its owner can read, and waits until they are on the disk. */
export const toFile =
  (path: string): Write =>
  (line) =>
    appendFile(path, line, { mode: 0o600, flush: true })

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const lineOf = (event: "begin" | "end", { id, ...operation }: Operation, told: object) =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    const time = new Date(now).toISOString()
    const who = { operation: id, ...operation, host: hostname(), pid: process.pid }
    return `${JSON.stringify({ time, event, ...who, ...told })}\n`
  })

const keep = (write: Write, line: string): Effect.Effect<void, string> =>
  Effect.tryPromise({ try: async () => write(line), catch: messageOf })

/** Writes the first line of an operation. Where that fails, nothing may be done. */
export const begin = (write: Write, operation: Operation): Effect.Effect<void, Refusal> =>
  Effect.flatMap(lineOf("begin", operation, {}), (line) =>
    Effect.mapError(keep(write, line), (reason) => {
      const detail = `the audit could not be written: ${reason}`
      return new Refusal({ status: 503, detail, remedy: "Nothing was done. Mend the audit first" })
    })
  )

/** Writes the last line, and answers why it could not. */
export const end = (write: Write, operation: Operation, outcome: object): Effect.Effect<string | undefined> =>
  Effect.flatMap(lineOf("end", operation, outcome), (line) =>
    Effect.match(keep(write, line), { onSuccess: () => undefined, onFailure: (reason) => reason })
  )

/** Runs short work between its two lines. It fails where either cannot be written. */
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
      return yield* new Refusal({ status: 503, detail, remedy: "It is not shown. Mend the audit first" })
    })
