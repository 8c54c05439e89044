/**
 * Measures one round from inside the working process. Work during the warm-up does not count; nor does anything after the last
 * message.
 */
import { getHeapStatistics } from "node:v8"
import * as ProcessorTime from "./processorTime.ts"

export interface Reading {
  /** Counted messages. */
  readonly messages: number
  readonly milliseconds: number
  /** User and system time of the whole process, its garbage collector included. */
  readonly cpuMilliseconds: number
  /** The same of the servers in that time; absent without servers on this machine. */
  readonly brokerCpuMilliseconds?: number
  readonly heapPeakMegabytes: number
  /** The peak resident memory of the process, its start and its warm-up included. */
  readonly residentPeakMegabytes: number
  /** Other findings of the workload, by name. */
  readonly figures: Readonly<Record<string, number>>
}

export interface Meter {
  /** Starts counting: for work without a warm-up, once everything is open. */
  readonly begin: () => void
  /** This many messages are done. */
  readonly tick: (messages?: number) => void
  readonly figure: (name: string, value: number) => void
  /** Resolves when all of the work is done. */
  readonly done: Promise<void>
}

/** Milliseconds between two reads of the heap. */
const lookEvery = 25

export interface Work {
  readonly warmUp: number
  readonly messages: number
  /** Processes of the servers whose work is counted as well. */
  readonly servers: ReadonlyArray<number>
}

export const make = (work: Work) => {
  const { promise: done, resolve: finish } = Promise.withResolvers<void>()
  const figures: Record<string, number> = {}
  const all = work.warmUp + work.messages
  const now = () => ({ time: performance.now(), cpu: process.cpuUsage(), broker: ProcessorTime.of(work.servers) })
  let ticks = 0
  let began = now()
  let heapPeak = 0
  let reading: Reading | undefined

  const look = (): void => {
    heapPeak = Math.max(heapPeak, getHeapStatistics().used_heap_size)
  }
  const looking = setInterval(look, lookEvery).unref()

  const begin = (): void => {
    heapPeak = 0
    began = now()
  }

  const end = (): void => {
    const cpu = process.cpuUsage(began.cpu)
    const milliseconds = performance.now() - began.time
    const { broker } = now()
    look()
    clearInterval(looking)
    reading = {
      messages: work.messages,
      milliseconds,
      cpuMilliseconds: (cpu.user + cpu.system) / 1000,
      ...(broker === undefined || began.broker === undefined ? {} : { brokerCpuMilliseconds: broker - began.broker }),
      heapPeakMegabytes: heapPeak / 2 ** 20,
      residentPeakMegabytes: process.resourceUsage().maxRSS / 2 ** 10,
      figures
    }
    finish()
  }

  const meter: Meter = {
    begin,
    tick: (messages = 1) => {
      const before = ticks
      ticks += messages
      if (before < work.warmUp && ticks >= work.warmUp) begin()
      if (before < all && ticks >= all) end()
    },
    figure: (name, value) => {
      figures[name] = value
    },
    done
  }
  return {
    meter,
    /** When all is done. */
    reading: (): Reading => {
      if (reading === undefined) throw new Error(`only ${ticks} of ${all} messages were counted`)
      return { ...reading, figures }
    }
  }
}
