/** Lines of the log. The logger is the program's own, and what it throws would end whatever writes the line. */
import * as Effect from "effect/Effect"

/** Writes lines; what a logger throws is left out. */
export const contained = (lines: Effect.Effect<void>): Effect.Effect<void> =>
  Effect.catchDefect(lines, () => Effect.void)
