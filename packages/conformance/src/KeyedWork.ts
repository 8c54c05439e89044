/**
 * Work for fault tests of messages with keys: of 20 messages of a key, one fails once, and one until it is repaired. Consumers run in
 * other processes, which are killed. They record each message that they have handled.
 *
 * @example
 * ```ts
 * import { KeyedWork } from "@requeue/conformance"
 *
 * const done = [0, 2, 1].map((n) => ({ key: "k0", n }))
 * KeyedWork.inversions(done) // => ["k0: 2 after 0", "k0: 1 after 2"]
 * ```
 */
import { type Handler, RetryPolicy } from "@requeue/core"
import type { Requeue } from "@requeue/core/promise"
import { deadLetters } from "@requeue/operations/promise"
import * as Effect from "effect/Effect"
import * as Wait from "./Wait.ts"

/** The body of a message: its number among those of its key, from 0. */
export interface Work {
  readonly n: number
}

/** A message that a consumer has recorded. */
export interface Done extends Work {
  readonly key: string
}

/** The retry policy of the consumers. */
export const retry = { maxRetries: 1, maxDeliveries: "unlimited" } satisfies RetryPolicy.Options

/** Whether a message fails until it is repaired, and so becomes a dead letter. */
export const isDoomed = ({ n }: Work): boolean => n % 20 === 0

/** Returns the messages whose handlers fail. */
export const failing = async <M extends Pick<Handler.Received<Work>, "attempts" | "body" | "id">>(
  messages: ReadonlyArray<M>,
  isRepaired: (id: string) => boolean | Promise<boolean>
): Promise<ReadonlySet<M>> => {
  const found = new Set<M>()
  for (const message of messages) {
    const { attempts, body, id } = message
    const fails = isDoomed(body) ? !(await isRepaired(id)) : body.n % 20 === 10 && attempts === 1
    if (fails) found.add(message)
  }
  return found
}

/** A process, as Node starts it. */
export interface Process {
  readonly kill: (signal: "SIGKILL") => unknown
  readonly once: (event: "close", listener: () => void) => unknown
}

/** The processes, and what they have recorded. */
export interface World {
  readonly requeue: Requeue
  readonly queue: string
  readonly deadLetterQueue: string
  readonly keys: number
  /** The number of messages of each key. */
  readonly each: number
  readonly kills: number
  /** Maximum number of messages of each key that are sent and not recorded. Default: no limit. */
  readonly backlog?: number
  /** Starts a consumer's process. */
  readonly launch: () => Process
  /** Returns the number of different messages that were recorded. */
  readonly count: () => number | Promise<number>
  /** Makes the handlers of messages succeed from now on. */
  readonly repair: (ids: ReadonlyArray<string>) => void | Promise<void>
}

/** Number of messages that are sent together. The number of keys is a multiple. */
const portion = 100

/** Maximum milliseconds without an end. */
const limit = 1_500_000

const until = (what: string, holds: () => Promise<boolean>): Promise<void> =>
  Effect.runPromise(Wait.until(what, holds, limit))

/**
 * Sends all messages, while three processes handle them, some are killed, and letters are redriven. Ends when all messages were
 * recorded, and kills the processes. Returns the number of redriven letters.
 */
export const run = async (world: World): Promise<number> => {
  const { backlog = Number.POSITIVE_INFINITY, count, each, keys, kills, launch, queue, repair, requeue } = world
  const letters = deadLetters(requeue, world.deadLetterQueue)
  const total = keys * each
  const ends = new Map<Process, Promise<void>>()
  const killed = new Set<Process>()
  const died = Promise.withResolvers<never>()
  const begin = (): Process => {
    const worker = launch()
    const end = new Promise<void>((resolve) => void worker.once("close", resolve))
    ends.set(worker, end)
    void end.then(() => killed.has(worker) || died.reject(new Error("the process of a consumer has ended")))
    return worker
  }
  const kill = async (worker: Process): Promise<void> => {
    killed.add(worker)
    worker.kill("SIGKILL")
    await ends.get(worker)
  }
  let workers = [begin(), begin(), begin()]
  const send = async () => {
    for (let n = 0; n < each; n++) {
      if (n >= backlog) await until("room", async () => (await count()) > (n - backlog) * keys)
      for (let from = 0; from < keys; from += portion) {
        const entries = Array.from({ length: portion }, (_, index) => ({ body: { n }, key: `k${from + index}` }))
        await requeue.sendBatch(queue, entries)
      }
    }
  }
  const killAll = async () => {
    for (let part = 1; part <= kills; part++) {
      await until(`part ${part}`, async () => (await count()) >= (part * total) / (kills + 1))
      const [first, ...others] = workers
      await kill(first!)
      workers = [...others, begin()]
    }
  }
  let redriven = 0
  const redriveAll = async () => {
    await until("letters", () => letters.exists())
    while ((await count()) < total) {
      const audit = (some: ReadonlyArray<{ readonly id: string }>) => repair(some.map(({ id }) => id))
      redriven += (await letters.redrive({ audit, maxRedrives: 1000 })).redriven
      // A redrive of no letter may leave the event loop no time.
      await Effect.runPromise(Effect.sleep(200))
    }
  }
  try {
    await Promise.race([Promise.all([send(), killAll(), redriveAll()]), died.promise])
  } finally {
    for (const worker of workers) await kill(worker)
  }
  return redriven
}

/**
 * Returns where records are not in the order of their keys. `parks`: a dead letter keeps its place, and each message is recorded once.
 * Otherwise the next message follows it, and a message may be handled again before the later ones. Default: true.
 */
export const inversions = (done: Iterable<Done>, { parks = true }: { readonly parks?: boolean } = {}) => {
  const last = new Map<string, number>()
  const found: Array<string> = []
  for (const { key, n } of done) {
    if (!parks && isDoomed({ n })) continue
    const before = last.get(key) ?? -1
    const next = parks || !isDoomed({ n: before + 1 }) ? before + 1 : before + 2
    if (parks ? n !== next : n > next) found.push(`${key}: ${n} after ${before}`)
    last.set(key, n)
  }
  return found
}
