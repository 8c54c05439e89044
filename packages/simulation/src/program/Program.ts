/** The program that a process runs: a consumer with the policy of its version. */
import {
  Backoff,
  BatchPolicy,
  type Codec,
  Consumer,
  ConsumerBackoff,
  type Event,
  Producer,
  QueueDefinition,
  RateLimit,
  RetryPolicy
} from "@requeue/core"
import * as Effect from "effect/Effect"
import { nameOf, queue, receipts, type Scenario, type Sending, type Version } from "../Scenario.ts"
import type { Machine } from "../world/Machine.ts"
import type { World } from "../world/World.ts"
import type { Start } from "../operators/Population.ts"
import * as Handlers from "./Handlers.ts"
import * as Pulling from "./Pulling.ts"
import * as Transactions from "./Transactions.ts"

/** Decodes bodies as the scenario requires. The first letter of a body decides. */
const codec = (machine: Machine): Codec.Codec<unknown> => ({
  contentType: "application/json",
  encode: (body) => Buffer.from(JSON.stringify(body)),
  decode: (bytes) => {
    const text = Buffer.from(bytes).toString()
    if (text.startsWith("!")) throw new Error("it is not JSON")
    const { how = "", ...body } = JSON.parse(text)
    if (how === "slow") return new Promise((resolve) => void machine.after(500, () => resolve(body)))
    if (how === "never") return new Promise(() => {})
    return body
  }
})

/** The body of a message, as the scenario requires. One that is always too large is larger than those that are not. */
export const bodyOf = ({ body, key }: Sending, { refusals }: Scenario): Uint8Array => {
  const isLarge = refusals.some((each) => each.key === key && each.until === 5 && each.reason === "BodyTooLarge")
  const padding = " ".repeat(isLarge ? 64 : 0)
  if (body === "undecodable") return Buffer.from(`!${key}${padding}`)
  const how = body === "slowToDecode" ? "slow" : body === "neverDecoded" ? "never" : undefined
  return Buffer.from(JSON.stringify({ key, how }) + padding)
}

/** A queue can keep a constant delay itself. */
const backoffOf = ({ backoff: [first, ...others] }: Version): Pick<RetryPolicy.Options, "backoff"> => {
  if (first === undefined) return {}
  return { backoff: others.length === 0 ? Backoff.constant(first) : Backoff.sequence([first, ...others]) }
}

const retryOf = (scenario: Scenario, version: Version): RetryPolicy.RetryPolicy =>
  RetryPolicy.make({
    maxAttempts: version.maxAttempts,
    maxDeliveries: version.maxDeliveries,
    immediate: version.immediate,
    ...backoffOf(version),
    ...(version.maxAge === undefined ? {} : { maxAge: version.maxAge }),
    deadLetter:
      version.deadLetter === undefined
        ? "discard"
        : {
            queue: nameOf(scenario, version.deadLetter),
            ...(version.redact === "throws"
              ? {
                  redact: () => {
                    throw new Error("the redactor failed")
                  }
                }
              : {})
          }
  })

const unprintable = {
  toString: () => {
    throw new Error("it cannot be printed")
  }
}

/** The options that consumers and pullers share. */
const sharedOf = (world: World, { isAlive, name }: Machine, version: Version) => {
  const { batch, consumerBackoff } = version
  return {
    retry: retryOf(world.scenario, version),
    drainTimeout: version.drainTimeout,
    ...(version.budget && { deadLetterBudget: version.budget }),
    ...(consumerBackoff === undefined
      ? {}
      : {
          consumerBackoff: ConsumerBackoff.nsq({
            multiplier: consumerBackoff.multiplier,
            maxBackoffDuration: consumerBackoff.max,
            recovery: consumerBackoff.stepwise ? "stepwise" : "resume"
          })
        }),
    ...(batch && { batch: BatchPolicy.make({ maxBatchSize: batch.size, maxBatchTimeout: batch.wait }) }),
    onEvent: (event: Event.Event) => {
      if (!isAlive()) return
      const id = "id" in event ? event.id : undefined
      const detail = "delay" in event ? String(event.delay) : "because" in event ? event.because : ""
      const level = "level" in event ? { level: event.level } : {}
      world.record({ _tag: "Told", process: name, event: event._tag, id, detail, ...level })
      if (version.hook === "throws") throw new Error("the hook failed")
      if (version.hook === "throwsUnprintable") throw unprintable // oxlint-disable-line typescript/only-throw-error -- hooks may
    }
  }
}

/** The options of a version's consumer. */
const optionsOf = (world: World, machine: Machine, version: Version): Consumer.Options => ({
  ...sharedOf(world, machine, version),
  concurrency: version.concurrency,
  prefetch: version.prefetch,
  handlerTimeout: version.handlerTimeout,
  ...(version.rateLimit && { rateLimit: RateLimit.make(version.rateLimit) }),
  ...(version.shareLimits && { shareLimits: version.shareLimits })
})

/** Starts the consumer of a version, or its puller. It ends when its scope closes. */
export const start: Start = (world, machine, version, runs, begin) => {
  const definition = QueueDefinition.make(nameOf(world.scenario, queue), { codec: codec(machine) })
  const transact =
    begin && Effect.map(Producer.make(receipts), (sender) => Transactions.make(world, machine, begin, sender))
  return Effect.flatMap(transact ?? Effect.succeed(undefined), (transact) => {
    const { batch, single } = Handlers.make(world, machine, runs, version.promise, transact)
    if (version.pull !== undefined)
      return Pulling.start(world, machine, definition, sharedOf(world, machine, version), version, version.pull, batch)
    const options = optionsOf(world, machine, version)
    return version.batch === undefined || version.each === true
      ? Consumer.start(definition, options, single)
      : Consumer.startBatch(definition, options, batch)
  })
}
