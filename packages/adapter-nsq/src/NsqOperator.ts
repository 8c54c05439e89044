/**
 * Inspects a queue on every nsqd that has it, and pauses and resumes the queue.
 *
 * When to use: before a service goes live, when messages are late, duplicated or missing, and to make consumers wait.
 */
import { type BrokerError, ConfigurationError, Delay } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Lookup from "./internal/connect/lookup.ts"
import * as Nodes from "./internal/connect/nodes.ts"
import * as Pausing from "./internal/inspect/pausing.ts"
import * as Survey from "./internal/inspect/survey.ts"
import { decode, type Options } from "./NsqOptions.ts"
import * as Plan from "./NsqPlan.ts"

/** The result of one check. */
export interface Finding {
  readonly about: "nsqd" | "lease" | "delays" | "topics" | "permissions" | "loss"
  /** `host:port` of the nsqd that was checked; `undefined` for all of them together. */
  readonly nsqd: string | undefined
  readonly isGood: boolean
  /** The state that was found, for people. */
  readonly detail: string
}

/** The state of one nsqd, as far as it concerns one queue. */
export type NodeState = Survey.NodeState

/**
 * The findings about the states of all nsqd. Pure. `handlerTimeout` is how long a handler may take, in milliseconds; by
 * default that is not checked.
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
        ? "--mem-queue-size=0: a deferred message that finds no room in memory comes at once, and waits as a copy"
        : `${Delay.format(maxReqTimeout)} at a time`
    },
    ...listed("topics", nsqd, missing, "all there", "missing until they are first used: "),
    ...listed("permissions", nsqd, refusals, "none is missing", "")
  ]
}

/** A finding that is good when the list is empty; none when the list is not known. */
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

/** The finding about the messages in memory, which an nsqd that is killed loses whatever its settings. */
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
 * Checks how a queue is set up, on every nsqd that is given or has it. Publishes nothing, and makes nothing that is
 * missing. An nsqd that does not answer is a finding; no nsqd at all is an error, and so are wrong options.
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
 * @param request.handlerTimeout how long a handler may take, in milliseconds; by default that is not checked
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
    const dependencies = { settings, nodes: Nodes.make(settings), lookup: Lookup.make(settings) }
    const { states, failures } = yield* Survey.askAll(plan, dependencies)
    const missing = failures.map(
      ({ message }): Finding => ({ about: "nsqd", nsqd: undefined, isGood: false, detail: message })
    )
    return [...missing, ...findingsOf(states, { ...request, publishTo: settings.publishTo })]
  })

const setPaused = (queue: string, options: Options, isPaused: boolean) =>
  Effect.flatMap(Effect.fromResult(decode(options)), (settings) =>
    Pausing.setPaused({ settings, nodes: Nodes.make(settings), lookup: Lookup.make(settings) }, queue, isPaused)
  )

/**
 * Pauses the channel of a queue, and that of its retries, on every nsqd that has them: what is sent waits there, until
 * {@link resume}. What consumers have already they finish. A channel that comes into being later is not paused. Returns why
 * some nsqd, each with its error, are as they were; fails when no nsqd has the channel.
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
 * Ends what {@link pause} has begun. Returns and fails as it does. A whole topic that somebody has paused by nsqd's own
 * interface stays paused, as other channels wait for it as well.
 */
export const resume = (
  queue: string,
  options: Options
): Effect.Effect<
  ReadonlyArray<BrokerError.BrokerError>,
  BrokerError.BrokerError | ConfigurationError.ConfigurationError
> => setPaused(queue, options, false)
