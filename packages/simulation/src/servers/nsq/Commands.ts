/** Reads commands of clients. https://nsq.io/clients/tcp_protocol_spec.html */

/** A command. */
export interface Command {
  readonly name: string
  readonly args: ReadonlyArray<string>
  /** The part after the line, without its size; empty for most commands. */
  readonly body: Buffer
}

const withBody: ReadonlySet<string> = new Set(["IDENTIFY", "AUTH", "PUB", "MPUB", "DPUB"])

const none = Buffer.alloc(0)

/** Reads whole commands. Throws if the last one is incomplete: the adapter writes whole commands. */
export const read = (bytes: Buffer): ReadonlyArray<Command> => {
  const commands: Array<Command> = []
  let at = 0
  while (at < bytes.length) {
    const end = bytes.indexOf(0x0a, at)
    if (end < 0) throw new Error(`the command is incomplete: ${bytes.toString("latin1", at)}`)
    const [name = "", ...args] = bytes.toString("latin1", at, end).split(" ")
    at = end + 1
    if (!withBody.has(name)) {
      commands.push({ name, args, body: none })
      continue
    }
    const size = bytes.readUInt32BE(at)
    commands.push({ name, args, body: bytes.subarray(at + 4, at + 4 + size) })
    at += 4 + size
  }
  return commands
}

/** An error in the body of an `MPUB`. */
export interface Malformed {
  readonly error: string
}

/** Returns the messages of an `MPUB`. */
export const messagesOf = (
  body: Buffer,
  { maxBodySize, maxMsgSize }: { readonly maxBodySize: number; readonly maxMsgSize: number }
): ReadonlyArray<Buffer> | Malformed => {
  const count = body.length < 4 ? 0 : body.readInt32BE(0)
  if (count <= 0 || count > (maxBodySize - 4) / 5) return { error: `E_BAD_BODY MPUB invalid message count ${count}` }
  const messages: Array<Buffer> = []
  let at = 4
  for (let index = 0; index < count; index++) {
    const size = body.readInt32BE(at)
    if (size <= 0) return { error: `E_BAD_MESSAGE MPUB invalid message(${index}) body size ${size}` }
    if (size > maxMsgSize) return { error: `E_BAD_MESSAGE MPUB message too big ${size} > ${maxMsgSize}` }
    messages.push(body.subarray(at + 4, at + 4 + size))
    at += 4 + size
  }
  return messages
}
