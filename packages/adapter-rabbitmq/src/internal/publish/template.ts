/**
 * Frames of publications that differ only in route, values of text headers, message id, timestamp and content. The driver encodes a
 * sample, and the shared bytes are cut out of it. Writing a publication then takes a tenth of the driver's time. If a driver
 * encodes in an unexpected way, there is no template. Pure, except for the memory of the last layout.
 */
import type { Publication } from "../client.ts"
import * as FieldTable from "../fieldTable.ts"

/** A method of Buffer that its types lack. It is faster because it takes no encoding. */
export interface Latin1 extends Buffer {
  readonly latin1Write: (text: string, at: number) => number
}

/** Writes publications of one shape. */
export interface Template {
  /**
   * Writes the frames of a publication into the buffer from `at` on, and returns their end; -1 if a value or the whole does not
   * fit, so the driver must write it.
   */
  readonly write: (publication: Publication, buffer: Latin1, at: number) => number
}

/** Ends every frame. */
const frameEnd = 0xce
const end = String.fromCharCode(frameEnd)

/** Bytes of a frame before its payload, and the bytes around its payload. */
const headerSize = 7
export const frameOverhead = 8

const long = (n: number): string => String.fromCharCode(n >>> 24, (n >>> 16) & 255, (n >>> 8) & 255, n & 255)
const longLong = (n: number): string => long(Math.floor(n / 2 ** 32)) + long(n % 2 ** 32)

/** A short text after its size. */
const short = (text: string): string => String.fromCharCode(text.length) + text

/** The text in UTF-8, as a string with one character for each byte. */
const utf8 = (text: string): string =>
  Buffer.byteLength(text) === text.length ? text : Buffer.from(text).toString("latin1")

/** A publication with these headers. `filling` makes its other values. */
const sample = (names: ReadonlyArray<string>, publication: Publication, filling: string): Publication => ({
  ...publication,
  exchange: filling,
  routingKey: `${filling} key`,
  content: Buffer.from(filling),
  options: { ...publication.options, messageId: filling, timestamp: filling.length * 0x0102030405 },
  headers: Object.fromEntries(names.map((name) => [name, `${filling} ${name}`]))
})

/** Makes the template of all publications with this shape from the driver's encoding; `undefined` if that is unexpected. */
export const make = (publication: Publication, encode: (publication: Publication) => Buffer): Template | undefined => {
  const names = Object.keys(publication.headers)
  try {
    const made = of(cut(names, encode(sample(names, publication, "sample")), "sample"))
    const other = sample(names, publication, 'an "ödd" one, and longer')
    const expected = encode(other)
    const written = Buffer.alloc(expected.length + 1)
    const size = made.write(other, written as Buffer as Latin1, 0) // Every Buffer has it.
    return written.subarray(0, size).equals(expected) ? made : undefined
  } catch {
    return undefined
  }
}

/** The bytes that publications of one shape share, as strings with one character for each byte. */
interface Parts {
  readonly channel: string
  readonly names: ReadonlyArray<string>
  /** The name and the type of each header. */
  readonly headers: ReadonlyArray<string>
  /** The parts of the first frame before and after exchange and routing key. */
  readonly beforeRoute: string
  readonly afterRoute: string
  /** The parts of the second frame: the number of the class, and the bytes around the content's size, headers, id and timestamp. */
  readonly start: string
  readonly flags: string
  readonly afterHeaders: string
  readonly afterTimestamp: string
}

/** Splits the frames of a sample. */
const cut = (names: ReadonlyArray<string>, frames: Buffer, filling: string): Parts => {
  const text = frames.toString("latin1")
  const second = frameOverhead + frames.readUInt32BE(3)
  const payload = second + headerSize
  const after = payload + frames.readUInt32BE(second + 3)
  const flags = payload + 12
  const table = FieldTable.headersOf(frames, flags)!
  const tableAt = table.byteOffset - frames.byteOffset
  const entries = FieldTable.entries(table)
  if (entries.some(({ name }, index) => name !== names[index])) throw new TypeError("the sample has other headers")
  const route = short(filling) + short(`${filling} key`)
  const routeAt = text.indexOf(route)
  const idAt = text.indexOf(short(filling), tableAt + table.length)
  const timestampAt = idAt + short(filling).length
  return {
    channel: text.slice(1, 3),
    names,
    headers: entries.map(({ bytes, name }) => bytes.toString("latin1", 0, 2 + Buffer.byteLength(name))),
    beforeRoute: text.slice(headerSize, routeAt),
    afterRoute: text.slice(routeAt + route.length, second - 1),
    start: text.slice(payload, payload + 4),
    flags: text.slice(flags, tableAt - 4),
    afterHeaders: text.slice(tableAt + table.length, idAt),
    afterTimestamp: text.slice(timestampAt + 8, after)
  }
}

