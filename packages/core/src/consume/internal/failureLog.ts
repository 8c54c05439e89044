/** Log lines about failures of handlers: the first of each pattern at once, then one line per pattern and minute. */
import { type ErrorSummary, truncateError } from "../../message/Metadata.ts"
import * as ErrorPattern from "../../observe/ErrorPattern.ts"
import * as Log from "../../port/Log.ts"
import * as BoundedMap from "../../runtime/BoundedMap.ts"
import type { Timer, Timers } from "../../runtime/Timers.ts"

export interface Options {
  readonly timers: Pick<Timers, "after" | "cancel" | "now">
  /** Writes a structured warning. */
  readonly warn: (message: string, annotations: Log.Annotations) => void
}

export interface FailureLog {
  /** Logs a failure, or counts it for the next line of its pattern. `subject` names its message. */
  readonly add: (subject: Log.Annotations, error: ErrorSummary) => void
  /** Logs the failures that no line has counted. */
  readonly close: () => void
}

/** Failures of one pattern that no line has counted. */
interface Pending {
  readonly pattern: string
  count: number
  /** The example of the next line. */
  subject: Log.Annotations
  error: ErrorSummary
  lastFailure: number
  timer: Timer | undefined
}

/** Milliseconds between two lines of a pattern. A pattern without a failure in that time is forgotten. */
const period = 60_000

/** The most patterns at a time. The failures of all others share one line, so a text that never repeats cannot flood the log. */
const maxPatterns = 50

const otherPatterns = "(other patterns)"

/** The most error texts whose pattern is remembered: in an outage, most failures have the same few. */
const maxTexts = 100

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
      const ownPattern = patternOf({ name, message })
      const ownKey = JSON.stringify([name, ownPattern])
      const isOther = !pendings.has(ownKey) && pendings.size >= maxPatterns
      const [key, pattern] = isOther ? [otherPatterns, otherPatterns] : [ownKey, ownPattern]
      const known = pendings.get(key)
      if (known !== undefined && lastFailure - known.lastFailure < period) {
        Object.assign(known, { count: known.count + 1, subject, error, lastFailure })
        return
      }
      if (known !== undefined) {
        // Its timer is late where the event loop stood still.
        writeCounted(known)
        timers.cancel(known.timer)
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
