/**
 * A client of AMQP 0-9-1 that knows frames and nothing of values: what it publishes and gets are bytes, so that no driver's
 * rounding is on both sides of a comparison. https://www.rabbitmq.com/resources/specs/amqp0-9-1.pdf
 */
import { connect } from "node:net"

/** A property list as it is on the wire: flags, then the values. */
export type Content = { readonly properties: Buffer; readonly body: Buffer }

const [methodFrame, headerFrame, bodyFrame, frameEnd] = [1, 2, 3, 0xce]
const overhead = 8

const number =
  (size: 1 | 2 | 4) =>
  (value: number): Buffer => {
    const bytes = Buffer.alloc(size)
    bytes.writeUIntBE(value, 0, size)
    return bytes
  }
export const u8 = number(1)
export const u16 = number(2)
export const u32 = number(4)

export const u64 = (value: bigint): Buffer => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(BigInt.asUintN(64, value))
  return bytes
}

export const join = (...parts: ReadonlyArray<Buffer>): Buffer => Buffer.concat(parts)
const bytesOf = (text: string | Buffer): Buffer => (typeof text === "string" ? Buffer.from(text) : text)
export const short = (text: string | Buffer): Buffer => join(u8(bytesOf(text).length), bytesOf(text))
export const long = (text: string | Buffer): Buffer => join(u32(bytesOf(text).length), bytesOf(text))

/** A value of a table or an array: its tag and its bytes. */
export const value = (tag: string, ...parts: ReadonlyArray<Buffer>): Buffer => join(Buffer.from(tag), ...parts)

/** An entry of a table. */
export const entry = (name: string | Buffer, tagged: Buffer): Buffer => join(short(name), tagged)

/** The properties in the order of their flags, from the highest bit on. */
const names = [
  "contentType",
  "contentEncoding",
  "headers",
  "deliveryMode",
  "priority",
  "correlationId",
  "replyTo",
  "expiration",
  "messageId",
  "timestamp",
  "type",
  "userId",
  "appId"
] as const

/** Properties by their encoded values; `headers` are the entries alone. */
export type Parts = Partial<Record<(typeof names)[number], Buffer>>

export const properties = (parts: Parts): Buffer => {
  const flags = names.reduce((sum, name, at) => (parts[name] === undefined ? sum : sum | (0x8000 >> at)), 0)
  const values = names.flatMap((name) => {
    const part = parts[name]
    return part === undefined ? [] : [name === "headers" ? long(part) : part]
  })
  return join(u16(flags), ...values)
}

const sizeOf = (name: (typeof names)[number], bytes: Buffer, at: number): number => {
  if (name === "headers") return 4 + bytes.readUInt32BE(at)
  if (name === "deliveryMode" || name === "priority") return 1
  return name === "timestamp" ? 8 : 1 + bytes[at]!
}

/** Takes a property list apart. */
export const parts = (bytes: Buffer): Parts => {
  const flags = bytes.readUInt16BE(0)
  const found: Parts = {}
  let at = 2
  names.forEach((name, index) => {
    if ((flags & (0x8000 >> index)) === 0) return
    const size = sizeOf(name, bytes, at)
    found[name] = bytes.subarray(name === "headers" ? at + 4 : at, at + size)
    at += size
  })
  return found
}

const sizes: Readonly<Record<string, number>> = {
  t: 1,
  b: 1,
  B: 1,
  s: 2,
  u: 2,
  I: 4,
  i: 4,
  f: 4,
  l: 8,
  d: 8,
  T: 8,
  D: 5,
  V: 0
}

/** The entries of a table by their names, each as it is on the wire. */
export const entries = (table: Buffer): ReadonlyMap<string, Buffer> => {
  const found = new Map<string, Buffer>()
  for (let at = 0; at < table.length; ) {
    const from = at
    at += 1 + table[at]!
    const name = table.toString("latin1", from + 1, at)
    const size = sizes[String.fromCharCode(table[at++]!)]
    at += size ?? 4 + table.readUInt32BE(at)
    found.set(name, table.subarray(from, at))
  }
  return found
}

