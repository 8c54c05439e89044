/**
 * Campaigns: very many seeds, on as many threads as there are cores. Each chunk that ends is a line in a file, so that a
 * campaign that was stopped goes on where it was.
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs"
import { availableParallelism } from "node:os"
import { Worker } from "node:worker_threads"
import type * as Chunk from "./Chunk.ts"
import type { Counts } from "./Coverage.ts"
import type { Kind } from "./Scenario.ts"

/** Options of {@link run}. */
export interface Options {
  /** The first seed. Default: 1. */
  readonly from?: number
  /** How many seeds, 1 or more. */
  readonly seeds: number
  /** The kinds of brokers. */
  readonly kinds: ReadonlyArray<Kind>
  /** Seeds in a chunk. Default: 500. */
  readonly chunk?: number
  /** Threads. Default: one for each core. */
  readonly workers?: number
  /** A file to which each chunk's result is appended, and from which those that are there are taken. Default: none. */
  readonly file?: string
  /** Ends at the first failure. Default: false. */
  readonly stopAtFailure?: boolean
  /** Called with what there is so far, after each chunk. Default: nothing is called. */
  readonly onChunk?: (sum: Sum) => void
}

/** The findings of all chunks together. */
export interface Sum {
  readonly seeds: number
  readonly perKind: Readonly<Record<string, number>>
  readonly facts: number
  /** Milliseconds of CPU, in all threads. */
  readonly cpu: number
  readonly seen: Counts
  readonly failures: ReadonlyArray<Chunk.Failure>
}

const nothing: Sum = { seeds: 0, perKind: {}, facts: 0, cpu: 0, seen: {}, failures: [] }

const addCounts = (one: Counts, other: Counts): Counts => {
  const sum: Counts = { ...one }
  for (const [name, count] of Object.entries(other)) sum[name] = (sum[name] ?? 0) + count
  return sum
}

const add = (sum: Sum, result: Chunk.Result): Sum => ({
  seeds: sum.seeds + result.count,
  perKind: addCounts(sum.perKind, result.seeds),
  facts: sum.facts + result.facts,
  cpu: sum.cpu + result.cpu,
  seen: addCounts(sum.seen, result.seen),
  failures: [...sum.failures, ...result.failures]
})

const keyOf = ({ count, from, kinds }: Chunk.Task): string => `${from} ${count} ${kinds.join(" ")}`

/** The chunks that a file has; its last line may be torn. */
const done = (file: string | undefined): Map<string, Chunk.Result> => {
  const results = new Map<string, Chunk.Result>()
  if (file === undefined || !existsSync(file)) return results
  for (const line of readFileSync(file, "utf8").split("\n")) {
    try {
      const result: Chunk.Result = JSON.parse(line)
      results.set(keyOf(result), result)
    } catch {
      continue
    }
  }
  return results
}

/** Runs a campaign, and answers the sum of its chunks. */
export const run = async (options: Options): Promise<Sum> => {
  const { chunk = 500, file, from = 1, kinds, onChunk, seeds, stopAtFailure = false } = options
  const tasks: Array<Chunk.Task> = []
  let sum = nothing
  const known = done(file)
  for (let at = from; at < from + seeds; at += chunk) {
    const task = { from: at, count: Math.min(chunk, from + seeds - at), kinds }
    const result = known.get(keyOf(task))
    if (result === undefined) tasks.push(task)
    else sum = add(sum, result)
  }
  const wanted = Math.min(options.workers ?? availableParallelism(), tasks.length)
  let isStopped = false

  const work = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const worker = new Worker(new URL(import.meta.url.endsWith(".ts") ? "worker.ts" : "worker.js", import.meta.url))
      const next = (): void => {
        const task = isStopped ? undefined : tasks.shift()
        if (task === undefined) return void worker.terminate().then(() => resolve(), reject)
        worker.postMessage(task) // oxlint-disable-line unicorn/require-post-message-target-origin -- a thread has no origin
      }
      worker.on("error", reject)
      worker.on("message", (result: Chunk.Result) => {
        if (file !== undefined) appendFileSync(file, `${JSON.stringify(result)}\n`)
        sum = add(sum, result)
        if (stopAtFailure && result.failures.length > 0) isStopped = true
        onChunk?.(sum)
        next()
      })
      next()
    })

  await Promise.all(Array.from({ length: wanted }, work))
  return sum
}
