/**
 * Letters and causes as operators may see them: the hook has redacted them, and secrets of the configuration are removed.
 */
import { ErrorPattern } from "@requeue/core/port"
import type { DeadLetters } from "@requeue/operations"
import * as Redaction from "../Redaction.ts"
import type { Place } from "./paths.ts"
import * as Secrets from "./secrets.ts"
import { hookFailed } from "./work/body.ts"
import type { Kept } from "./work/letters.ts"

/** Returns a value whose texts have no secrets. */
const struck = (value: unknown, secrets: ReadonlyArray<string>): unknown =>
  Secrets.struck(value, (text) => Secrets.strike(text, secrets))

const isTexts = (value: unknown): boolean =>
  typeof value === "object" && value !== null && Object.values(value).every((each) => typeof each === "string")

/** Whether a value is an error. A hook may leave out the stack. */
const isError = (value: unknown): boolean =>
  typeof value === "object" && value !== null && isTexts({ ...value, stack: Reflect.get(value, "stack") ?? "" })

/** Whether the answer of a hook is a content. This is checked, because a hook may be written in JavaScript. */
const isContent = (answer: unknown): answer is Redaction.Content => {
  const { error = {}, headers, history = [], id = "" } = Object(answer) as Readonly<Record<string, unknown>> // Each field is checked.
  return isTexts(headers) && isError(error) && Array.isArray(history) && isTexts(history) && typeof id === "string"
}

const { mark } = Redaction

/**
 * Returns the hook of a console. It fails if the given hook throws or returns anything else, and hides the hook's error,
 * which may quote the letter. Its answer is a copy, which the hook cannot change afterwards.
 */
export const guarded =
  (redact: Redaction.Redact, secrets: ReadonlyArray<string>): Redaction.Redact =>
  (content, place) => {
    const { broker, queue } = place
    try {
      const answer = struck(redact(content, { broker, queue }), secrets)
      if (isContent(answer)) return answer
    } catch {}
    throw hookFailed
  }

/** Returns the content as the hook leaves it; empty if the hook fails. */
export const left = (redact: Redaction.Redact, content: Redaction.Content, place: Place): Redaction.Content => {
  try {
    return redact(content, place)
  } catch {
    return { headers: {} }
  }
}

/**
 * Returns the message of an error after the hook. A message may quote the body, so operators without the role `bodies` see
 * only the message's pattern, which has placeholders. The hook runs before the pattern is made, because it could not find a
 * secret that is partly a placeholder.
 */
export const message = (shown: string | undefined, mayBodies: boolean): string =>
  shown === undefined ? mark : mayBodies ? shown : ErrorPattern.of(shown)

/** A cause with the message of one of its errors. */
export interface Cause extends DeadLetters.Cause {
  readonly message: string | undefined
}

/** Returns a cause as operators may see it; empty if the hook fails. */
export const cause = <A extends Cause>(redact: Redaction.Redact, shown: A, place: Place): A => {
  const { error: name, message: example } = shown
  if (example === undefined) return shown
  try {
    const { error } = redact({ headers: {}, error: { name: name ?? "", message: example } }, place)
    const pattern = message(error?.message, false)
    return { ...shown, error: error?.name ?? mark, message: pattern, pattern }
  } catch {
    const pattern = "the redact hook failed"
    return { ...shown, error: mark, message: pattern, pattern }
  }
}

/** Returns a letter as operators may see it. */
export const letter = (
  redact: Redaction.Redact,
  { headers, history, id, origin, ...kept }: Kept,
  place: Place,
  mayBodies: boolean
): Kept => {
  const content = { headers, id, error: origin?.error, history: history.map(({ error }) => error) }
  const shown = left(redact, content, place)
  return {
    ...kept,
    id: shown.id ?? mark,
    headers: shown.headers,
    history: history.map((attempt, index) => ({ ...attempt, error: message(shown.history?.[index], mayBodies) })),
    origin: origin && {
      ...origin,
      error: {
        name: shown.error?.name ?? mark,
        message: message(shown.error?.message, mayBodies),
        // A stack may quote the body as well.
        stack: mayBodies ? shown.error?.stack : undefined
      }
    }
  }
}
