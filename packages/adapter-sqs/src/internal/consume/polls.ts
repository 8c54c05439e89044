/**
 * Long polls, as many as the credit and the backlog ask for. An idle queue has one; each that comes back with messages
 * allows one more, an empty one takes them back. Together they never ask for more than the free credit.
 *
 * A poll is never cut off: SQS would go on with it and hide what it finds until the visibility timeout ends.
 */
import type { BrokerError, Timers } from "@requeue/core/adapter-kit"

export interface Pool {
  readonly credit: (limit: number) => void
  /** There may be more room than before. */
  readonly refresh: () => void
  /** No further polls; calls back when those under way have ended. */
  readonly close: (done: () => void) => void
}

/** Milliseconds that little free credit waits for more, so that calls bring many messages. */
const patience = 50

/** The wait after a poll that failed, in milliseconds; it doubles. */
const [firstPause, longestPause] = [250, 10_000]

export const make = <M>(env: {
  readonly timers: Timers.Timers
  /** Polls at a time, and messages of one poll. */
  readonly most: number
  readonly size: number
  /** Deliveries in our hands. */
  readonly held: () => number
  /** Calls back once, with messages or with what went wrong. */
  readonly receive: (
    count: number,
    on: {
      readonly received: (messages: ReadonlyArray<M>) => void
      readonly failed: (error: BrokerError.BrokerError) => void
    }
  ) => void
  readonly onMessages: (messages: ReadonlyArray<M>) => void
  /** A poll failed; `isFirst`: after one that was well. */
  readonly onFailure: (error: BrokerError.BrokerError, isFirst: boolean) => void
  readonly onRecovery: () => void
}): Pool => {
  const { timers } = env
  let limit = 0
  let asked = 0
  let polls = 0
  let allowed = 1
  let failures = 0
  let pause: Timers.Timer | undefined
  let waiting: Timers.Timer | undefined
  let onClosed: (() => void) | undefined
  let isClosed = false

  const free = (): number => limit - env.held() - asked

  const poll = (): void => {
    const count = Math.min(env.size, free())
    polls++
    asked += count
    const end = (): void => {
      polls--
      asked -= count
    }
    env.receive(count, {
      received: (messages) => {
        end()
        if (messages.length === 0) allowed = 1
        else if (messages.length * 2 >= count) allowed = Math.min(env.most, allowed + 1)
        if (failures > 0) env.onRecovery()
        failures = 0
        if (messages.length > 0) env.onMessages(messages)
        pump()
      },
      failed: (error) => {
        end()
        allowed = 1
        env.onFailure(error, failures++ === 0)
        pause ??= timers.after(Math.min(firstPause * 2 ** (failures - 1), longestPause), () => {
          pause = undefined
          pump()
        })
        pump()
      }
    })
  }

  const pump = (): void => {
    if (isClosed) {
      if (polls === 0) onClosed?.()
      return
    }
    if (pause !== undefined) return
    const enough = Math.min(env.size, limit)
    while (limit > 0 && polls < allowed && free() >= enough) poll()
    if (polls === 0 && free() > 0) {
      waiting ??= timers.after(patience, () => {
        waiting = undefined
        if (pause === undefined && !isClosed && polls === 0 && free() > 0) poll()
      })
    }
  }

  return {
    credit: (wanted) => {
      limit = wanted
      pump()
    },
    refresh: pump,
    close: (done) => {
      isClosed = true
      onClosed = done
      pump()
    }
  }
}
