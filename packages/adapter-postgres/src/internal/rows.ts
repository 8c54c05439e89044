/** The values of statements. Pure. */
import type { SqlMessage } from "@requeue/kit"

/** An array of integers. The driver would escape each of them. */
const integers = (values: ReadonlyArray<number>): string => `{${values.join()}}`

/** The values of handles. */
export const handles = (all: ReadonlyArray<SqlMessage.Handle>): ReadonlyArray<string> => [
  integers(all.map(({ seq }) => seq)),
  integers(all.map(({ token }) => token))
]

/** Whether a row of a claim was leased: one that waits for an earlier message of its key has no token. */
export const isLeased = ({ token }: { readonly token: number | null }): boolean => token !== null

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

/** The values of `publish`. JSON, because the driver escapes each element of an array. */
export const published = (
  rows: ReadonlyArray<SqlMessage.NewRow>,
  queues: ReadonlyMap<string, boolean>
): ReadonlyArray<string | Buffer> => {
  const numbers = new Map([...queues.keys()].map((name, index) => [name, index + 1]))
  let end = 1
  const messages = rows.map(({ body, delay, fairBy, headers, metadata, place, queue }) => {
    const start = end
    end += body.length
    const { key, position, queue: lane } = place ?? {}
    const columns = { delay, metadata, headers, key, lane, position, fair_by: fairBy }
    return { target: numbers.get(queue), start, size: body.length, ...columns }
  })
  return [JSON.stringify([...queues].map(([name, may]) => ({ name, may }))), JSON.stringify(messages), bodiesOf(rows)]
}
