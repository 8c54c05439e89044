/** The commands of an AMQP 0-9-1 client, read off the wire. https://www.rabbitmq.com/resources/specs/amqp0-9-1.pdf */
import type { Command, Reader } from "@requeue/brokers"

const [method, overhead] = [1, 8]
const [publish, consume] = ["60.40", "60.20"]

/** The command's names: those of which tests lose one, or count them. */
const names: Readonly<Record<string, string>> = {
  [publish]: "publish",
  [consume]: "consume",
  [consume]: "consume",
  "60.80": "settle",
  "60.90": "settle",
  "60.120": "settle",
  "20.10": "channel",
  "40.10": "declare",
  "50.10": "declare",
  "50.20": "declare"
}

/** The bytes of the frame at an offset; `undefined` until all of it is there. */
const frame = (input: Buffer, at: number): number | undefined => {
  if (input.length < at + overhead) return undefined
  const size = input.readUInt32BE(at + 3) + overhead
  return input.length < at + size ? undefined : size
}

const shortString = (input: Buffer, at: number): string => input.toString("utf8", at + 1, at + 1 + input[at]!)

/** The bytes of a publish with its header and its body; `undefined` until all of it is there. */
const published = (input: Buffer, size: number): number | undefined => {
  const header = frame(input, size)
  if (header === undefined) return undefined
  let [at, left] = [size + header, Number(input.readBigUInt64BE(size + 11))]
  while (left > 0) {
    const body = frame(input, at)
    if (body === undefined) return undefined
    at += body
    left -= body - overhead
  }
  return at
}

/** Reads one connection. A settlement is about the queue that its channel consumes. */
export const reader = (): Reader => {
  const consumed = new Map<number, string>()
  return (input): Command | undefined => {
    // The protocol's name and version, before the first frame.
    if (input[0] === "A".charCodeAt(0)) return input.length < 8 ? undefined : { size: 8, name: "", about: "" }
    const size = frame(input, 0)
    if (size === undefined) return undefined
    if (input[0] !== method) return { size, name: "", about: "" }
    const channel = input.readUInt16BE(1)
    const id = `${input.readUInt16BE(7)}.${input.readUInt16BE(9)}`
    if (id === consume) consumed.set(channel, shortString(input, 13))
    const name = names[id] ?? ""
    if (id !== publish) return { size, name, about: consumed.get(channel) ?? "" }
    const whole = published(input, size)
    if (whole === undefined) return undefined
    const exchange = shortString(input, 13)
    return { size: whole, name, about: `${exchange} ${shortString(input, 14 + Buffer.byteLength(exchange))}` }
  }
}
