/**
 * Splits field tables of AMQP 0-9-1 into entries, and keeps their bytes. The driver reads several types as one and
 * writes numbers as the smallest type that holds them, so copying what it has read would change the message. Pure.
 * https://www.rabbitmq.com/amqp-0-9-1-errata#section_3
 */

/** A header on the wire: length of the name, name, type tag and value. */
export interface Entry {
  readonly name: string
  readonly bytes: Buffer
}

/** The sizes of values by their tags; all other values start with their size. */
const sizes: ReadonlyMap<number, number> = new Map(
  Object.entries({ V: 0, t: 1, b: 1, B: 1, s: 2, u: 2, I: 4, i: 4, f: 4, D: 5, l: 8, d: 8, T: 8 }).map(
    ([tag, size]) => [tag.charCodeAt(0), size]
  )
)

/** Returns the entries of a table that is given without its size. */
export const entries = (table: Buffer): ReadonlyArray<Entry> => {
  const found: Array<Entry> = []
  for (let at = 0; at < table.length; ) {
    const from = at
    at += 1 + table.readUInt8(at)
    const name = table.toString("utf8", from + 1, at)
    const size = sizes.get(table.readUInt8(at++))
    at += size ?? 4 + table.readUInt32BE(at)
    found.push({ name, bytes: table.subarray(from, at) })
  }
  return found
}

/** Returns the value of a text entry; `undefined` for another type, or without an entry. */
export const textOf = (table: Buffer, name: string): string | undefined => {
  const [from, start] = [1 + Buffer.byteLength(name), 1 + Buffer.byteLength(name) + 1 + 4]
  const entry = entries(table).findLast((each) => each.name === name && each.bytes[from] === "S".charCodeAt(0))
  return entry?.bytes.toString("utf8", start)
}

/** Returns the table of headers from a property list whose flags begin at `start`; `undefined` if it has none. */
export const headersOf = (bytes: Buffer, start: number): Buffer | undefined => {
  const flags = bytes.readUInt16BE(start)
  if ((flags & 0x2000) === 0) return undefined
  let at = start + 2
  // Content type and content encoding come before it. Each begins with its size.
  if ((flags & 0x8000) !== 0) at += 1 + bytes.readUInt8(at)
  if ((flags & 0x4000) !== 0) at += 1 + bytes.readUInt8(at)
  return bytes.subarray(at + 4, at + 4 + bytes.readUInt32BE(at))
}

/** Makes a table of these entries followed by texts, without the table's size. */
export const make = (first: ReadonlyArray<Entry>, texts: Readonly<Record<string, string>>): Buffer =>
  Buffer.concat([
    ...first.map(({ bytes }) => bytes),
    ...Object.entries(texts).map(([name, value]) => {
      const [nameSize, size] = [Buffer.byteLength(name), Buffer.byteLength(value)]
      const bytes = Buffer.allocUnsafe(1 + nameSize + 5 + size)
      let at = bytes.writeUInt8(nameSize, 0)
      at += bytes.write(name + "S", at)
      at = bytes.writeUInt32BE(size, at)
      bytes.write(value, at)
      return bytes
    })
  ])
