/**
 * Field tables of AMQP 0-9-1, in the encoding that the driver reads and writes: a server stores the headers of a message as the
 * producer wrote them, with their types. https://www.rabbitmq.com/amqp-0-9-1-errata#section_3
 */

/** A decoded table. */
export type Table = Readonly<Record<string, unknown>>

/** A value whose type the driver does not guess: `{ "!": "timestamp", value: 1 }`. */
const typed = (value: unknown): readonly [type: string, value: unknown] | undefined =>
  typeof value === "object" && value !== null && Object.hasOwn(value, "!")
    ? [String(Reflect.get(value, "!")), Reflect.get(value, "value")]
    : undefined

/** The type of a number that the driver chooses. */
const typeOfNumber = (n: number): string => {
  if (n >= 2 ** 63 || (Math.abs(n) < 2 ** 50 && Math.floor(n) !== n)) return "double"
  if (n < 128 && n >= -128) return "int8"
  if (n >= -0x8000 && n < 0x8000) return "int16"
  return n >= -0x80000000 && n < 0x80000000 ? "int32" : "int64"
}

/** The driver's encoding buffer, which limits a table. */
const scratch = Buffer.alloc(65_536)

const check = (at: number, size: number): void => {
  if (at + size > scratch.length)
    throw new RangeError(
      `Encoded field table (headers or arguments) exceeds the ${scratch.length} byte encoding buffer`
    )
}

type Writer = (value: never, at: number) => number

/** By type: the tag, the size, and how to write it. */
const numbers: Readonly<Record<string, readonly [tag: string, size: number, write: Writer]>> = {
  boolean: ["t", 1, (value: boolean, at) => scratch.writeUInt8(value ? 1 : 0, at)],
  double: ["d", 8, (value: number, at) => scratch.writeDoubleBE(value, at)],
  float: ["f", 4, (value: number, at) => scratch.writeFloatBE(value, at)],
  int8: ["b", 1, (value: number, at) => scratch.writeInt8(value, at)],
  uint8: ["B", 1, (value: number, at) => scratch.writeUInt8(value, at)],
  int16: ["s", 2, (value: number, at) => scratch.writeInt16BE(value, at)],
  uint16: ["u", 2, (value: number, at) => scratch.writeUInt16BE(value, at)],
  int32: ["I", 4, (value: number, at) => scratch.writeInt32BE(value, at)],
  uint32: ["i", 4, (value: number, at) => scratch.writeUInt32BE(value, at)],
  int64: ["l", 8, (value: number, at) => scratch.writeBigInt64BE(BigInt(value), at)],
  timestamp: ["T", 8, (value: number, at) => scratch.writeBigUInt64BE(BigInt(value), at)]
}

/** The names that the driver has for some of these types as well. */
const aliases: Readonly<Record<string, string>> = {
  float64: "double",
  byte: "int8",
  unsignedbyte: "uint8",
  short: "int16",
  unsignedshort: "uint16",
  int: "int32",
  unsignedint: "uint32",
  long: "int64"
}

const writeTag = (tag: string, at: number): number => {
  check(at, 1)
  return at + scratch.write(tag, at)
}

/** Writes a size before what `write` writes. */
const sized = (at: number, write: (at: number) => number): number => {
  check(at, 4)
  const end = write(at + 4)
  scratch.writeUInt32BE(end - at - 4, at)
  return end
}

const writeText = (text: string, at: number): number => {
  check(at, Buffer.byteLength(text))
  return at + scratch.write(text, at)
}

const writeObject = (value: object, at: number): number => {
  if (Array.isArray(value))
    return sized(writeTag("A", at), (start) => value.reduce((next: number, item) => writeValue(item, next), start))
  if (!Buffer.isBuffer(value)) return sized(writeTag("F", at), (start) => writeTable(value, start))
  const start = writeTag("x", at)
  check(start, 4 + value.length)
  const content = scratch.writeUInt32BE(value.length, start)
  // The adapter replaces `copy` of some buffers.
  value.copy(scratch, content)
  return content + value.length
}

const writeValue = (given: unknown, at: number): number => {
  const [type, value] = typed(given) ?? [typeof given, given]
  const name = type === "number" ? typeOfNumber(value as number) : (aliases[type] ?? type) // Its type says so.
  if (name === "string") return sized(writeTag("S", at), (start) => writeText(String(value), start))
  if (value === null) return writeTag("V", at)
  if (name === "object") return writeObject(value as object, at) // Its type says so.
  const number = numbers[name]
  if (number === undefined) throw new TypeError(`Unknown type to encode: ${type}`)
  const [tag, size, write] = number
  const start = writeTag(tag, at)
  check(start, size)
  return write(value as never, start) // The type belongs to the value.
}

