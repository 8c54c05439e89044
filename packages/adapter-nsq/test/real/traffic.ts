/**
 * What passes between clients and an nsqd, command by command and frame by frame, through a proxy that alters nothing.
 * Without TLS and compression only. https://nsq.io/clients/tcp_protocol_spec.html
 */
import { proxy, type TcpProxy } from "@requeue/brokers"
import { toFrame } from "../../src/internal/consume/toDelivery.ts"
import { now } from "../world.ts"

export interface Command {
  readonly from: "client"
  readonly name: string
  readonly args: ReadonlyArray<string>
  readonly body: Buffer | undefined
}

export type Frame =
  | { readonly from: "nsqd"; readonly name: "response" | "error"; readonly text: string }
  | {
      readonly from: "nsqd"
      readonly name: "message"
      readonly timestamp: bigint
      readonly id: string
      readonly attempts: number
      readonly body: Buffer
    }

/** Connections are counted from 1; `at` is in milliseconds since the epoch, with fractions. */
export type Entry = (Command | Frame) & { readonly connection: number; readonly at: number }

type Decoder<Part> = (bytes: Buffer) => ReadonlyArray<Part>

/** Cuts a stream into its parts, however its bytes arrive: `next` takes the first part and says how long it was. */
const decoder = <Part>(
  next: (input: Buffer) => { part: Part | undefined; size: number } | undefined
): Decoder<Part> => {
  let input = Buffer.alloc(0)
  return (bytes) => {
    input = Buffer.concat([input, bytes])
    const parts: Array<Part> = []
    for (let found = next(input); found !== undefined; found = next(input)) {
      if (found.part !== undefined) parts.push(found.part)
      input = input.subarray(found.size)
    }
    return parts
  }
}

const magic = "  V2"
const withBody = new Set(["IDENTIFY", "AUTH", "PUB", "MPUB", "DPUB"])

/** Reads the first command: the bytes that it has, and the command, unless it is the protocol's version. */
export const readCommand = (input: Buffer): { part: Command | undefined; size: number } | undefined => {
  // No command begins with a space.
  if (input[0] === magic.charCodeAt(0)) {
    return input.length < magic.length ? undefined : { part: undefined, size: magic.length }
  }
  const end = input.indexOf("\n")
  if (end < 0) return undefined
  const [name = "", ...args] = input.toString("utf8", 0, end).split(" ")
  if (!withBody.has(name)) return { part: { from: "client", name, args, body: undefined }, size: end + 1 }
  if (input.length < end + 5) return undefined
  const size = end + 5 + input.readUInt32BE(end + 1)
  if (input.length < size) return undefined
  return { part: { from: "client", name, args, body: input.subarray(end + 5, size) }, size }
}

export const commands = (): Decoder<Command> => decoder<Command>(readCommand)

const frameOf = (type: number, data: Buffer): Frame => {
  if (type !== 2) return { from: "nsqd", name: type === 1 ? "error" : "response", text: data.toString() }
  return { ...toFrame(data), from: "nsqd", name: "message" }
}

export const frames = (): Decoder<Frame> =>
  decoder<Frame>((input) => {
    if (input.length < 8 || input.length < 4 + input.readUInt32BE(0)) return undefined
    const size = 4 + input.readUInt32BE(0)
    return { part: frameOf(input.readUInt32BE(4), input.subarray(8, size)), size }
  })

/** An entry in a line, as `1 > RDY 0` or `1 < message 0a3b… 2`. */
export const line = (entry: Entry): string => {
  const { connection } = entry
  if (entry.from === "client") return [connection, ">", entry.name, ...entry.args].join(" ")
  return entry.name === "message"
    ? `${connection} < message ${entry.id} ${entry.attempts}`
    : `${connection} < ${entry.name} ${entry.text}`
}

export interface Trace extends TcpProxy {
  /** In the order in which they arrived here. */
  readonly entries: ReadonlyArray<Entry>
  /** The client's commands of these names. */
  readonly sent: (...names: ReadonlyArray<string>) => ReadonlyArray<Command & Entry>
}

/** A proxy in front of the nsqd at this port of 127.0.0.1 that keeps what passes. */
export const trace = async (target: number): Promise<Trace> => {
  const entries: Array<Entry> = []
  const decoders = new Map<string, Decoder<Command | Frame>>()
  const between = await proxy(target, (connection, from, bytes) => {
    const key = `${from} ${connection}`
    const decode = decoders.get(key) ?? (from === "client" ? commands() : frames())
    decoders.set(key, decode)
    const at = now()
    for (const part of decode(bytes)) entries.push({ ...part, connection, at })
  })
  const isOf =
    (names: ReadonlyArray<string>) =>
    (entry: Entry): entry is Command & Entry =>
      entry.from === "client" && names.includes(entry.name)
  return { ...between, entries, sent: (...names) => entries.filter(isOf(names)) }
}
