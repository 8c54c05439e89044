/** Encodes publish commands. Pure. https://nsq.io/clients/tcp_protocol_spec.html */

/** Bytes of the count in an `MPUB`, and of each size. */
const word = 4

/** Returns the body size of an `MPUB`. `bytes` is the total size of its messages. */
export const bodySize = (count: number, bytes: number): number => word + count * word + bytes

/** Allocates a command with a body of `body` bytes. Returns it with the offset of the body. */
const begin = (line: string, body: number): readonly [Buffer, number] => {
  // Topics and numbers are ASCII.
  const command = Buffer.allocUnsafe(line.length + word + body)
  command.write(line, "latin1")
  command.writeUInt32BE(body, line.length)
  return [command, line.length + word]
}

/** Encodes `PUB`, or `DPUB` with a delay in milliseconds. */
const single = (topic: string, payload: Buffer, defer: number): Buffer => {
  const [command, at] = begin(defer === 0 ? `PUB ${topic}\n` : `DPUB ${topic} ${defer}\n`, payload.length)
  command.set(payload, at)
  return command
}

const multiple = (topic: string, payloads: ReadonlyArray<Buffer>): Buffer => {
  const bytes = payloads.reduce((sum, { length }) => sum + length, 0)
  const [command, start] = begin(`MPUB ${topic}\n`, bodySize(payloads.length, bytes))
  let at = command.writeUInt32BE(payloads.length, start)
  for (const payload of payloads) {
    at = command.writeUInt32BE(payload.length, at)
    command.set(payload, at)
    at += payload.length
  }
  return command
}

/** Encodes messages of one topic. A `defer` other than 0, in milliseconds, requires a single message. */
export const publish = (topic: string, payloads: ReadonlyArray<Buffer>, defer: number): Buffer =>
  payloads.length === 1 ? single(topic, payloads[0]!, defer) : multiple(topic, payloads)
