/**
 * nsqd's scans for messages that are due. nsqd does not look at each message: it scans some channels at every tick.
 *
 * | rule | source |
 * | --- | --- |
 * | ends of leases and delays are noticed every 100 ms | `queueScanLoop` in https://github.com/nsqio/nsq/blob/v1.3.0/nsqd/nsqd.go |
 * | a new channel is scanned after up to 5 s; a restarted nsqd knows its channels at once | `queueScanRefreshInterval`, same place |
 * | with more than 20 channels, each scan selects 20 at random | `QueueScanSelectionCount`, same place |
 * | due times are by the wall clock: a step ahead ends leases and delays early | `time.Now().UnixNano()`, same place |
 */
import type { Host } from "../Host.ts"
import { type Flags, queueScanRefreshInterval } from "./Flags.ts"

/** The scans of one channel. */
interface Scanned {
  /** Calls `scan` at the first scan of this channel at which this time has come. */
  readonly until: (due: number) => void
  readonly end: () => void
}

export interface Scan {
  /** Adds a new channel. `scan` carries out what is due, and returns when the next message is due. */
  readonly add: (scan: () => number) => Scanned
  /** Begins again, as a started nsqd does. */
  readonly start: () => void
  /** Looks at all channels at their next tick: the clock has been set. */
  readonly rewind: () => void
}

/** No channels. */
export const make = (host: Host, flags: Flags): Scan => {
  let started = host.now()
  const channels = new Set<{ knownAt: number; next: number; cancel: () => void; arm: (from: number) => void }>()

  const nextOf = (time: number, interval: number): number =>
    started + Math.ceil(Math.max(0, time - started) / interval) * interval

  /** Whether a scan selects a channel. */
  const isSelected = (): boolean =>
    channels.size <= flags.queueScanSelectionCount ||
    host.random("scan") < flags.queueScanSelectionCount / channels.size

  return {
    add: (scan) => {
      const run = (): void => {
        const { next: due } = channel
        channel.next = Number.POSITIVE_INFINITY
        if (isSelected()) arm(scan())
        // The next tick, if it is still due.
        else arm(Math.max(due, host.now() + 1))
      }
      const arm = (due: number): void => {
        if (due >= channel.next || due === Number.POSITIVE_INFINITY) return
        channel.cancel()
        channel.next = due
        const at = nextOf(Math.max(due, channel.knownAt, host.now()), flags.queueScanInterval)
        channel.cancel = host.after(at - host.now(), run)
      }
      const channel = {
        knownAt: nextOf(host.now(), queueScanRefreshInterval),
        next: Number.POSITIVE_INFINITY,
        cancel: () => {},
        arm
      }
      channels.add(channel)
      return {
        until: arm,
        end: () => {
          channel.cancel()
          channels.delete(channel)
        }
      }
    },
    start: () => {
      started = host.now()
      for (const channel of channels) channel.knownAt = started
    },
    rewind: () => {
      for (const channel of channels) {
        if (channel.next < Number.POSITIVE_INFINITY) channel.arm(host.now() - 1)
      }
    }
  }
}
