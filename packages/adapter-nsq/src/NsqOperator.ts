/**
 * Checks a queue's setup on every nsqd that has it, and pauses or resumes the queue.
 *
 * When to use: before a service goes live, when messages arrive late, twice or not at all, or to stop consumers for a
 * while.
 */
import { type BrokerError, ConfigurationError, Delay } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Known from "./internal/connect/known.ts"
import * as Pausing from "./internal/inspect/pausing.ts"
import * as Survey from "./internal/inspect/survey.ts"
import { decode, type Options } from "./NsqOptions.ts"
import * as Plan from "./NsqPlan.ts"

/** The result of one check. */
export interface Finding {
  readonly about: "nsqd" | "lease" | "delays" | "topics" | "permissions" | "loss"
  /** `host:port` of the nsqd; `undefined` when the finding concerns all of them. */
  readonly nsqd: string | undefined
  readonly isGood: boolean
  /** Human-readable description of the state. */
  readonly detail: string
}

/** The state of one nsqd with regard to one queue. */
export type NodeState = Survey.NodeState

/**
 * Returns the findings about the states of all nsqd. Pure. `handlerTimeout` is the longest run of a handler, in
 * milliseconds. Default: not checked.
 */
export const findingsOf = (
  all: ReadonlyArray<NodeState>,
  request: { readonly handlerTimeout?: number | undefined; readonly publishTo: 1 | 2 }
): ReadonlyArray<Finding> => [
  ...all.flatMap((state) => findingsOfNode(state, request.handlerTimeout)),
  lossOf(all, request)
]

const findingsOfNode = (
  { limits, memQueueSize, missing, nsqd, refusals, version }: NodeState,
  handlerTimeout: number | undefined
): ReadonlyArray<Finding> => {
  const { maxMsgTimeout, maxReqTimeout, msgTimeout } = limits
  const keepsNothing = memQueueSize === 0
  const lease = `${Delay.format(msgTimeout)}, extended while a handler runs up to ${Delay.format(maxMsgTimeout)}`
  return [
    { about: "nsqd", nsqd, isGood: true, detail: version },
    {
      about: "lease",
      nsqd,
      isGood: handlerTimeout === undefined || handlerTimeout < maxMsgTimeout,
      detail: handlerTimeout === undefined ? lease : `${lease}; handlers take up to ${Delay.format(handlerTimeout)}`
    },
    {
      about: "delays",
      nsqd,
      isGood: !keepsNothing,
      detail: keepsNothing
        ? "--mem-queue-size=0: a deferred message without room in memory is delivered at once, and then waits as a copy"
        : `${Delay.format(maxReqTimeout)} at a time`
    },
    ...listed("topics", nsqd, missing, "all there", "missing until they are first used: "),
    ...listed("permissions", nsqd, refusals, "none is missing", "")
  ]
}

/** Returns a finding that is good when the list is empty; none when the list is unknown. */
const listed = (
  about: Finding["about"],
  nsqd: string,
  problems: ReadonlyArray<string> | undefined,
  good: string,
  bad: string
): ReadonlyArray<Finding> => {
  if (problems === undefined) return []
  const isGood = problems.length === 0
  return [{ about, nsqd, isGood, detail: isGood ? good : `${bad}${problems.join(", ")}` }]
}

/** Returns the finding about messages in memory, which a killed nsqd loses with any settings. */
const lossOf = (all: ReadonlyArray<NodeState>, { publishTo }: { readonly publishTo: 1 | 2 }): Finding => ({
  about: "loss",
  nsqd: undefined,
  isGood: publishTo === 2 && all.length > 1,
  detail:
    publishTo === 2 && all.length > 1
      ? "every message is published to two nsqd"
      : "an nsqd that is killed loses its messages in memory, in flight and deferred; see publishTo"
})

/**
 * Checks a queue's setup on every nsqd that is configured or has the queue. Publishes and creates nothing. An nsqd that
 * does not answer is a finding. Fails when there is no nsqd, or an option is wrong.
 *
 * @example
 * ```ts no-run
 * import { NsqOperator } from "@requeue/adapter-nsq"
 * import * as Effect from "effect/Effect"
 *
 * const options = { url: "nsq://localhost:4150" }
 * const findings = await Effect.runPromise(NsqOperator.verify("orders/billing", options, { handlerTimeout: 60_000 }))
 * for (const { about, detail, isGood } of findings) console.log(isGood, about, detail)
 * ```
 *
 * @param request.handlerTimeout the longest run of a handler, in milliseconds. Default: not checked
 */
export const verify = (
  queue: string,
  options: Options,
  request: { readonly handlerTimeout?: number | undefined } = {}
): Effect.Effect<ReadonlyArray<Finding>, BrokerError.BrokerError | ConfigurationError.ConfigurationError> =>
  Effect.gen(function* () {
    const settings = yield* Effect.fromResult(decode(options))
    const plan = Plan.make({ queue, deadLetterQueues: [`${queue}.dlq`] }, settings, Number.POSITIVE_INFINITY)
    if (plan instanceof ConfigurationError.ConfigurationError) return yield* plan
    const { states, failures } = yield* Survey.askAll(plan, yield* Known.make(settings))
    const missing = failures.map(
      ({ message }): Finding => ({ about: "nsqd", nsqd: undefined, isGood: false, detail: message })
    )
    return [...missing, ...findingsOf(states, { ...request, publishTo: settings.publishTo })]
  }).pipe(Effect.scoped)

const setPaused = (queue: string, options: Options, isPaused: boolean) =>
  Effect.fromResult(decode(options)).pipe(
    Effect.flatMap(Known.make),
    Effect.flatMap((known) => Pausing.setPaused(known, queue, isPaused)),
    Effect.scoped
  )

/**
 * Pauses the channel of a queue, and the channel of its retries, on every nsqd that has them. Messages wait there until
 * {@link resume}; consumers finish the messages that they already have. Channels that are created later are not paused.
 * Returns the error of each nsqd that could not be paused; fails when no nsqd has the channel.
 *
 * @example
 * ```ts no-run
 * import { NsqOperator } from "@requeue/adapter-nsq"
 * import * as Effect from "effect/Effect"
 *
 * const away = await Effect.runPromise(NsqOperator.pause("orders/billing", { url: "nsq://localhost:4150" }))
 * for (const { message } of away) console.error(message)
 * ```
 */
export const pause = (
  queue: string,
  options: Options
): Effect.Effect<
  ReadonlyArray<BrokerError.BrokerError>,
  BrokerError.BrokerError | ConfigurationError.ConfigurationError
> => setPaused(queue, options, true)

/**
 * Resumes a queue that {@link pause} has paused. Returns and fails as `pause` does. A topic that was paused as a whole, for
 * example with nsqadmin, stays paused, because that pause also concerns other channels of the topic.
 */
export const resume = (
  queue: string,
  options: Options
): Effect.Effect<
  ReadonlyArray<BrokerError.BrokerError>,
  BrokerError.BrokerError | ConfigurationError.ConfigurationError
> => setPaused(queue, options, false)
