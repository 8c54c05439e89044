/** The worlds of a trial: those of their seeds, with the user's program and messages. */
import { Backoff, BatchPolicy, Consumer, RetryPolicy } from "@requeue/core"
import { ConsumerOptions } from "@requeue/core/port"
import * as Generate from "../Generate.ts"
import type { History } from "../History.ts"
import * as Watched from "../program/Watched.ts"
import { queue, type Kind, type Scenario, type Version } from "../Scenario.ts"
import * as Simulation from "../Simulation.ts"
import type { Options } from "./Options.ts"

/** The user's program, in the terms of a scenario. Its code is not in it. */
const versionOf = ({ batch = BatchPolicy.single, consumer = {} }: Options): Version => {
  const { concurrency, drainTimeout, handlerTimeout, retry } = ConsumerOptions.resolve(consumer)
  const { backoff, immediate, maxAge, maxAttempts, maxDeliveries } = retry
  const { maxBatchSize: size, maxBatchTimeout: wait } = batch
  const retries = Array.from({ length: Math.min(maxAttempts - 1, 5) }, (_, index) => index + 1)
  return {
    maxAttempts,
    maxDeliveries,
    immediate,
    backoff: backoff === undefined ? [] : retries.map((nth) => Backoff.delayAfter(backoff, nth)),
    maxAge: Number.isFinite(maxAge) ? maxAge : undefined,
    deadLetter: RetryPolicy.deadLetterQueue(retry, queue, "retries-exhausted"),
    concurrency,
    prefetch: consumer.prefetch ?? size,
    batch: size === 1 ? undefined : { size, wait },
    handlerTimeout,
    drainTimeout,
    consumerBackoff: undefined,
    promise: true,
    hook: "none",
    redact: "none"
  }
}

/** The world of a seed, with the user's messages. */
export const scenarioOf = (seed: number, kind: Kind, options: Options): Scenario => {
  const drawn = Generate.scenario(seed, [kind])
  const { sendings } = drawn
  return {
    ...drawn,
    versions: [versionOf(options)],
    processes: drawn.processes.map((each) => ({ ...each, versions: [0] })),
    // Operators who redrive or purge would change the counts.
    operations: drawn.operations.filter(({ what: { _tag } }) => _tag === "Restart" || _tag === "Throttle"),
    refusals: [],
    sendings: options.bodies.map((_, index) => ({
      key: index + 1,
      at: sendings[index % sendings.length]!.at,
      by: "ours",
      id: `m${index + 1}`,
      delay: 0,
      body: "good",
      runs: []
    }))
  }
}

const outside =
  "Trial.run: the handler waits for something outside the world, such as a timer or a socket of Node, got a promise that " +
  "stays open while no sleep does. Let time pass by sleep; wait forever with sleep(Infinity)"

const subjectOf = ({ batch, bodies, consumer, handler }: Options): Simulation.Subject => {
  const processes = new Set<Watched.Watched>()
  let found: Simulation.Problem | undefined
  return {
    bodyOf: ({ key }) => Buffer.from(JSON.stringify(bodies[key - 1])),
    start: (world, machine) => {
      try {
        const watched = Watched.watch(world, machine, handler)
        processes.add(watched)
        machine.onKilled(() => void processes.delete(watched))
        return Consumer.start(queue, { ...consumer, ...(batch === undefined ? {} : { batch }) }, watched.handler)
      } catch (error) {
        found ??= { error }
        throw error
      }
    },
    problem: () => {
      if (found !== undefined) return found
      for (const { isStuck } of processes) if (isStuck()) return { error: new Error(outside) }
      return undefined
    }
  }
}

/** Runs the user's program in a world. */
export const run = (scenario: Scenario, options: Options): Promise<History> =>
  Simulation.run(scenario, subjectOf(options))
