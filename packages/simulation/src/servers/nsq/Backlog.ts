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
import * as Disk from "./Disk.ts"
import type { Flags } from "./Flags.ts"
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
  /** Writes all messages in memory, and these, to the disk. */
  readonly flush: (further: ReadonlyArray<Message>) => void
  /** Loses what a kill loses, and returns it. `revive` makes another copy of each message that was already taken. */
  readonly kill: (revive: (message: Message) => Message) => ReadonlyArray<Message>
}

/** An empty backlog. `drop` receives each message that it cannot keep. */
export const make = (host: Host, flags: Flags, isEphemeral: boolean, drop: (message: Message) => void): Backlog => {
  const inMemory: Array<Message> = []
  const disk = Disk.make(host, flags)

  const write = (message: Message): void => {
    message.deferred = 0
    if (isEphemeral) drop(message)
    else disk.write(message)
  }
  const onDisk = (): number => disk.all().length

  return {
    put: (message) => {
      if (inMemory.length < flags.memQueueSize) inMemory.push(message)
      else write(message)
    },
    take: () => {
      const isFromDisk = onDisk() > 0 && (inMemory.length === 0 || host.random("backlog") < 0.5)
      return isFromDisk ? disk.read() : inMemory.shift()
    },
    size: () => inMemory.length + onDisk(),
    onDisk,
    all: () => [...inMemory, ...disk.all()],
    clear: () => [...inMemory.splice(0), ...disk.clear()],
    flush: (further) => {
      for (const message of [...inMemory.splice(0), ...further]) write(message)
      disk.sync()
    },
    kill: (revive) => [...inMemory.splice(0), ...disk.kill(revive)]
  }
}
