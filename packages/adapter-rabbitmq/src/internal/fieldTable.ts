/**
 * Field tables of AMQP 0-9-1, taken apart into entries whose bytes are kept. The driver reads several types as one, and
 * writes numbers as the smallest type that holds them, so that a copy of what it has read is another message. Pure.
 * https://www.rabbitmq.com/amqp-0-9-1-errata#section_3
 */

/** A header as it is on the wire: the length of its name, its name, the tag of its type, and its value. */
export interface Entry {
  readonly name: string
  readonly bytes: Buffer
}

/** The sizes of values by their tags; all others begin with their size. */
const sizes: ReadonlyMap<number, number> = new Map(
  Object.entries({ V: 0, t: 1, b: 1, B: 1, s: 2, u: 2, I: 4, i: 4, f: 4, D: 5, l: 8, d: 8, T: 8 }).map(
    ([tag, size]) => [tag.charCodeAt(0), size]
  )
)

/** The entries of a table, without the table's own size. */
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

/** The value of an entry that is text; `undefined` for one of another type, or where there is none. */
export const textOf = (table: Buffer, name: string): string | undefined => {
  const [from, start] = [1 + Buffer.byteLength(name), 1 + Buffer.byteLength(name) + 1 + 4]
  const entry = entries(table).findLast((each) => each.name === name && each.bytes[from] === "S".charCodeAt(0))
  return entry?.bytes.toString("utf8", start)
}

/** The table of headers in a property list, which begins with its flags at this place; `undefined` where it has none. */
export const headersOf = (bytes: Buffer, start: number): Buffer | undefined => {
  const flags = bytes.readUInt16BE(start)
  if ((flags & 0x2000) === 0) return undefined
  let at = start + 2
  // Of the properties before it, content type and content encoding, each begins with its size.
  if ((flags & 0x8000) !== 0) at += 1 + bytes.readUInt8(at)
  if ((flags & 0x4000) !== 0) at += 1 + bytes.readUInt8(at)
  return bytes.subarray(at + 4, at + 4 + bytes.readUInt32BE(at))
}

/** A table of these entries and, after them, of texts; it has no size of its own. */
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
