/**
 * Settlements of a channel on their way to a quorum queue.
 *
 * | rule | source |
 * | --- | --- |
 * | a queue carries out a command some time after the channel has sent it | https://www.rabbitmq.com/docs/quorum-queues |
 * | 32 commands of a channel are under way at a time; the others wait, and are lost when the channel closes | `rabbit_fifo_client.erl`, seen on 3.10.8, 4.0.5 and 4.3.6 |
 * | adding or removing a consumer is carried out after the commands that are under way | same file |
 */
import type { Host } from "../Host.ts"

/** The commands of a channel that may be under way to a queue. */
const most = 32

/** Milliseconds until a queue has carried out a command. */
const commit = 1

/** The commands from a channel to one queue. */
export interface Commands {
  readonly send: (run: () => void) => void
  /** Carries out the commands that are under way, and sends the others. */
  readonly sync: () => void
  /** Carries out the commands that are under way, and forgets the others. */
  readonly end: () => void
}

/** Has no command under way. */
export const make = (host: Host): Commands => {
  let sent: Array<() => void> = []
  let unsent: Array<() => void> = []
  let cancel: (() => void) | undefined

  const carryOut = (): void => {
    cancel?.()
    cancel = undefined
    const due = sent
    sent = unsent
    unsent = []
    for (const run of due) run()
    if (sent.length > 0) arm()
  }
  const arm = (): void => {
    cancel ??= host.after(commit, carryOut)
  }

  return {
    send: (run) => {
      const queue = sent.length < most ? sent : unsent
      queue.push(run)
      arm()
    },
    sync: carryOut,
    end: () => {
      unsent = []
      carryOut()
    }
  }
}
