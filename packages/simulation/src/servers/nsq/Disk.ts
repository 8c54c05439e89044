/**
 * The messages that a topic or a channel keeps on disk.
 *
 * | rule | source: https://github.com/nsqio/go-diskqueue/blob/v1.1.0/diskqueue.go unless named |
 * | --- | --- |
 * | positions are synced after `--sync-every` messages, written or read, or at the next tick of 2 seconds | `ioLoop` |
 * | a killed nsqd loses what was written before the first sync; later writes are salvaged | `retrieveMetaData`, seen on nsqd 1.3.0 |
 * | what was read since the last sync is read again after a kill | same place |
 * | an orderly shutdown syncs | `Close` |
 */
import type { Host } from "../Host.ts"
import type { Flags } from "./Flags.ts"
import type { Message } from "./Messages.ts"

export interface Disk {
  readonly write: (message: Message) => void
  readonly read: () => Message | undefined
  readonly all: () => ReadonlyArray<Message>
  /** Removes and returns all messages. */
  readonly clear: () => ReadonlyArray<Message>
  readonly sync: () => void
  /** Forgets what a kill loses, and returns it. `revive` makes another copy of each message that is read again. */
  readonly kill: (revive: (message: Message) => Message) => ReadonlyArray<Message>
}

/** Milliseconds between two ticks. */
const syncTimeout = 2000

/** An empty disk. */
export const make = (host: Host, { syncEvery }: Flags): Disk => {
  const started = host.now()
  let messages: Array<Message> = []
  /** Read since the last sync, with their attempts then. */
  let unsynced: Array<{ readonly message: Message; readonly attempts: number }> = []
  let operations = 0
  /** When the first operation since the last sync took place. */
  let since = Number.POSITIVE_INFINITY
  let isKnown = false

  const sync = (): void => {
    isKnown = true
    unsynced = []
    operations = 0
    since = Number.POSITIVE_INFINITY
  }
  /** Syncs, if there was a tick since the first operation. */
  const tick = (): void => {
    if (since <= started + Math.floor((host.now() - started) / syncTimeout) * syncTimeout) sync()
  }
  const operated = (): void => {
    since = Math.min(since, host.now())
    if (++operations >= syncEvery) sync()
  }

  return {
    write: (message) => {
      tick()
      messages.push(message)
      operated()
    },
    read: () => {
      tick()
      const message = messages.shift()
      if (message === undefined) return undefined
      unsynced.push({ message, attempts: message.attempts })
      operated()
      return message
    },
    all: () => messages,
    clear: () => {
      sync()
      return messages.splice(0)
    },
    sync,
    kill: (revive) => {
      tick()
      if (!isKnown) return messages.splice(0)
      const again = unsynced.map(({ attempts, message }) => revive({ ...message, attempts }))
      messages = [...again, ...messages]
      sync()
      return []
    }
  }
}
