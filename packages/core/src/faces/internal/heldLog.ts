/** Lines of an attempt that are written when it is known that no other one follows. */
import type * as Logger from "effect/Logger"

type Loggers = ReadonlySet<Logger.Logger<unknown, unknown>>
type Line = Logger.Options<unknown>

/** Loggers that hold lines back, for the attempts to reach a broker. */
export interface HeldLog {
  readonly loggers: Loggers
  /** Forgets the lines that are held. */
  readonly drop: () => void
  /** Writes the lines that are held; further lines are written at once. */
  readonly release: () => void
}

/** A line whose fields stay as they are now. */
const frozen = (line: Line): Line => {
  const { fiber } = line
  return { ...line, fiber: Object.create(fiber, { context: { value: fiber.context } }) }
}

/** Holds the lines of these loggers until they are dropped or released. */
export const make = (loggers: Loggers): HeldLog => {
  let held: Array<() => void> | undefined = []
  const holding = (logger: Logger.Logger<unknown, unknown>): Logger.Logger<unknown, unknown> =>
    Object.assign(Object.create(logger), {
      log: (line: Line) => {
        if (held === undefined) return logger.log(line)
        const kept = frozen(line)
        return held.push(() => logger.log(kept))
      }
    })
  return {
    loggers: new Set([...loggers].map(holding)),
    drop: () => {
      if (held !== undefined) held = []
    },
    release: () => {
      const lines = held ?? []
      held = undefined
      for (const write of lines) write()
    }
  }
}
