/** An export as a job: letters are read while somebody takes their lines, and stay where they are. */
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import type * as Semaphore from "effect/Semaphore"
import type { Redact } from "../../Redaction.ts"
import type { Connection } from "./connections.ts"
import type { Exported, Work } from "./job.ts"
import { longest } from "./looks.ts"
import * as Pause from "./pause.ts"
import * as RedactedLine from "./redactedLine.ts"
import { mostOf, type Selection } from "./selection.ts"

/** Characters of lines that are given away at a time, about. */
const portion = 64 * 1024

/**
 * Milliseconds for which a reader may take nothing, and for which an export lasts: nobody else gets the letters meanwhile.
 */
const timeouts = { idle: 60_000, whole: 30 * 60_000 }

/** The work, and the lines that it writes. A stream that is not whole ends with an error, and so does its download. */
export interface Export {
  readonly work: Work
  readonly body: ReadableStream<Uint8Array>
}

const nothing: Exported = { written: 0, redacted: 0, browsed: 0, total: undefined, stoppedBy: undefined }

/** A stream of lines with a writer that waits until they are read. */
const pipe = () => {
  // Nothing is kept for a reader that does not ask.
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>(undefined, undefined, { highWaterMark: 0 })
  const writer = writable.getWriter()
  const ignore = (ending: Promise<void>): void => void ending.catch(() => undefined)
  ignore(writer.closed)
  const encoder = new TextEncoder()
  return {
    body: readable,
    /** Whether it was read. */
    write: (text: string): Effect.Effect<boolean> =>
      Effect.tryPromise(() => writer.write(encoder.encode(text))).pipe(
        Effect.timeout(timeouts.idle),
        Effect.match({ onSuccess: () => true, onFailure: () => false })
      ),
    close: () => ignore(writer.close()),
    abort: () => ignore(writer.abort(new Error("the export is not whole")))
  }
}

/** Reads letters, and gives away their lines. */
export const make = (
  connection: Connection,
  queue: string,
  selection: Selection,
  { redact, turn }: { readonly redact: Redact; readonly turn: Semaphore.Semaphore }
): Export => {
  const { abort, body, close, write } = pipe()
  const place = { broker: connection.name, queue }
  const run: Work["run"] = ({ signal, tell }) => {
    let exported = nothing
    const change = (changed: Partial<Exported>) => {
      exported = { ...exported, ...changed }
      tell({ exported })
    }
    const stop = () => abort()
    // It may have waited for its turn until then.
    if (signal.aborted) stop()
    signal.addEventListener("abort", stop, { once: true })
    const through = connection.use(() =>
      Effect.scoped(
        Effect.gen(function* () {
          const dead = yield* DeadLetters.make(queue)
          const { next, progress } = yield* dead.read({
            limit: mostOf(selection) ?? longest,
            filter: selection.isMeant
          })
          const pause = yield* Pause.make
          let [lines, count, redacted] = ["", 0, 0]
          /** Whether somebody has taken the lines. */
          const give = Effect.gen(function* () {
            if (lines !== "" && !(yield* write(lines))) return false
            change({ ...progress(), written: exported.written + count, redacted: exported.redacted + redacted })
            ;[lines, count, redacted] = ["", 0, 0]
            return true
          })
          for (let page = yield* next; page !== undefined; page = yield* next) {
            for (const letter of page) {
              const { isRedacted, line } = yield* RedactedLine.of(redact, letter, place)
              lines += `${line}\n`
              count++
              if (isRedacted) redacted++
              if (lines.length >= portion && !(yield* give)) return false
              yield* pause
            }
          }
          return yield* give
        })
      )
    )
    const inTime = Effect.timeoutOrElse(turn.withPermits(1)(through), {
      duration: timeouts.whole,
      orElse: () => Effect.succeed(false)
    })
    return Effect.ensuring(
      Effect.map(inTime, (isTaken) => change({ stoppedBy: isTaken ? undefined : signal.aborted ? "abort" : "reader" })),
      Effect.sync(() => signal.removeEventListener("abort", stop))
    )
  }
  return {
    body,
    work: {
      kind: "export",
      connection,
      queue,
      selection,
      options: { letters: selection.title },
      run,
      // Whoever has the end of the file has one whose audit is whole.
      onEnd: ({ exported, trouble }) => (trouble === undefined && exported?.stoppedBy === undefined ? close() : abort())
    }
  }
}
