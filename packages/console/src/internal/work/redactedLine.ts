/** A letter as a JSON line, as operators may see it. A letter with hidden parts is marked. */
import { type DeadLetters, LetterLine } from "@requeue/operations"
import * as Effect from "effect/Effect"
import { type Content, mark, type Redact } from "../../Redaction.ts"
import type { Place } from "../paths.ts"
import * as Shown from "../shown.ts"
import * as Body from "./body.ts"
import * as Json from "./json.ts"

/** The body as the hook gets it, and its text if it is JSON. */
interface Readable {
  readonly value: unknown
  readonly json?: string | undefined
}

/** The text that replaces a body too large to search. */
const tooLarge = `${mark}: it has more than ${Body.limits.whole} bytes`

/** Returns the readable body; `undefined` if it is too large to search. */
const readable = (letter: DeadLetters.DeadLetter): Effect.Effect<Readable | undefined> =>
  Effect.map(Body.plain(letter), (bytes) => {
    if (bytes.length > Body.limits.whole) return undefined
    const text = Body.textOf(bytes, true)
    const json = text === undefined ? undefined : Body.jsonOf(text)
    return json === undefined ? { value: text ?? bytes } : { value: json.value, json: text }
  })

const isSameBytes = (one: unknown, other: unknown): boolean =>
  one instanceof Uint8Array && other instanceof Uint8Array && Buffer.compare(one, other) === 0

/**
 * Whether nothing is hidden. The hook sees only the last value of a repeated key, so earlier values must not be shown.
 */
const isWhole = (given: Content, shown: Content, json: string | undefined): boolean => {
  const { body: before, ...rest } = given
  const { body: after, ...others } = shown
  const [one, other] = [Body.written(before), Body.written(after)]
  const isBodySame = isSameBytes(before, after) || (one !== undefined && one === other)
  return (
    isBodySame &&
    (json === undefined || Json.isAlike(one ?? "", json)) &&
    JSON.stringify(namesOf(rest)) === JSON.stringify(namesOf(others))
  )
}

/** Returns the parts of a content in a fixed order. */
const namesOf = ({ error, headers, history = [], id }: Content) => [
  Object.entries(headers).toSorted(([one], [other]) => (one < other ? -1 : 1)),
  history,
  id,
  error?.name,
  error?.message,
  error?.stack
]

const bytesOf = (body: unknown): Uint8Array | undefined => {
  if (body instanceof Uint8Array) return body
  const text = typeof body === "string" ? body : Body.written(body ?? mark)
  return text === undefined ? undefined : new TextEncoder().encode(text)
}

/** Returns the letter with its visible parts. */
const hidden = (
  { metadata, origin }: DeadLetters.DeadLetter,
  { error, headers, history = [], id = mark }: Content,
  body: Uint8Array
): LetterLine.Written => {
  const told = { name: error?.name ?? mark, message: error?.message ?? mark, stack: error?.stack }
  const { deadLetter } = metadata
  return {
    body,
    headers,
    origin: origin && { ...origin, error: told },
    metadata: {
      ...metadata,
      id,
      history: metadata.history.map((attempt, index) => ({ ...attempt, error: history[index] ?? mark })),
      ...(deadLetter === undefined ? {} : { deadLetter: { ...deadLetter, error: told } })
    }
  }
}

/** Returns the redacted content; empty if the hook fails. */
const seen = (redact: Redact, content: Content, place: Place): Content => {
  const shown = Shown.left(redact, content, place)
  return bytesOf(shown.body) === undefined ? { headers: {} } : shown
}

/** Returns the line of a letter, and whether parts of the letter are hidden. */
export const of = (
  redact: Redact,
  letter: DeadLetters.DeadLetter,
  place: Place
): Effect.Effect<{ readonly line: string; readonly isRedacted: boolean }> =>
  Effect.map(readable(letter), (body) => {
    const { headers, metadata } = letter
    const content: Content = {
      headers,
      id: metadata.id,
      error: metadata.deadLetter?.error,
      history: metadata.history.map(({ error }) => error),
      body: body === undefined ? tooLarge : body.value
    }
    const shown = seen(redact, content, place)
    if (body !== undefined && isWhole(content, shown, body.json)) {
      return { line: LetterLine.format(place.queue, letter), isRedacted: false }
    }
    const written = hidden(letter, shown, bytesOf(shown.body)!)
    return { line: LetterLine.format(place.queue, written, { isRedacted: true }), isRedacted: true }
  })
