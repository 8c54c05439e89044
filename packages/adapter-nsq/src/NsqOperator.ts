/**
 * What an operator does beside running consumers: look at how a queue is set up, on every nsqd that has it.
 *
 * When to use: before a service goes live, and when messages come late, twice or not at all.
 */
import { type BrokerError, ConfigurationError, Delay } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Lookup from "./internal/connect/lookup.ts"
import * as Nodes from "./internal/connect/nodes.ts"
import * as Survey from "./internal/inspect/survey.ts"
import { decode, type Options } from "./NsqOptions.ts"
import * as Plan from "./NsqPlan.ts"

/** One thing that a queue should have, on one nsqd (`host:port`), or for all of them. */
export interface Finding {
  readonly about: "nsqd" | "lease" | "delays" | "topics" | "permissions" | "loss"
  readonly nsqd: string | undefined
  readonly isGood: boolean
  readonly detail: string
}

export type Facts = Survey.Facts

/** What the facts mean; pure. `handlerTimeout` in milliseconds. */
export const judge = (
  all: ReadonlyArray<Facts>,
  request: { readonly handlerTimeout?: number | undefined; readonly publishTo: 1 | 2 }
): ReadonlyArray<Finding> => [
  ...all.flatMap((facts) => judgeOne(facts, request.handlerTimeout)),
  judgeLoss(all, request)
]

const judgeOne = (
  { limits, memQueueSize, missing, nsqd, refusals, version }: Facts,
  handlerTimeout: number | undefined
): ReadonlyArray<Finding> => {
  const { maxMsgTimeout, maxReqTimeout, msgTimeout } = limits
  const forgets = memQueueSize === 0
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
      isGood: !forgets,
      detail: forgets
        ? "--mem-queue-size=0: a deferred message that finds no room in memory comes at once, and waits as a copy"
        : `${Delay.format(maxReqTimeout)} at a time`
    },
    ...listed("topics", nsqd, missing, "all there", "missing until they are first used: "),
    ...listed("permissions", nsqd, refusals, "none is missing", "")
  ]
}

/** What should be empty; nothing is said of what is not known. */
const listed = (
  about: Finding["about"],
  nsqd: string,
  amiss: ReadonlyArray<string> | undefined,
  good: string,
  bad: string
): ReadonlyArray<Finding> => {
  if (amiss === undefined) return []
  const isGood = amiss.length === 0
  return [{ about, nsqd, isGood, detail: isGood ? good : `${bad}${amiss.join(", ")}` }]
}

/** An nsqd that is killed loses what it has in memory, whatever its settings. */
const judgeLoss = (all: ReadonlyArray<Facts>, { publishTo }: { readonly publishTo: 1 | 2 }): Finding => ({
  about: "loss",
  nsqd: undefined,
  isGood: publishTo === 2 && all.length > 1,
  detail:
    publishTo === 2 && all.length > 1
      ? "every message is published to two nsqd"
      : "an nsqd that is killed loses its messages in memory, in flight and deferred; see publishTo"
})

/**
 * How a queue is set up, on every nsqd that is given or has it. Publishes nothing, and makes nothing that is not there.
 *
 * @param request.handlerTimeout milliseconds that a handler may take, if that is to be checked
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
    const nodes = yield* Nodes.make(settings)
    const lookup = Lookup.make(settings)
    const { facts, failures } = yield* Survey.askAll(plan, settings, nodes, lookup)
    const missing = failures.map(
      ({ message }): Finding => ({ about: "nsqd", nsqd: undefined, isGood: false, detail: message })
    )
    return [...missing, ...judge(facts, { ...request, publishTo: settings.publishTo })]
  })
