/** The messages of an nsqd. */
import type { Host } from "../Host.ts"

/** One copy of a message. Each channel of a topic has its own copy, with the same id. */
export interface Message {
  /** The server's number of this copy, unique among all copies of a run. */
  readonly copy: number
  /** 16 characters, unique within a topic of one nsqd only. */
  readonly id: string
  /** Nanoseconds since the epoch, by nsqd's clock. */
  readonly timestamp: bigint
  readonly body: Buffer
  /** Deliveries, in 16 bits. */
  attempts: number
  /** Milliseconds for which the channel must hold it back. The disk does not keep this. */
  deferred: number
}

/** Makes messages. */
export interface Messages {
  readonly make: (body: Buffer, deferred: number) => Message
  /** Another copy for a further channel. nsqd copies no attempts. */
  readonly copy: (message: Message) => Message
}

/**
 * The messages of one topic. As in `guid.go`, ids consist of the time and a sequence, so other topics and other nsqd may
 * have the same ids.
 */
export const make = (host: Host, number: () => number): Messages => {
  let last = 0
  let sequence = 0
  return {
    make: (body, deferred) => {
      const now = Math.floor(host.now())
      sequence = now === last ? sequence + 1 : 0
      last = now
      const id = now.toString(16).padStart(12, "0") + sequence.toString(16).padStart(4, "0")
      const timestamp = BigInt(now) * 1_000_000n + BigInt(Math.floor(host.random("message") * 1e6))
      return { copy: number(), id, timestamp, body, attempts: 0, deferred }
    },
    copy: ({ body, deferred, id, timestamp }) => ({ copy: number(), id, timestamp, body, attempts: 0, deferred })
  }
}

/** The data of a message's frame. https://nsq.io/clients/tcp_protocol_spec.html#data-format */
export const toPayload = ({ attempts, body, id, timestamp }: Message): Buffer => {
  const head = Buffer.alloc(26)
  head.writeBigInt64BE(timestamp, 0)
  head.writeUInt16BE(attempts, 8)
  head.write(id, 10, "latin1")
  return Buffer.concat([head, body])
}
