/** An export as a job. It reads letters while the browser reads lines, and the letters stay in the queue. */
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

/** The approximate characters of a chunk. */
const portion = 64 * 1024

/**
 * Milliseconds until a browser that reads nothing is dropped, and until an export ends: it hides the letters from other readers.
 */
const timeouts = { idle: 60_000, whole: 30 * 60_000 }

/** The work and its lines. An incomplete stream ends with an error, and so does its download. */
export interface Export {
  readonly work: Work
  readonly body: ReadableStream<Uint8Array>
}

const nothing: Exported = { written: 0, redacted: 0, browsed: 0, total: undefined, stoppedBy: undefined }

/** A stream of lines with a writer that waits for the reader. */
const pipe = () => {
  // The stream buffers nothing.
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>(undefined, undefined, { highWaterMark: 0 })
  const writer = writable.getWriter()
  const ignore = (ending: Promise<void>): void => void ending.catch(() => undefined)
  ignore(writer.closed)
  const encoder = new TextEncoder()
  return {
    body: readable,
    /** Whether the chunk was read. */
    write: (text: string): Effect.Effect<boolean> =>
      Effect.tryPromise(() => writer.write(encoder.encode(text))).pipe(
        Effect.timeout(timeouts.idle),
        Effect.match({ onSuccess: () => true, onFailure: () => false })
      ),
    close: () => ignore(writer.close()),
    abort: () => ignore(writer.abort(new Error("the export is incomplete")))
  }
}

/** Reads letters, and writes their lines. */
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
    // It may have waited for the queue until now.
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
          /** Whether the browser has read the lines. */
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
      // The file ends after the audit has its last line.
      onEnd: ({ exported, trouble }) => (trouble === undefined && exported?.stoppedBy === undefined ? close() : abort())
    }
  }
}
