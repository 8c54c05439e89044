/** The first letters of each cause, without their bodies: so many that people page through them, and memory stays small. */
import { type Message } from "@requeue/core"
import { Metadata } from "@requeue/core/port"
import type { DeadLetters } from "@requeue/operations"
import { createHash } from "node:crypto"

/** A dead letter without its body. */
export interface Kept {
  /** A name of the letter within its queue that an address can have. */
  readonly key: string
  readonly id: string
  readonly headers: Message.Headers
  /** `undefined` where nobody knows. */
  readonly publishedAt: number | undefined
  readonly redrives: number
  /** The operation that redrove it last; `undefined` when none has. */
  readonly operation: string | undefined
  readonly history: ReadonlyArray<Metadata.Attempt>
  readonly origin: DeadLetters.DeadLetter["origin"]
  /** Bytes of the body. */
  readonly size: number
}

/** A letter as far as its key tells it from others. */
type Named = Pick<DeadLetters.DeadLetter, "body" | "headers" | "metadata">

const digest = (...parts: ReadonlyArray<string | Uint8Array>): string => {
  const hash = createHash("sha256")
  for (const part of parts) hash.update(part)
  return hash.digest("hex").slice(0, 20)
}

/** The part of a key that costs little, so that a search hashes the content of hardly any other letter. */
const lifeOf = ({ metadata }: Named): string => {
  const { deadLetter, history, id, operation, redrives } = metadata
  return digest(JSON.stringify([id, Metadata.publishedAt(metadata), redrives, operation, history, deadLetter]))
}

/** Brokers keep headers in any order. */
const contentOf = ({ body, headers }: Named): string =>
  digest(`${JSON.stringify(headers, Object.keys(headers).toSorted())}\n`, body)

/** The key of a letter. Those that have the same one are alike in all that there is to see. */
export const keyOf = (letter: Named): string => `${lifeOf(letter)}-${contentOf(letter)}`

/** Letters with a key. */
export const withKey =
  (key: string) =>
  (letter: Named): boolean =>
    key.startsWith(`${lifeOf(letter)}-`) && keyOf(letter) === key

/** The letters that are kept of a look. */
export interface Letters {
  /** Bytes that they take, about. */
  readonly size: () => number
  readonly add: (cause: DeadLetters.Cause, letter: DeadLetters.DeadLetter) => void
  readonly of: (cause: DeadLetters.Cause) => ReadonlyArray<Kept>
}

/** Letters of a cause and of all together, and the bytes that they take: headers of one may have 100 kilobytes. */
const limits = { each: 100, all: 5000, bytes: 8 * 1024 * 1024 }

/** Bytes that a letter takes beside its texts, about. */
const overhead = 500

/** Two bytes for each character of its texts, as strings may have. */
const sizeOf = ({ headers, history, id, origin }: Kept): number => {
  const texts = [
    ...Object.entries(headers).flat(),
    ...history.map(({ error }) => error),
    id,
    origin?.error.message ?? "",
    origin?.error.stack ?? ""
  ]
  return overhead + texts.reduce((sum, text) => sum + 2 * text.length, 0)
}

const kept = ({ body, headers, history, id, metadata, operation, origin, redrives }: DeadLetters.DeadLetter): Kept => ({
  key: keyOf({ body, headers, metadata }),
  id,
  headers,
  publishedAt: Metadata.publishedAt(metadata),
  redrives,
  operation,
  history,
  origin,
  size: body.length
})

const nameOf = ({ error, pattern, queue, reason }: DeadLetters.Cause): string =>
  JSON.stringify([queue, reason, error, pattern])

/** Keeps nothing yet. */
export const make = (): Letters => {
  const all = new Map<string, Array<Kept>>()
  let [count, bytes] = [0, 0]
  return {
    size: () => bytes,
    add: (cause, letter) => {
      const name = nameOf(cause)
      const own = all.get(name) ?? []
      if (own.length >= limits.each || count >= limits.all) return
      const one = kept(letter)
      const size = sizeOf(one)
      if (bytes + size > limits.bytes) return
      count++
      bytes += size
      own.push(one)
      all.set(name, own)
    },
    of: (cause) => all.get(nameOf(cause)) ?? []
  }
}
