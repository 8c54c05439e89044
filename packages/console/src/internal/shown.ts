/** Letters and causes as people may see them: all that is shown of them passes the hook, and has no secrets of the configuration. */
import { ErrorPattern } from "@requeue/core/port"
import type { DeadLetters } from "@requeue/operations"
import * as Redaction from "../Redaction.ts"
import type { Place } from "./paths.ts"
import * as Secrets from "./secrets.ts"
import { hookFailed } from "./work/body.ts"
import type { Kept } from "./work/letters.ts"

/** A value whose texts have no secrets. */
const struck = (value: unknown, secrets: ReadonlyArray<string>): unknown =>
  Secrets.struck(value, (text) => Secrets.strike(text, secrets))

const isTexts = (value: unknown): boolean =>
  typeof value === "object" && value !== null && Object.values(value).every((each) => typeof each === "string")

/** A hook may answer that there is no stack. */
const isError = (value: unknown): boolean =>
  typeof value === "object" && value !== null && isTexts({ ...value, stack: Reflect.get(value, "stack") ?? "" })

/** Whether an answer of a hook is a content; hooks may be JavaScript. */
const isContent = (answer: unknown): answer is Redaction.Content => {
  const { error = {}, headers, history = [], id = "" } = Object(answer) as Readonly<Record<string, unknown>> // Each is looked at.
  return isTexts(headers) && isError(error) && Array.isArray(history) && isTexts(history) && typeof id === "string"
}

const { mark } = Redaction

/**
 * The hook of a console. It throws that it failed where the given one throws, or answers something else: what a hook throws may
 * quote the letter, and is told to nobody. Its answer is a copy, whose parts are what they were when they were looked at.
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

/** The content as the hook leaves it. Where it fails, that is nothing, of this content alone. */
export const left = (redact: Redaction.Redact, content: Redaction.Content, place: Place): Redaction.Content => {
  try {
    return redact(content, place)
  } catch {
    return { headers: {} }
  }
}

/**
 * A message of an error, as the hook has left it. It may quote the body: who may not see bodies sees its pattern, which has
 * placeholders for what is quoted. The hook comes first, as it finds no secret of which a part has become a placeholder.
 */
export const message = (shown: string | undefined, mayBodies: boolean): string =>
  shown === undefined ? mark : mayBodies ? shown : ErrorPattern.of(shown)

/** A cause with the message of an error that it has. */
export interface Cause extends DeadLetters.Cause {
  readonly message: string | undefined
}

/** A cause as people may see it. Where the hook fails, that is nothing. */
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

/** A letter as people may see it. */
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
        // Causes may quote the body as well.
        stack: mayBodies ? shown.error?.stack : undefined
      }
    }
  }
}
