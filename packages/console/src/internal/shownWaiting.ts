/** Delayed messages as operators may see them. */
import * as Redaction from "../Redaction.ts"
import type { Place } from "./paths.ts"
import * as Shown from "./shown.ts"
import type { Waiting } from "./work/delayed.ts"

/** Returns a delayed message as operators may see it. Its last error is redacted like that of a letter. */
export const waiting = (
  redact: Redaction.Redact,
  { error, headers, id, ...kept }: Waiting,
  place: Place,
  mayBodies: boolean
): Waiting => {
  const shown = Shown.left(redact, { headers, id, history: error === undefined ? [] : [error] }, place)
  return {
    ...kept,
    id: shown.id ?? Redaction.mark,
    headers: shown.headers,
    error: error === undefined ? undefined : Shown.message(shown.history?.[0], mayBodies)
  }
}
