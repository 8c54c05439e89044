/**
 * Messages as rows of an SQL table: the columns, and how messages become rows and rows become deliveries. Pure.
 *
 * When to use: in an adapter for an SQL database.
 *
 * @example
 * ```ts
 * import { SqlMessage } from "@requeue/kit"
 *
 * const row = SqlMessage.fromColumns([7, 1, 2, 1_700_000_000_000, null, '{"a":"b"}', new Uint8Array()])
 * const { attempts, headers, metadata } = SqlMessage.toDelivery(row, "mine")
 * attempts // => 2
 * headers["a"] // => "b"
 * metadata.id // => "mine-7"
 * ```
 */
import { type Delivery, type Lane, type Message, Metadata, type Outgoing } from "@requeue/core/port"

/** A message, as statements return it. */
export interface Row {
  /** The key of the table. */
  readonly seq: number
  /** Names the lease. */
  readonly token: number
  /** How often this copy was delivered. */
  readonly deliveries: number
  /** When the message is due or became ready, in epoch milliseconds. */
  readonly at: number
  /** `null`: another program wrote the message. */
  readonly metadata: string | null
  /** JSON. `null`: none. */
  readonly headers: string | null
  readonly body: Uint8Array
  /** The key of the message. `null` or missing: none. */
  readonly key?: string | null
  /** The queue in whose order the message has its place. `null` or missing: none. */
  readonly lane?: string | null
  /** The position in that order. `null`: that of `seq`. */
  readonly position?: number | null
  /** Whose message it is. `null` or missing: no one's. */
  readonly fairBy?: string | null | undefined
  /** How many later messages of its key it holds up. Only browsers need it. */
  readonly blocks?: number | undefined
}

/** Names one delivery: only the last one of a message has its token. */
export type Handle = Pick<Row, "seq" | "token">

/** A position in the order of a queue. */
export type Position = Pick<Row, "at" | "seq">

/** A message to store. */
export interface NewRow extends Pick<Row, "metadata" | "headers" | "body"> {
  readonly queue: string
  /** Whether a missing queue is created. */
  readonly create: boolean
  /** Milliseconds. */
  readonly delay: number
  readonly place: Lane.Place | undefined
  readonly fairBy: string | undefined
}

/** The columns of a row, in the order of {@link fromColumns}. */
export const columns = "seq, token, deliveries, at, metadata, headers, body"

/** Further columns of a table that keeps the order of messages with a key. */
export const lanes = "key, lane, position"

/** Returns the row with these columns, with or without {@link lanes}. */
export const fromColumns = ([
  seq,
  token,
  deliveries,
  at,
  metadata,
  headers,
  body,
  key,
  lane,
  position,
  fairBy
]: ReadonlyArray<unknown>): Row =>
  ({ seq, token, deliveries, at, metadata, headers, body, key, lane, position, fairBy }) as Row // The columns of a statement.

/** Returns the row of a message. `now` is in epoch milliseconds. */
export const toRow = (
  { body, create, delay, fairBy, headers, metadata, place, queue }: Outgoing.Outgoing,
  now: number
): NewRow => ({
  queue,
  create: create !== false,
  delay,
  place,
  fairBy,
  metadata: Metadata.encode(Metadata.setBack(metadata, now)),
  headers: Object.keys(headers).length === 0 ? null : JSON.stringify(headers),
  body
})

/** Frozen, because handlers see it. */
const none: Message.Headers = Object.freeze({})

/** Returns the headers; `undefined` if another program wrote something else. */
const headersOf = (text: string | null): Message.Headers | undefined => {
  if (text === null) return none
  try {
    const headers: unknown = JSON.parse(text)
    const isRecord = typeof headers === "object" && headers !== null && !Array.isArray(headers)
    if (!isRecord || !Object.values(headers).every((value) => typeof value === "string")) return undefined
    return Object.freeze(headers as Message.Headers) // All values are text.
  } catch {
    return undefined
  }
}

const placeOf = ({ blocks, key, lane, position, seq }: Row): Lane.Place | undefined =>
  typeof key === "string" ? { key, queue: lane ?? undefined, position: position ?? seq, blocks } : undefined

const unreadable = { name: "InvalidHeaders", message: "the column headers is not a JSON object of text" }

/**
 * Returns the delivery of a row, without a receipt. A message without Requeue's metadata is another producer's: its id is made from the
 * broker's name and the key, and stays the same.
 */
export const toDelivery = (row: Row, broker: string): Omit<Delivery.Delivery, "receipt"> => {
  const { at, body, deliveries, metadata: encoded, seq } = row
  const metadata = (encoded === null ? undefined : Metadata.decode(encoded)) ?? Metadata.make(`${broker}-${seq}`, at)
  const headers = headersOf(row.headers)
  const place = placeOf(row)
  return {
    body,
    headers: headers ?? none,
    attempts: metadata.attempts + deliveries,
    metadata,
    redelivered: deliveries > 1,
    ...(place === undefined ? undefined : { place }),
    ...(typeof row.fairBy === "string" ? { fairBy: row.fairBy } : undefined),
    ...(headers === undefined ? { unreadable } : {})
  }
}
