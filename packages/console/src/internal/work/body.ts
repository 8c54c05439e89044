/** The body of one letter, which is looked for when somebody asks, and redacted before anybody sees it. */
import { DeadLetters } from "@requeue/core"
import * as Effect from "effect/Effect"
import { gunzipSync, inflateSync } from "node:zlib"
import type { Content, Redact } from "../../Redaction.ts"
import type { Place } from "../paths.ts"
import { Refusal } from "../refusal.ts"
import type { Connection, Trouble } from "./connections.ts"
import * as Letters from "./letters.ts"
import { longest } from "./looks.ts"

/** A body as it is shown. */
export type Body =
  | { readonly _tag: "Text"; readonly kind: "JSON" | "text"; readonly text: string; readonly size: number }
  | { readonly _tag: "Bytes"; readonly bytes: Uint8Array; readonly size: number }

/** The most bytes that a body is inflated to: a few kilobytes may hold gigabytes. */
const maxOutputLength = 16 * 1024 * 1024

const inflates: ReadonlyMap<string | undefined, typeof gunzipSync> = new Map([
  ["gzip", gunzipSync],
  ["deflate", inflateSync]
])

/** The body before it was compressed, where its headers say how it was and that is true. */
const plain = ({ body, headers }: Pick<DeadLetters.DeadLetter, "body" | "headers">): Uint8Array => {
  try {
    return inflates.get(headers["content-encoding"]?.toLowerCase())?.(body, { maxOutputLength }) ?? body
  } catch {
    return body
  }
}

const decoder = new TextDecoder("utf-8", { fatal: true })

const textOf = (bytes: Uint8Array): string | undefined => {
  try {
    // UTF-16 is UTF-8 as well, but with NUL between its letters; nothing would be found in that.
    return bytes.includes(0) ? undefined : decoder.decode(bytes)
  } catch {
    return undefined
  }
}

const jsonOf = (text: string): { readonly value: unknown } | undefined => {
  try {
    return { value: JSON.parse(text) as unknown } // The type of any JSON.
  } catch {
    return undefined
  }
}

/** A hook that throws hides everything. */
const redacted = (redact: Redact, content: Content, place: Place): Effect.Effect<Content, Refusal> =>
  Effect.try({
    try: () => redact(content, place),
    catch: () =>
      new Refusal({ status: 503, detail: "the redact hook failed", remedy: "Nothing is shown. Mend the hook" })
  })

const show = (redact: Redact, letter: DeadLetters.DeadLetter, place: Place): Effect.Effect<Body, Refusal> =>
  Effect.gen(function* () {
    const bytes = plain(letter)
    const size = letter.body.length
    const text = textOf(bytes)
    const json = text === undefined ? undefined : jsonOf(text)
    const { body } = yield* redacted(
      redact,
      { headers: letter.headers, body: json === undefined ? (text ?? bytes) : json.value },
      place
    )
    if (body instanceof Uint8Array) return { _tag: "Bytes", bytes: body, size }
    return json === undefined || typeof body === "string"
      ? { _tag: "Text", kind: json === undefined ? "text" : "JSON", text: String(body), size }
      : { _tag: "Text", kind: "JSON", text: JSON.stringify(body, undefined, 2) ?? "", size }
  })

/** Looks for a letter by its key, and shows its body. */
export const find = (
  connection: Connection,
  queue: string,
  key: string,
  redact: Redact
): Effect.Effect<Body, Refusal | Trouble> =>
  Effect.gen(function* () {
    const found = yield* connection.use(() =>
      Effect.flatMap(DeadLetters.make(queue), ({ list }) =>
        list({ limit: 1, filter: ({ metadata }) => Letters.keyOf(metadata) === key })
      )
    )
    const [letter] = found
    if (letter === undefined) {
      const detail = `the letter is not among the first ${longest} of ${queue}, or somebody has it`
      return yield* new Refusal({ status: 404, detail, remedy: "It may have been redriven. Look again" })
    }
    return yield* show(redact, letter, { broker: connection.name, queue })
  })
