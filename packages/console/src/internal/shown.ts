/** Letters and causes as people may see them: all that is shown of them passes the hook, and has no secrets of the configuration. */
import { type DeadLetters, ErrorPattern } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Redaction from "../Redaction.ts"
import type { Place } from "./paths.ts"
import { Refusal } from "./refusal.ts"
import * as Secrets from "./secrets.ts"
import type { Kept } from "./work/letters.ts"

/** A value whose texts have no secrets. */
const struck = (value: unknown, secrets: ReadonlyArray<string>): unknown => {
  if (typeof value === "string") return Secrets.strike(value, secrets)
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return value
  if (Array.isArray(value)) return value.map((each) => struck(each, secrets))
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [Secrets.strike(name, secrets), struck(each, secrets)])
  )
}

const isTexts = (value: unknown): boolean =>
  typeof value === "object" && value !== null && Object.values(value).every((each) => typeof each === "string")

/** Whether an answer of a hook is a content; hooks may be JavaScript. */
const isContent = (answer: unknown): answer is Redaction.Content => {
  const { error = {}, headers, history = [], id = "" } = Object(answer) as Readonly<Record<string, unknown>> // Each is looked at.
  return isTexts(headers) && isTexts(error) && Array.isArray(history) && isTexts(history) && typeof id === "string"
}

/** The hook of a console: it throws where the given one does, or answers something else. */
export const guarded =
  (redact: Redaction.Redact, secrets: ReadonlyArray<string>): Redaction.Redact =>
  (content, place) => {
    const { broker, queue } = place
    const answer: unknown = redact(content, { broker, queue })
    if (!isContent(answer)) throw new TypeError("redact must answer a content")
    return struck(answer, secrets) as Redaction.Content // Of the same shape.
  }

const { mark } = Redaction

/** The refusal of what nobody can say how it may be seen. */
export const hookFailed = new Refusal({
  status: 503,
  detail: "the redact hook failed",
  remedy: "Nothing is shown. Mend the hook"
})

/** A cause as people may see it. Where the hook fails, that is nothing. */
export const cause = <A extends DeadLetters.Cause>(redact: Redaction.Redact, shown: A, place: Place): A => {
  const { error: name, pattern: message } = shown
  if (name === undefined && message === undefined) return shown
  try {
    const { error } = redact({ headers: {}, error: { name: name ?? "", message: message ?? "" } }, place)
    return { ...shown, error: error?.name ?? mark, pattern: error?.message ?? mark }
  } catch {
    return { ...shown, error: mark, pattern: "the redact hook failed" }
  }
}

/**
 * A letter as people may see it. Messages of errors may quote the body: who may not see bodies sees their patterns, which have
 * placeholders for what is quoted.
 */
export const letter = (
  redact: Redaction.Redact,
  { headers, history, id, origin, ...kept }: Kept,
  place: Place,
  mayBodies: boolean
): Effect.Effect<Kept, Refusal> => {
  const told = (message: string) => (mayBodies ? message : ErrorPattern.of(message))
  const error = origin && { name: origin.error.name, message: told(origin.error.message) }
  const content = { headers, id, error, history: history.map((attempt) => told(attempt.error)) }
  return Effect.try({
    try: () => {
      const shown = redact(content, place)
      return {
        ...kept,
        id: shown.id ?? mark,
        headers: shown.headers,
        history: history.map((attempt, index) => ({ ...attempt, error: shown.history?.[index] ?? mark })),
        origin: origin && {
          ...origin,
          error: { name: shown.error?.name ?? mark, message: shown.error?.message ?? mark }
        }
      }
    },
    catch: () => hookFailed
  })
}
