/** The body of one letter: found on request, and redacted before it is shown. */
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import { createGunzip, createInflate } from "node:zlib"
import type { Content, Redact } from "../../Redaction.ts"
import type { Place } from "../paths.ts"
import { Refusal } from "../refusal.ts"
import type { Connection, Trouble } from "./connections.ts"
import * as Deadline from "./deadline.ts"
import * as Json from "./json.ts"
import { longest } from "./looks.ts"
import * as Selection from "./selection.ts"

/** A body to show on a page. */
export type Body = (
  | { readonly _tag: "Text"; readonly kind: "JSON" | "text"; readonly text: string }
  | { readonly _tag: "Bytes"; readonly bytes: Uint8Array }
) & {
  /** Bytes of the body in the queue. */
  readonly size: number
  /** Whether the whole body was read; otherwise only its beginning was. */
  readonly isWhole: boolean
}

/**
 * The largest size of a body that is read whole, and the number of bytes that are read of a larger one. They limit the cost
 * of a page.
 */
export const limits = { whole: 256 * 1024, beginning: 64 * 1024 }

/** The largest number of characters of a body that are shown. */
export const longestText = 100_000

const inflates: ReadonlyMap<string | undefined, typeof createGunzip> = new Map([
  ["gzip", createGunzip],
  ["deflate", createInflate]
])

/** Decompresses the beginning only: a few kilobytes may inflate to gigabytes. */
const inflated = async (inflate: ReturnType<typeof createGunzip>, body: Uint8Array): Promise<Uint8Array> => {
  const chunks: Array<Uint8Array> = []
  let size = 0
  inflate.end(body)
  // Cast, because Node gives chunks no type.
  for await (const chunk of inflate as AsyncIterable<Uint8Array>) {
    chunks.push(chunk)
    size += chunk.length
    if (size > limits.whole) break
  }
  return Buffer.concat(chunks)
}

/** Returns the decompressed body if its headers name its compression correctly; otherwise the body. */
export const plain = ({
  body,
  headers
}: Pick<DeadLetters.DeadLetter, "body" | "headers">): Effect.Effect<Uint8Array> => {
  const make = inflates.get(headers["content-encoding"]?.toLowerCase())
  if (make === undefined) return Effect.succeed(body)
  return Effect.promise(() => inflated(make(), body).catch(() => body))
}

/** Returns bytes as text; `undefined` if they are not text. */
export const textOf = (bytes: Uint8Array, isWhole: boolean): string | undefined => {
  try {
    // UTF-16 is valid UTF-8 with NUL between its letters, in which the hook would find nothing.
    if (bytes.includes(0)) return undefined
    // The beginning may end inside a character.
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: !isWhole })
  } catch {
    return undefined
  }
}

/** Returns text as JSON; `undefined` if it is not JSON. */
export const jsonOf = (text: string): { readonly value: unknown; readonly text: string } | undefined => {
  try {
    return { value: JSON.parse(text) as unknown, text } // The type of any JSON.
  } catch {
    return undefined
  }
}

/** Returns a value as JSON; `undefined` if that fails, because the value is too deep or comes from a hook. */
export const written = (value: unknown): string | undefined => {
  try {
    return JSON.stringify(value)
  } catch {
    return undefined
  }
}

/**
 * Returns the given text if nothing is hidden and no key repeats, because the parsed value loses digits of large numbers.
 */
const printed = (shown: string, { text, value }: { readonly value: unknown; readonly text: string }): string =>
  Json.indented(shown === written(value) && Json.isAlike(shown, text) ? text : shown, longestText)

/** The refusal of a request after the hook has failed. */
export const hookFailed = new Refusal({
  status: 503,
  detail: "the redact hook failed",
  remedy: "Nothing is shown. Fix the function in the option redact"
})

/** Redacts the content. If the hook throws, everything is hidden. */
const redacted = (redact: Redact, content: Content, place: Place): Effect.Effect<Content, Refusal> =>
  Effect.try({ try: () => redact(content, place), catch: () => hookFailed })

const show = (redact: Redact, letter: DeadLetters.DeadLetter, place: Place): Effect.Effect<Body, Refusal> =>
  Effect.gen(function* () {
    const all = yield* plain(letter)
    const isWhole = all.length <= limits.whole
    const bytes = isWhole ? all : all.subarray(0, limits.beginning)
    const told = { size: letter.body.length, isWhole }
    const text = textOf(bytes, isWhole)
    const json = text === undefined ? undefined : jsonOf(isWhole ? text : Json.closed(text))
    const { body } = yield* redacted(
      redact,
      { headers: letter.headers, body: json === undefined ? (text ?? bytes) : json.value },
      place
    )
    if (body instanceof Uint8Array) return { _tag: "Bytes", bytes: body, ...told }
    if (json === undefined || typeof body === "string") {
      return { _tag: "Text", kind: json === undefined ? "text" : "JSON", text: String(body), ...told }
    }
    const shown = written(body)
    if (shown === undefined) return yield* hookFailed
    return { _tag: "Text", kind: "JSON", text: printed(shown, json), ...told }
  })

/** Milliseconds until the search for a letter ends. The letter may come after 100,000 others. */
const timeout = 30_000

/** Returns the semaphore of a queue. Two searches at the same time would hide letters from each other. */
export type Turns = (place: Place) => Semaphore.Semaphore

/** Makes a semaphore for each queue. */
export const turns = (): Turns => {
  const all = new Map<string, Semaphore.Semaphore>()
  return ({ broker, queue }) => {
    const key = JSON.stringify([broker, queue])
    const own = all.get(key) ?? Semaphore.makeUnsafe(1)
    all.set(key, own)
    return own
  }
}

/** Finds a letter by its key. */
export const search = (
  connection: Connection,
  queue: string,
  key: string,
  turn: Semaphore.Semaphore
): Effect.Effect<DeadLetters.DeadLetter, Refusal | Trouble> =>
  Effect.gen(function* () {
    const look = connection.use(() =>
      Effect.flatMap(DeadLetters.make(queue), ({ list }) => list({ limit: 1, filter: Selection.withKey(key) }))
    )
    const found = yield* Deadline.within(connection.name, timeout)(turn.withPermits(1)(look))
    const [letter] = found
    if (letter === undefined) {
      const detail = `the letter is not among the first ${longest} of ${queue}, or another reader holds it`
      return yield* new Refusal({ status: 404, detail, remedy: "The letter may have been redriven. Browse again" })
    }
    return letter
  })

/** Finds a letter by its key, and returns its body. */
export const find = (
  connection: Connection,
  queue: string,
  key: string,
  { redact, turn }: { readonly redact: Redact; readonly turn: Semaphore.Semaphore }
): Effect.Effect<Body, Refusal | Trouble> =>
  Effect.flatMap(search(connection, queue, key, turn), (letter) =>
    show(redact, letter, { broker: connection.name, queue })
  )
