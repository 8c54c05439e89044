/**
 * What an operator does beside running consumers: look at how a queue is set up, on every nsqd that has it.
 *
 * When to use: before a service goes live, and when messages come late, twice or not at all.
 */
import type { BrokerError } from "@requeue/core/BrokerError"
import { ConfigurationError } from "@requeue/core/ConfigurationError"
import * as Delay from "@requeue/core/Delay"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Client from "./internal/client.ts"
import * as Limits from "./internal/limits.ts"
import { opening } from "./internal/link.ts"
import * as Lookup from "./internal/lookup.ts"
import * as Nodes from "./internal/nodes.ts"
import type { Node } from "./internal/nodes.ts"
import * as Nsqd from "./internal/nsqd.ts"
import { decode, type Options, type Settings } from "./NsqOptions.ts"
import * as Plan from "./NsqPlan.ts"

/** One thing that a queue should have, on one nsqd (`host:port`), or for all of them. */
export interface Finding {
  readonly about: "nsqd" | "lease" | "delays" | "topics" | "permissions" | "loss"
  readonly nsqd: string | undefined
  readonly isGood: boolean
  readonly detail: string
}

/** What was learned of one nsqd. */
export interface Facts {
  readonly nsqd: string
  readonly version: string
  readonly limits: Limits.Limits
  /** Messages that it keeps in memory per topic and channel; `undefined` when it was not asked. */
  readonly memQueueSize: number | undefined
  /** Topics and channels of the queue that it does not have, as `topic/channel`. */
  readonly missing: ReadonlyArray<string>
  /** What it refused, in its own words. */
  readonly refusals: ReadonlyArray<string>
}

/** What the facts mean; pure. `handlerTimeout` in milliseconds. */
export const judge = (
  all: ReadonlyArray<Facts>,
  wish: { readonly handlerTimeout?: number | undefined; readonly publishTo: 1 | 2 }
): ReadonlyArray<Finding> => [...all.flatMap((facts) => judgeOne(facts, wish.handlerTimeout)), judgeLoss(all, wish)]

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
    {
      about: "topics",
      nsqd,
      isGood: missing.length === 0,
      detail: missing.length === 0 ? "all there" : `missing until they are first used: ${missing.join(", ")}`
    },
    {
      about: "permissions",
      nsqd,
      isGood: refusals.length === 0,
      detail: refusals.length === 0 ? "none is missing" : refusals.join("; ")
    }
  ]
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

/** What nsqd says when it is asked for what a consumer needs, in its own words; `undefined`: it lets us. */
type Refusal = string | undefined

const silent = { message: () => {}, refused: () => {}, closed: () => {} }

const maySubscribe = (settings: Settings, { address, name }: Node, { channel, topic }: Plan.Queue) =>
  opening({ operation: "verify", node: name }, settings, (signal) =>
    Client.subscribe(settings, address, { topic, channel, messageTimeout: undefined }, silent, signal)
  ).pipe(
    Effect.match({
      onSuccess: (connection): Refusal => {
        connection.destroy()
        return undefined
      },
      onFailure: ({ detail }): Refusal => `SUB ${topic} ${channel}: ${detail}`
    })
  )

/** nsqd looks at permissions before it looks at messages: a publish of none is refused for the one reason or the other. */
const mayPublish = (settings: Settings, { address, name }: Node, { topic }: Plan.Queue) =>
  Effect.acquireUseRelease(
    opening({ operation: "verify", node: name }, settings, (signal) =>
      Client.publisher(settings, address, silent.closed, signal)
    ),
    (connection) =>
      Effect.callback<Refusal>((resume) =>
        connection.publish(topic, [], 0, (error) => {
          const text = error?.message ?? ""
          resume(Effect.succeed(/^E_(UNAUTHORIZED|AUTH)/.test(text) ? `MPUB ${topic}: ${text}` : undefined))
        })
      ).pipe(Effect.timeout(settings.requestTimeout)),
    (connection) => Effect.sync(connection.destroy)
  ).pipe(Effect.catch((error) => Effect.succeed(`MPUB ${topic}: ${error.message}`)))

const learn = (settings: Settings, node: Node, queues: ReadonlyArray<Plan.Queue>): Effect.Effect<Facts, BrokerError> =>
  Effect.gen(function* () {
    const { address, name } = node
    const { requestTimeout } = settings
    const connection = yield* opening({ operation: "verify", node: name }, settings, (signal) =>
      Client.publisher(settings, address, silent.closed, signal)
    )
    connection.destroy()
    const { http } = address
    const configured = http === undefined ? {} : yield* Nsqd.configured(http, requestTimeout)
    const memQueueSize = http === undefined ? undefined : yield* Nsqd.memQueueSize(http, requestTimeout)
    const there =
      http === undefined ? queues : yield* Effect.filter(queues, (each) => Nsqd.has(http, each, requestTimeout))
    const refusals = yield* Effect.forEach(there, (each) =>
      Effect.all([maySubscribe(settings, node, each), mayPublish(settings, node, each)])
    )
    return {
      nsqd: name,
      version: connection.identity.version,
      limits: Limits.of(connection.identity, configured, settings),
      memQueueSize,
      missing: queues.filter((each) => !there.includes(each)).map(({ channel, topic }) => `${topic}/${channel}`),
      refusals: refusals.flat().filter((refusal) => refusal !== undefined)
    }
  })

/**
 * How a queue is set up, on every nsqd that is given or has it. Publishes nothing, and makes nothing that is not there.
 *
 * @param wish.handlerTimeout milliseconds that a handler may take, if that is to be checked
 */
export const verify = (
  queue: string,
  options: Options,
  wish: { readonly handlerTimeout?: number | undefined } = {}
): Effect.Effect<ReadonlyArray<Finding>, BrokerError | ConfigurationError> =>
  Effect.gen(function* () {
    const settings = yield* Effect.fromResult(decode(options))
    const plan = Plan.make({ queue, deadLetterQueues: [`${queue}.dlq`] }, settings, Number.POSITIVE_INFINITY)
    if (plan instanceof ConfigurationError) return yield* plan
    const nodes = yield* Nodes.make(settings)
    const lookup = Lookup.make(settings)
    const found = yield* Effect.forEach([plan.source, plan.retry], ({ topic }) => lookup.topic(topic))
    const all = new Set([...nodes.given, ...found.flatMap((addresses) => addresses?.map(nodes.at) ?? [])])
    const learned = yield* Effect.forEach(
      all,
      (node) => Effect.result(learn(settings, node, [plan.source, plan.retry, ...plan.deadLetters])),
      { concurrency: 4 }
    )
    const missing = learned
      .filter(Result.isFailure)
      .map(({ failure }): Finding => ({ about: "nsqd", nsqd: undefined, isGood: false, detail: failure.message }))
    const facts = learned.filter(Result.isSuccess).map(({ success }) => success)
    return [...missing, ...judge(facts, { ...wish, publishTo: settings.publishTo })]
  })
