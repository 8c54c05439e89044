/**
 * Waiting messages of a topic or a channel: in memory up to `--mem-queue-size`, then on disk.
 *
 * | rule | source in https://github.com/nsqio/nsq/tree/v1.3.0/nsqd |
 * | --- | --- |
 * | what memory cannot hold goes to the disk, without its deferral | `put` in topic.go and channel.go, `WriteTo` in message.go |
 * | memory and disk have no common order: each delivery takes from either | `select` of `messagePump` in protocol_v2.go |
 * | an ephemeral topic or channel has no disk and drops what memory cannot hold | `newDummyBackendQueue` |
 */
import type { Host } from "../Host.ts"
import type { Message } from "./Messages.ts"

export interface Backlog {
  readonly put: (message: Message) => void
  readonly take: () => Message | undefined
  readonly size: () => number
  readonly onDisk: () => number
  /** Returns all messages, the oldest of memory and of disk first. */
  readonly all: () => ReadonlyArray<Message>
  /** Removes and returns all messages. */
  readonly clear: () => ReadonlyArray<Message>
  /** Writes a message to the disk. */
  readonly write: (message: Message) => void
  /** Writes all messages in memory to the disk. */
  readonly flush: () => void
  /** Removes and returns the messages in memory. */
  readonly forget: () => ReadonlyArray<Message>
}

/** An empty backlog. `drop` receives each message that it cannot keep. */
export const make = (host: Host, memory: number, isEphemeral: boolean, drop: (message: Message) => void): Backlog => {
  const inMemory: Array<Message> = []
  const onDisk: Array<Message> = []

  const write = (message: Message): void => {
    message.deferred = 0
    if (isEphemeral) drop(message)
    else onDisk.push(message)
  }

  return {
    put: (message) => {
      if (inMemory.length < memory) inMemory.push(message)
      else write(message)
    },
    take: () => {
      const isFromDisk = onDisk.length > 0 && (inMemory.length === 0 || host.random() < 0.5)
      return isFromDisk ? onDisk.shift() : inMemory.shift()
    },
    size: () => inMemory.length + onDisk.length,
    onDisk: () => onDisk.length,
    all: () => [...inMemory, ...onDisk],
    clear: () => [...inMemory.splice(0), ...onDisk.splice(0)],
    write,
    flush: () => inMemory.splice(0).forEach(write),
    forget: () => inMemory.splice(0)
  }
}
