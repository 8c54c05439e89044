/**
 * A proxy in front of an nsqd that reads traffic, and may change nsqd's answers, as a man in the middle. Once the two agree on
 * TLS or on compression it reads and changes nothing more. https://nsq.io/clients/tcp_protocol_spec.html
 */
import { proxy, type TcpProxy } from "../proxy.ts"

/** A command that passed in the clear, with the body of those that have one. */
export interface NsqCommand {
  /** Connections are counted from 1. */
  readonly connection: number
  readonly name: string
  readonly args: ReadonlyArray<string>
  readonly body: string | undefined
}

/** A part of what nsqd sends: an answer, an error, or a message. */
export interface NsqFrame {
  readonly type: "response" | "error" | "message"
  readonly data: Buffer
}

/** Returns the frames that replace one, which may be more or none. The first of a connection has the index 0. */
type Change = (frame: NsqFrame, index: number, connection: number) => ReadonlyArray<NsqFrame>

export interface NsqProxy extends TcpProxy {
  /** All commands that passed in the clear, in their order. */
  readonly commands: () => ReadonlyArray<NsqCommand>
  /** Whether a text has passed in the clear, from a client or from nsqd. */
  readonly hasSeen: (text: string) => boolean
}

const types = ["response", "error", "message"] as const

const magic = "  V2"
const withBody = new Set(["IDENTIFY", "AUTH", "PUB", "MPUB", "DPUB"])

/** The first byte of a TLS client. */
const handshake = 0x16

/** Reads the first command: its length, and the command, unless it is the protocol's version. */
const readCommand = (input: Buffer): { size: number; command?: Omit<NsqCommand, "connection"> } | undefined => {
  if (input[0] === magic.charCodeAt(0)) return input.length < magic.length ? undefined : { size: magic.length }
  const end = input.indexOf("\n")
  if (end < 0) return undefined
  const [name = "", ...args] = input.toString("utf8", 0, end).split(" ")
  if (!withBody.has(name)) return { size: end + 1, command: { name, args, body: undefined } }
  if (input.length < end + 5) return undefined
  const size = end + 5 + input.readUInt32BE(end + 1)
  if (input.length < size) return undefined
  return { size, command: { name, args, body: input.toString("utf8", end + 5, size) } }
}

/** Reads the commands of one connection while they are in the clear. */
const reader = (connection: number, commands: Array<NsqCommand>) => {
  let input = Buffer.alloc(0)
  return (bytes: Buffer): void => {
    input = Buffer.concat([input, bytes])
    if (input[0] === handshake) return
    for (let found = readCommand(input); found !== undefined; found = readCommand(input)) {
      if (found.command !== undefined) commands.push({ connection, ...found.command })
      input = input.subarray(found.size)
    }
  }
}

const toBytes = ({ data, type }: NsqFrame): Buffer => {
  const head = Buffer.alloc(8)
  head.writeUInt32BE(4 + data.length)
  head.writeUInt32BE(types.indexOf(type), 4)
  return Buffer.concat([head, data])
}

/** Whether the bytes after an answer to `IDENTIFY` are encrypted or compressed. */
const isVeiling = ({ data }: NsqFrame): boolean => /"(tls_v1|deflate|snappy)":true/.test(data.toString())

/** Changes the frames of one connection while they are in the clear. */
const changer = (change: Change, connection: number) => {
  let input = Buffer.alloc(0)
  let index = 0
  let isVeiled = false
  return (bytes: Buffer): Buffer => {
    input = Buffer.concat([input, bytes])
    const changed: Array<Buffer> = []
    while (!isVeiled && input.length >= 8 && input.length >= 4 + input.readUInt32BE(0)) {
      const size = 4 + input.readUInt32BE(0)
      const frame = { type: types[input.readUInt32BE(4)]!, data: input.subarray(8, size) }
      input = input.subarray(size)
      isVeiled = index === 0 && isVeiling(frame)
      changed.push(...change(frame, index++, connection).map(toBytes))
    }
    if (isVeiled) changed.push(input)
    if (isVeiled) input = Buffer.alloc(0)
    return Buffer.concat(changed)
  }
}

/** Forwards connections to the nsqd at a port of 127.0.0.1. Default: nothing is changed. */
export const nsqProxy = async (target: number, change: Change = (frame) => [frame]): Promise<NsqProxy> => {
  const commands: Array<NsqCommand> = []
  const readers = new Map<number, (bytes: Buffer) => void>()
  const seen: Array<Buffer> = []
  const between = await proxy(
    target,
    (connection, from, bytes) => {
      seen.push(bytes)
      if (from === "server") return
      const read = readers.get(connection) ?? reader(connection, commands)
      readers.set(connection, read)
      read(bytes)
    },
    undefined,
    (connection) => changer(change, connection)
  )
  return { ...between, commands: () => commands, hasSeen: (text) => Buffer.concat(seen).includes(text) }
}
