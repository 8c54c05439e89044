/** The commands that publish, as bytes. Pure. https://nsq.io/clients/tcp_protocol_spec.html */

/** Bytes of the count of an `MPUB`, and of each size. */
const word = 4

/** Bytes that `MPUB` needs for messages of these bytes together. */
export const bodySize = (count: number, bytes: number): number => word + count * word + bytes

/** The command, and where the rest of it begins that has so many bytes. */
const begin = (line: string, body: number): readonly [Buffer, number] => {
  // Topics and numbers have no other characters.
  const command = Buffer.allocUnsafe(line.length + word + body)
  command.write(line, "latin1")
  command.writeUInt32BE(body, line.length)
  return [command, line.length + word]
}

/** `PUB`, or `DPUB` where the message is due after some milliseconds. */
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

/** Publishes messages of one topic; only one where `defer`, in milliseconds, is not 0. */
export const publish = (topic: string, payloads: ReadonlyArray<Buffer>, defer: number): Buffer =>
  payloads.length === 1 ? single(topic, payloads[0]!, defer) : multiple(topic, payloads)
