/** Sends messages at a constant rate, and measures the time from the moment that each is due to be sent until its handler begins. */
import { setInterval } from "node:timers/promises"
import type { Meter } from "../Meter.ts"
import { quantile } from "../statistics.ts"
import type { Place } from "./jobs.ts"

/** Send and handle, in one process. */
export interface Transit extends Place {
  readonly perSecond: number
  /** Bytes of a body, which is text. */
  readonly size: number
}

/** Milliseconds between two portions. A message counts from when it was due, so a sender that falls behind makes it late. */
const every = 1

export const make = ({ messages, perSecond, size, warmUp }: Omit<Transit, "queue" | "url">, meter: Meter) => {
  const times: Array<number> = []
  return {
    /** Call it first in the handler. */
    came: (body: string): void => {
      times.push(performance.now() - Number(body))
      meter.tick()
    },
    /** Resolves when the last send has succeeded. */
    send: async (send: (body: string) => Promise<unknown>): Promise<void> => {
      const sends: Array<Promise<unknown>> = []
      const began = performance.now()
      for await (const _ of setInterval(every)) {
        const due = Math.min(messages + warmUp, Math.floor(((performance.now() - began) / 1000) * perSecond))
        while (sends.length < due) sends.push(send(String(began + (sends.length / perSecond) * 1000).padEnd(size)))
        if (sends.length === messages + warmUp) break
      }
      await Promise.all(sends)
    },
    report: (): void => {
      const counted = times.slice(warmUp)
      for (const [name, share] of Object.entries({ p50: 0.5, p99: 0.99, "p99.9": 0.999 }))
        meter.figure(`${name}, ms`, quantile(counted, share))
    }
  }
}
