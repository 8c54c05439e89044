/** Messages in backoff as people may see them. */
import { ErrorPattern } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Redaction from "../Redaction.ts"
import type { Place } from "./paths.ts"
import type { Refusal } from "./refusal.ts"
import * as Shown from "./shown.ts"
import type { Waiting } from "./work/delayed.ts"

/** A message that waits as people may see it, with the error of its last attempt as of a letter. */
export const waiting = (
  redact: Redaction.Redact,
  { error, headers, id, ...kept }: Waiting,
  place: Place,
  mayBodies: boolean
): Effect.Effect<Waiting, Refusal> =>
  Effect.try({
    try: () => {
      const told = error === undefined ? [] : [mayBodies ? error : ErrorPattern.of(error)]
      const shown = redact({ headers, id, history: told }, place)
      return {
        ...kept,
        id: shown.id ?? Redaction.mark,
        headers: shown.headers,
        error: error === undefined ? undefined : (shown.history?.[0] ?? Redaction.mark)
      }
    },
    catch: () => Shown.hookFailed
  })
