/** Logs failures of handlers: the first of each pattern at once, then one line per pattern and minute. */
import { type ErrorSummary, truncateError } from "../message/Metadata.ts"
import * as ErrorPattern from "./ErrorPattern.ts"
import * as Log from "../port/Log.ts"
import * as BoundedMap from "../runtime/BoundedMap.ts"
import type { Timer, Timers } from "../runtime/Timers.ts"

/** The clock and the writer of a failure log. */
export interface Options {
  /** Timers of the consumer. */
  readonly timers: Pick<Timers, "after" | "cancel" | "now">
  /** Writes a structured warning. */
  readonly warn: (message: string, annotations: Log.Annotations) => void
}

/** A running failure log. */
export interface FailureLog {
  /** Logs a failure, or counts it for the next line of its pattern. `subject` has the log fields of its message. */
  readonly add: (subject: Log.Annotations, error: ErrorSummary) => void
  /** Logs the failures that were counted but not yet logged. */
  readonly close: () => void
}

/** Failures of one pattern that are counted but not logged. */
interface Pending {
  readonly pattern: string
  count: number
  /** The newest failure, the example of the next line. */
  subject: Log.Annotations
  error: ErrorSummary
  lastFailure: number
  timer: Timer | undefined
}

/** Milliseconds between two lines of a pattern. A pattern without a failure for that long is forgotten. */
const period = 60_000

/** The most patterns at a time. All other failures share one line, so error texts that never repeat cannot flood the log. */
const maxPatterns = 50

const otherPatterns = "(other patterns)"

/** The most error texts whose pattern is cached: in an outage, most failures have the same few texts. */
const maxTexts = 100

/** Makes a log without failures. */
export const make = ({ timers, warn }: Options): FailureLog => {
  const pendings = new Map<string, Pending>()
  const patterns = BoundedMap.make<string>(maxTexts)

  const patternOf = ({ message, name }: ErrorSummary): string => {
    const text = `${name}: ${message}`
    const pattern = patterns.get(text) ?? ErrorPattern.of(message)
    patterns.set(text, pattern)
    return pattern
  }

  const write = (line: string, { count, error, pattern, subject }: Pending): void =>
    warn(line, { ...subject, count, pattern, ...Log.errorFields(truncateError(error)) })

  const writeCounted = (pending: Pending): void => {
    if (pending.count > 0) write("a handler failed again", pending)
    pending.count = 0
  }

  const wait = (key: string, pending: Pending): void => {
    pending.timer = timers.after(period, () => {
      if (pending.count === 0) return void pendings.delete(key)
      writeCounted(pending)
      wait(key, pending)
    })
  }

  return {
    add: (subject, error) => {
      const lastFailure = timers.now()
      const { message, name } = truncateError({ name: error.name, message: error.message })
      const exactPattern = patternOf({ name, message })
      const exactKey = JSON.stringify([name, exactPattern])
      const isOther = !pendings.has(exactKey) && pendings.size >= maxPatterns
      const [key, pattern] = isOther ? [otherPatterns, otherPatterns] : [exactKey, exactPattern]
      const current = pendings.get(key)
      if (current !== undefined && lastFailure - current.lastFailure < period) {
        Object.assign(current, { count: current.count + 1, subject, error, lastFailure })
        return
      }
      if (current !== undefined) {
        // A blocked event loop has delayed its timer.
        writeCounted(current)
        timers.cancel(current.timer)
      }
      const pending = { pattern, count: 1, subject, error, lastFailure, timer: undefined }
      pendings.set(key, pending)
      write("a handler failed", pending)
      pending.count = 0
      wait(key, pending)
    },
    close: () => {
      for (const pending of pendings.values()) writeCounted(pending)
      pendings.clear()
    }
  }
}
