/**
 * Campaigns: very many seeds, on as many threads as there are cores. Each finished chunk is a line in a file; a campaign that was
 * stopped continues from there.
 */
import { OptionKind, OptionNames } from "@requeue/core/port"
import { once } from "node:events"
import { availableParallelism } from "node:os"
import { Worker } from "node:worker_threads"
import type * as Chunk from "./Chunk.ts"
import type { Counts } from "./Coverage.ts"
import * as Fingerprint from "./Fingerprint.ts"
import * as Range from "./Range.ts"
import * as Results from "./Results.ts"
import type { Kind } from "./Scenario.ts"

/** Options of {@link run}. */
export interface Options {
  /** The first seed. Default: 1. */
  readonly from?: number
  /** How many seeds, 1 or more. */
  readonly seeds: number
  /** The kinds of brokers, each once. */
  readonly kinds: ReadonlyArray<Kind>
  /** Seeds in a chunk. Default: 500. */
  readonly chunk?: number
  /** Threads. Default: one per core. */
  readonly workers?: number
  /**
   * A file that each chunk's result is appended to. Chunks that it has already are not run again, unless other code made them.
   * Default: none.
   */
  readonly file?: string
  /** Whether to end at the first failure. Default: false. */
  readonly stopAtFailure?: boolean
  /** Called with the findings so far, after each chunk. The campaign ends with what it throws. Default: not called. */
  readonly onChunk?: (sum: Sum) => void
}

const known: OptionNames.Of<Options> = {
  from: true,
  seeds: true,
  kinds: true,
  chunk: OptionKind.whole(1),
  workers: OptionKind.whole(1, 1000),
  file: OptionKind.text,
  stopAtFailure: OptionKind.flag,
  onChunk: OptionKind.callback
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
  /** The fingerprint of the code. */
  readonly code: string
  /** Chunks of other code in the file: they are not in this sum. */
  readonly others: number
}

const addCounts = (one: Counts, other: Counts): Counts => {
  const sum: Counts = { ...one }
  for (const [name, count] of Object.entries(other)) sum[name] = (sum[name] ?? 0) + count
  return sum
}

const add = (sum: Sum, result: Chunk.Result): Sum => ({
  ...sum,
  seeds: sum.seeds + result.count,
  perKind: addCounts(sum.perKind, result.seeds),
  facts: sum.facts + result.facts,
  cpu: sum.cpu + result.cpu,
  seen: addCounts(sum.seen, result.seen),
  failures: [...sum.failures, ...result.failures]
})

/** A world is garbage after 10 ms: with Node's default, a tenth of the time is spent on copying what still lives. */
const resourceLimits = { maxYoungGenerationSizeMb: 128 }

const workerUrl = (): URL => new URL(import.meta.url.endsWith(".ts") ? "worker.ts" : "worker.js", import.meta.url)

/** Gives tasks to a thread until there are none. */
const work = async (
  worker: Worker,
  next: () => Chunk.Task | undefined,
  onResult: (result: Chunk.Result) => void
): Promise<void> => {
  const ended = once(worker, "exit").then(([code]): never => {
    throw new Error(`a thread of the campaign ended with code ${code}`)
  })
  ended.catch(() => {})
  for (let task = next(); task !== undefined; task = next()) {
    worker.postMessage(task) // oxlint-disable-line unicorn/require-post-message-target-origin -- a thread has no origin
    const [result]: Array<Chunk.Result> = await Promise.race([once(worker, "message"), ended])
    onResult(result!)
  }
}

/**
 * Runs a campaign, and returns the sum of its chunks.
 *
 * @throws RangeError when an option is unknown, of another kind or out of its range
 */
export const run = async (options: Options): Promise<Sum> => {
  OptionNames.check("Campaign.run", options, known)
  const { chunk = 500, file, from = 1, kinds, onChunk, seeds, stopAtFailure = false } = options
  OptionNames.orThrow(Range.refusal("Campaign.run", { from, seeds, kinds }))
  const code = Fingerprint.ofCode()
  const results = file === undefined ? Results.none : Results.open(file, code)
  let sum: Sum = { seeds: 0, perKind: {}, facts: 0, cpu: 0, seen: {}, failures: [], code, others: results.others }
  let isStopped = false
  let at = from
  const next = (): Chunk.Task | undefined => {
    while (!isStopped && at < from + seeds) {
      const task = { from: at, count: Math.min(chunk, from + seeds - at), kinds }
      at += task.count
      const result = results.known.get(Results.keyOf(task))
      if (result === undefined) return task
      sum = add(sum, result)
    }
    return undefined
  }
  const threads = Math.min(options.workers ?? availableParallelism(), Math.ceil(seeds / chunk))
  const workers = Array.from({ length: threads }, () => new Worker(workerUrl(), { resourceLimits }))
  const onResult = (result: Chunk.Result): void => {
    results.append(result)
    sum = add(sum, result)
    if (stopAtFailure && result.failures.length > 0) isStopped = true
    onChunk?.(sum)
  }
  try {
    await Promise.all(workers.map((worker) => work(worker, next, onResult)))
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()))
    results.close()
  }
  return sum
}
