/** The values of statements. Pure. */
import type { SqlMessage } from "@requeue/kit"
import type { Value } from "./client.ts"

/** The values of handles. */
export const handles = (all: ReadonlyArray<SqlMessage.Handle>): ReadonlyArray<Value> => [
  all.map(({ seq }) => seq),
  all.map(({ token }) => token)
]

/** The queues of new messages, each once; one that two messages treat differently may be created. */
export const targets = (rows: ReadonlyArray<SqlMessage.NewRow>): ReadonlyMap<string, boolean> => {
  const all = new Map<string, boolean>()
  for (const { create, queue } of rows) all.set(queue, create || all.get(queue) === true)
  return all
}

/** All bodies are one value, because the driver writes an array of bytes as hexadecimal text. */
const bodiesOf = (rows: ReadonlyArray<SqlMessage.NewRow>): Buffer => {
  const [first] = rows
  if (rows.length !== 1 || first === undefined) return Buffer.concat(rows.map(({ body }) => body))
  return Buffer.from(first.body.buffer, first.body.byteOffset, first.body.length)
}

/** Returns the number of each queue. */
const numbersOf = (queues: ReadonlyMap<string, boolean>): ReadonlyMap<string, number> =>
  new Map([...queues.keys()].map((name, index) => [name, index + 1]))

/** The values of `publish`. */
export const published = (
  rows: ReadonlyArray<SqlMessage.NewRow>,
  queues: ReadonlyMap<string, boolean>
): ReadonlyArray<Value> => {
  const numbers = numbersOf(queues)
  return [
    [...queues.keys()],
    [...queues.values()],
    rows.map(({ queue }) => numbers.get(queue)!),
    rows.map(({ delay }) => delay),
    rows.map(({ metadata }) => metadata),
    rows.map(({ headers }) => headers),
    rows.map(({ body }) => body.length),
    bodiesOf(rows)
  ]
}

/** The values of `publishWithin`. */
export const publishedWithin = (
  rows: ReadonlyArray<SqlMessage.NewRow>,
  queues: ReadonlyMap<string, boolean>
): ReadonlyArray<string | Buffer> => {
  const numbers = numbersOf(queues)
  return [
    JSON.stringify([...queues].map(([name, may]) => ({ name, may }))),
    JSON.stringify(
      rows.map(({ body, delay, headers, metadata, queue }) => ({
        target: numbers.get(queue),
        delay,
        metadata,
        headers,
        size: body.length
      }))
    ),
    bodiesOf(rows)
  ]
}