/** Frames of a publication, and the positions of the values that differ for one of the same sizes and route. */
interface Layout {
  readonly exchange: string
  readonly routingKey: string
  readonly timestamp: unknown
  readonly bytes: Buffer
  readonly valueSizes: ReadonlyArray<number>
  readonly valuesAt: ReadonlyArray<number>
  readonly idSize: number
  readonly idAt: number
  /** The positions of the content's size in the second and the third frame. */
  readonly contentSizeAt: number
  readonly bodySizeAt: number
}

/** Lays out the frames without the content; `undefined` if a value does not fit. */
const lay = (parts: Parts, publication: Publication, values: ReadonlyArray<string>, id: string): Layout | undefined => {
  const { timestamp } = publication.options
  const [exchange, routingKey] = [utf8(publication.exchange), utf8(publication.routingKey)]
  if (typeof timestamp !== "number" || [exchange, routingKey, id].some(({ length }) => length > 255)) return undefined
  const method = parts.beforeRoute + short(exchange) + short(routingKey) + parts.afterRoute
  const entries = values.map((value, index) => parts.headers[index]! + long(value.length) + value)
  const table = entries.join("")
  const properties = parts.flags + long(table.length) + table + parts.afterHeaders
  const payload = `${parts.start}\0\0\0\0\0\0\0\0${properties}${short(id)}${longLong(timestamp)}${parts.afterTimestamp}`
  const first = `\x01${parts.channel}${long(method.length)}${method}${end}`
  const second = `\x02${parts.channel}${long(payload.length)}${payload}${end}`
  const contentSizeAt = first.length + headerSize + parts.start.length + 4
  let at = contentSizeAt + 4 + parts.flags.length + 4
  return {
    exchange: publication.exchange,
    routingKey: publication.routingKey,
    timestamp,
    bytes: Buffer.from(`${first}${second}\x03${parts.channel}\0\0\0\0`, "latin1"),
    valueSizes: values.map(({ length }) => length),
    valuesAt: entries.map((entry, index) => (at += entry.length) - values[index]!.length),
    idSize: id.length,
    idAt: at + parts.afterHeaders.length + 1,
    contentSizeAt,
    bodySizeAt: first.length + second.length + 3
  }
}

const writeSize = (buffer: Buffer, size: number, at: number): void => {
  buffer[at] = size >>> 24
  buffer[at + 1] = size >>> 16
  buffer[at + 2] = size >>> 8
  buffer[at + 3] = size
}

const of = (parts: Parts): Template => {
  const { names } = parts
  const values = names.map(() => "")
  /** Consecutive publications mostly have the same layout. */
  let last: Layout | undefined

  const isLaid = (layout: Layout, { exchange, options, routingKey }: Publication, id: string): boolean => {
    const { idSize, timestamp, valueSizes } = layout
    if (layout.routingKey !== routingKey || layout.exchange !== exchange) return false
    if (timestamp !== options["timestamp"] || idSize !== id.length) return false
    for (let index = 0; index < values.length; index++) if (values[index]!.length !== valueSizes[index]) return false
    return true
  }

  return {
    write: (publication, buffer, at) => {
      const { content, headers, options } = publication
      if (typeof options["messageId"] !== "string") return -1
      const id = utf8(options["messageId"])
      for (let index = 0; index < names.length; index++) values[index] = utf8(headers[names[index]!]!)
      if (last === undefined || !isLaid(last, publication, id)) last = lay(parts, publication, values, id)
      if (last === undefined) return -1
      const { bodySizeAt, bytes, contentSizeAt, idAt, valuesAt } = last
      if (bytes.length + content.length >= buffer.length - at) return -1
      buffer.set(bytes, at)
      for (let index = 0; index < values.length; index++) buffer.latin1Write(values[index]!, at + valuesAt[index]!)
      buffer.latin1Write(id, at + idAt)
      writeSize(buffer, content.length, at + contentSizeAt)
      // Empty content has no frame.
      if (content.length === 0) return at + bodySizeAt - 3
      writeSize(buffer, content.length, at + bodySizeAt)
      buffer.set(content, at + bytes.length)
      const endAt = at + bytes.length + content.length
      buffer[endAt] = frameEnd
      return endAt + 1
    }
  }
}