const writeTable = (table: object, at: number): number => {
  // As the driver does, with the names of the prototype.
  for (const name in table) {
    const value: unknown = Reflect.get(table, name)
    if (value === undefined) continue
    check(at, 1)
    scratch.writeUInt8(Buffer.byteLength(name), at)
    at = writeValue(value, writeText(name, at + 1))
  }
  return at
}

/** Encodes a table, without its size. Throws for values that the driver cannot encode. */
export const encode = (table: object): Buffer => Buffer.from(scratch.subarray(4, writeTable(table, 4)))

type Read = readonly [value: unknown, end: number]

const readers: Readonly<Record<string, (bytes: Buffer, at: number) => Read>> = {
  t: (bytes, at) => [bytes[at] !== 0, at + 1],
  b: (bytes, at) => [bytes.readInt8(at), at + 1],
  B: (bytes, at) => [bytes.readUInt8(at), at + 1],
  s: (bytes, at) => [bytes.readInt16BE(at), at + 2],
  u: (bytes, at) => [bytes.readUInt16BE(at), at + 2],
  I: (bytes, at) => [bytes.readInt32BE(at), at + 4],
  i: (bytes, at) => [bytes.readUInt32BE(at), at + 4],
  l: (bytes, at) => [Number(bytes.readBigInt64BE(at)), at + 8],
  T: (bytes, at) => [{ "!": "timestamp", value: Number(bytes.readBigUInt64BE(at)) }, at + 8],
  d: (bytes, at) => [bytes.readDoubleBE(at), at + 8],
  f: (bytes, at) => [bytes.readFloatBE(at), at + 4],
  V: (_, at) => [null, at],
  S: (bytes, at) => [bytes.toString("utf8", at + 4, endOf(bytes, at)), endOf(bytes, at)],
  x: (bytes, at) => [bytes.subarray(at + 4, endOf(bytes, at)), endOf(bytes, at)],
  F: (bytes, at) => [decode(bytes.subarray(at + 4, endOf(bytes, at))), endOf(bytes, at)],
  A: (bytes, at) => [readArray(bytes.subarray(at + 4, endOf(bytes, at))), endOf(bytes, at)]
}

const endOf = (bytes: Buffer, at: number): number => at + 4 + bytes.readUInt32BE(at)

const readValue = (bytes: Buffer, at: number): Read => {
  const tag = String.fromCharCode(bytes[at]!)
  const read = readers[tag]
  if (read === undefined) throw new TypeError(`Unexpected type tag "${tag}"`)
  return read(bytes, at + 1)
}

const readArray = (bytes: Buffer): ReadonlyArray<unknown> => {
  const values: Array<unknown> = []
  for (let at = 0; at < bytes.length; ) {
    const [value, end] = readValue(bytes, at)
    values.push(value)
    at = end
  }
  return values
}

/** An entry of a table, and its bytes. */
interface Entry {
  readonly name: string
  readonly value: unknown
  readonly bytes: Buffer
}

/** Returns the entries of a table without its size. */
const entries = (table: Buffer): ReadonlyArray<Entry> => {
  const found: Array<Entry> = []
  for (let at = 0; at < table.length; ) {
    const start = at + 1 + table.readUInt8(at)
    const [value, end] = readValue(table, start)
    found.push({ name: table.toString("utf8", at + 1, start), value, bytes: table.subarray(at, end) })
    at = end
  }
  return found
}

/** Decodes a table without its size, as the driver does. */
export const decode = (table: Buffer): Table => {
  const fields: Record<string, unknown> = {}
  for (const { name, value } of entries(table)) {
    if (name in fields) Object.defineProperty(fields, name, { value, ...plain })
    else fields[name] = value
  }
  return fields
}

const plain = { configurable: true, enumerable: true, writable: true }

const known = new WeakMap<Buffer, Table>()

/** Decodes the headers of a message, which many readers share. */
export const headersOf = ({ table }: { readonly table: Buffer | undefined }): Table => {
  if (table === undefined) return none
  const found = known.get(table) ?? decode(table)
  known.set(table, found)
  return found
}

const none: Table = {}

/** Returns the table with these headers, which replace those of the same names. */
export const merge = (table: Buffer | undefined, headers: Table): Buffer =>
  Buffer.concat([
    ...(table === undefined
      ? []
      : entries(table).flatMap(({ bytes, name }) => (Object.hasOwn(headers, name) ? [] : [bytes]))),
    encode(headers)
  ])