interface Frame {
  readonly type: number
  readonly payload: Buffer
}

/** The frames of a connection, in their order. */
const framed = (host: string, port: number) => {
  const socket = connect(port, host)
  const frames: Array<Frame> = []
  let rest: Buffer = Buffer.alloc(0)
  let wake: () => void = () => {}
  let failure: Error | undefined
  const fail = (error?: Error): void => {
    failure ??= error ?? new Error("the server closed the connection")
    wake()
  }
  socket.on("error", fail).on("close", () => fail())
  socket.on("data", (data) => {
    rest = join(rest, data)
    while (rest.length >= overhead && rest.length >= overhead + rest.readUInt32BE(3)) {
      const size = rest.readUInt32BE(3)
      frames.push({ type: rest[0]!, payload: rest.subarray(7, 7 + size) })
      rest = rest.subarray(overhead + size)
    }
    wake()
  })
  return {
    write: (type: number, channel: number, payload: Buffer) =>
      socket.write(join(u8(type), u16(channel), u32(payload.length), payload, u8(frameEnd))),
    hello: () => socket.write(join(Buffer.from("AMQP"), u8(0), u8(0), u8(9), u8(1))),
    next: async (): Promise<Frame> => {
      while (frames.length === 0) {
        if (failure !== undefined) throw failure
        await new Promise<void>((resume) => (wake = resume))
      }
      return frames.shift()!
    },
    end: () => socket.destroy()
  }
}

const idOf = ({ payload }: Frame): string => `${payload.readUInt16BE(0)}.${payload.readUInt16BE(2)}`

/** Publishes and gets bytes on the server of this URL, one request after the other. */
export const open = async (url: string) => {
  const { hostname, password, pathname, port, username } = new URL(url)
  const wire = framed(hostname, Number(port || 5672))
  const method = (channel: number, group: number, id: number, ...args: ReadonlyArray<Buffer>) =>
    wire.write(methodFrame, channel, join(u16(group), u16(id), ...args))
  const expect = async (...ids: ReadonlyArray<string>): Promise<Frame> => {
    const frame = await wire.next()
    if (frame.type === methodFrame && ids.includes(idOf(frame))) return frame
    throw new Error(`expected ${ids.join(" or ")}, got ${frame.type} ${frame.payload.toString("latin1")}`)
  }

  wire.hello()
  await expect("10.10")
  const secret = `\0${decodeURIComponent(username || "guest")}\0${decodeURIComponent(password || "guest")}`
  method(0, 10, 11, u32(0), short("PLAIN"), long(secret), short("en_US"))
  const tune = await expect("10.30")
  method(0, 10, 31, tune.payload.subarray(4, 10), u16(0))
  method(0, 10, 40, short(decodeURIComponent(pathname.slice(1)) || "/"), u8(0), u8(0))
  await expect("10.41")
  method(1, 20, 10, u8(0))
  await expect("20.11")
  method(1, 85, 10, u8(0))
  await expect("85.11")

  return {
    /** Resolves when the server has confirmed it. */
    publish: async (queue: string, content: Content): Promise<void> => {
      method(1, 60, 40, u16(0), short(""), short(queue), u8(0))
      const header = join(u16(60), u16(0), u64(BigInt(content.body.length)), content.properties)
      wire.write(headerFrame, 1, header)
      if (content.body.length > 0) wire.write(bodyFrame, 1, content.body)
      await expect("60.80")
    },
    /** Takes the first message of a queue out; `undefined` where there is none. */
    get: async (queue: string): Promise<(Content & { readonly redelivered: boolean }) | undefined> => {
      method(1, 60, 70, u16(0), short(queue), u8(1))
      const got = await expect("60.71", "60.72")
      if (idOf(got) === "60.72") return undefined
      const { payload } = await wire.next()
      const size = Number(payload.readBigUInt64BE(4))
      let body: Buffer = Buffer.alloc(0)
      while (body.length < size) body = join(body, (await wire.next()).payload)
      return { properties: payload.subarray(12), body, redelivered: got.payload[12] === 1 }
    },
    end: wire.end
  }
}
