/** The first letters of each cause, without their bodies. */
import { type Message } from "@requeue/core"
import { Metadata } from "@requeue/core/port"
import type { DeadLetters } from "@requeue/operations"
import { createHash } from "node:crypto"

/** A dead letter without its body. */
export interface Kept {
  /** The id of the letter in addresses, unique in its queue. */
  readonly key: string
  readonly id: string
  /** The key of the message, and how many messages wait for the letter if it is parked. */
  readonly keyed: Pick<DeadLetters.DeadLetter, "key" | "blocks">
  /** Whose message it is. */
  readonly fairBy: string | undefined
  readonly headers: Message.Headers
  /** When the letter was published; `undefined` if that is unknown. */
  readonly publishedAt: number | undefined
  readonly redrives: number
  /** The operation that redrove the letter last; `undefined` if it was never redriven. */
  readonly operation: string | undefined
  readonly history: ReadonlyArray<Metadata.Attempt>
  readonly origin: DeadLetters.DeadLetter["origin"]
  /** Bytes of the body. */
  readonly size: number
}

/** The parts of a letter that its key depends on. */
type Named = Pick<DeadLetters.DeadLetter, "body" | "headers" | "metadata">

const digest = (...parts: ReadonlyArray<string | Uint8Array>): string => {
  const hash = createHash("sha256")
  for (const part of parts) hash.update(part)
  return hash.digest("hex").slice(0, 20)
}

/** Returns the cheap part of a key. A search compares it first, so it hashes the content of few letters. */
const lifeOf = ({ metadata }: Named): string => {
  const { deadLetter, history, id, operation, redrives } = metadata
  return digest(JSON.stringify([id, Metadata.publishedAt(metadata), redrives, operation, history, deadLetter]))
}

/** Returns the hash of the content. Headers are sorted, because brokers do not keep their order. */
const contentOf = ({ body, headers }: Named): string =>
  digest(`${JSON.stringify(headers, Object.keys(headers).toSorted())}\n`, body)

/** Returns the key of a letter. Letters with the same key are identical. */
export const keyOf = (letter: Named): string => `${lifeOf(letter)}-${contentOf(letter)}`

/** Returns a filter that selects the letters with a key. */
export const withKey =
  (key: string) =>
  (letter: Named): boolean =>
    key.startsWith(`${lifeOf(letter)}-`) && keyOf(letter) === key

/** The letters that are kept of a browse. */
export interface Letters {
  /** Returns the approximate size of the letters in bytes. */
  readonly size: () => number
  readonly add: (cause: DeadLetters.Cause, letter: DeadLetters.DeadLetter) => void
  readonly of: (cause: DeadLetters.Cause) => ReadonlyArray<Kept>
}

/**
 * The largest numbers of letters of one cause and of all causes, and their size in bytes. The headers of one letter may
 * have 100 kilobytes.
 */
const limits = { each: 100, all: 5000, bytes: 8 * 1024 * 1024 }

/** The approximate bytes of a letter without its texts. */
const overhead = 500

/** Returns the approximate size of a letter. Each character counts as two bytes, the most that strings take. */
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

const kept = (letter: DeadLetters.DeadLetter): Kept => {
  const { blocks, body, fairBy, headers, history, id, key, metadata, operation, origin, redrives } = letter
  return {
    key: keyOf({ body, headers, metadata }),
    id,
    keyed: { ...(key === undefined ? {} : { key }), ...(blocks === undefined ? {} : { blocks }) },
    fairBy,
    headers,
    publishedAt: Metadata.publishedAt(metadata),
    redrives,
    operation,
    history,
    origin,
    size: body.length
  }
}

const nameOf = ({ error, pattern, queue, reason }: DeadLetters.Cause): string =>
  JSON.stringify([queue, reason, error, pattern])

/** Makes an empty store of letters. */
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
