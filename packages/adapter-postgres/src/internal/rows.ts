/** The rows of the tables, and the values of statements. Pure. */
import type { Row, Value } from "./client.ts"

/** A message, as statements return it. */
export interface StoredRow {
  readonly seq: number
  readonly token: number
  readonly deliveries: number
  readonly at: number
  readonly metadata: string | null
  readonly headers: string | null
  readonly body: Uint8Array
}

/** Names one delivery: only the last one of a message has its present token. */
export type Handle = Pick<StoredRow, "seq" | "token">

/** A position in the order of a queue. */
export type Position = Pick<StoredRow, "at" | "seq">

/** A message to store. */
export interface NewRow extends Pick<StoredRow, "metadata" | "headers" | "body"> {
  readonly queue: string
  /** Whether a missing queue is created. */
  readonly create: boolean
  /** Milliseconds. */
  readonly delay: number
}

export const toRow = ([seq, token, deliveries, at, metadata, headers, body]: Row): StoredRow =>
  ({ seq, token, deliveries, at, metadata, headers, body }) as StoredRow // The columns of the statement.

/** The values of handles. */
export const handles = (all: ReadonlyArray<Handle>): ReadonlyArray<Value> => [
  all.map(({ seq }) => seq),
  all.map(({ token }) => token)
]

/** The queues of new messages, each once; one that two messages treat differently may be created. */
export const targets = (rows: ReadonlyArray<NewRow>): ReadonlyMap<string, boolean> => {
  const all = new Map<string, boolean>()
  for (const { create, queue } of rows) all.set(queue, create || all.get(queue) === true)
  return all
}

/** The values of `publish`. All bodies are one value, because the driver writes an array of bytes as hexadecimal text. */
export const published = (rows: ReadonlyArray<NewRow>, queues: ReadonlyMap<string, boolean>): ReadonlyArray<Value> => {
  const names = [...queues.keys()]
  const indices = new Map(names.map((name, index) => [name, index + 1]))
  return [
    names,
    [...queues.values()],
    rows.map(({ queue }) => indices.get(queue)!),
    rows.map(({ delay }) => delay),
    rows.map(({ metadata }) => metadata),
    rows.map(({ headers }) => headers),
    rows.map(({ body }) => body.length),
    rows.length === 1 ? rows[0]!.body : Buffer.concat(rows.map(({ body }) => body))
  ]
}
