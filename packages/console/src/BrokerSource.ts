/** The brokers of a console and their queues, from a config file or from a program. */
import type { Configuration } from "@requeue/config"
import { Adapters, Broker, RetryPolicy } from "@requeue/core"
import { type Adapter, ConsumerOptions, OptionNames, type Plan } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"

/** A queue and the policy of its consumers. */
export interface Queue {
  readonly name: string
  readonly retry: RetryPolicy.RetryPolicy
  /** The options of the queue's consumers, which the queue's page explains. Default: only `retry`. */
  readonly options?: ConsumerOptions.Options | undefined
}

/** The operations of a broker that plan its queues and compare them with the plans. */
export interface Operations {
  /** Plans a queue without a connection. */
  readonly plan: (request: Adapter.PlanRequest) => Effect.Effect<Plan.Plan, Error>
  /** Connects until the scope closes. */
  readonly operate: Effect.Effect<Adapter.Operator, Error, Scope.Scope>
}

/** A broker before it is connected. */
export interface BrokerSource {
  /** The name of the broker on pages. */
  readonly name: string
  readonly queues: ReadonlyArray<Queue>
  /** Makes the connection. The console builds this layer at the first request, and again after a failure. */
  readonly layer: Layer.Layer<Broker.Broker, Error>
  /** Texts that no page may show, such as the password in the broker's URL. */
  readonly secrets: ReadonlyArray<string>
  /** The operations that plan the broker's queues. Default: none; then the pages of its queues show no plan. */
  readonly operations?: Operations | undefined
}

/**
 * Returns a queue from the options of its consumers.
 *
 * @throws RangeError when an option is unknown or of another kind
 */
export const queueOf = ({
  name,
  options
}: {
  readonly name: string
  readonly options: ConsumerOptions.Options
}): Queue => {
  OptionNames.check("BrokerSource.queueOf", options, ConsumerOptions.kinds, name)
  const retry = RetryPolicy.from(options.retry ?? {})
  return { name, retry, options: { ...options, retry } }
}

/** Returns the operations of a broker. The adapter is loaded at the first use. */
export const operationsOf = <E extends Error>(resolved: Effect.Effect<Adapters.Resolved, E>): Operations => {
  const operations = Effect.flatMap(resolved, Adapters.operationsOf)
  return {
    plan: (request) => Effect.flatMap(operations, ({ plan }) => plan(request)),
    operate: Effect.flatMap(operations, ({ operate }) => operate)
  }
}

/** Shorter secrets would match parts of words. */
const shortest = 4

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The password of a URL, and the values of its options except those that are known to be harmless. */
const secretsOf = ({ options, url }: { readonly url: URL; readonly options: object }): ReadonlyArray<string> => {
  const named = (entries: Iterable<readonly [string, unknown]>) =>
    [...entries].flatMap(([name, value]) =>
      /pass|secret|token|key|auth/i.test(name) && typeof value === "string" ? [value] : []
    )
  const all = [url.password, ...named(url.searchParams), ...named(Object.entries(options))]
  return [...new Set(all.flatMap((text) => [text, decoded(text)]))].filter((text) => text.length >= shortest)
}

/** Returns the secrets of a resolved URL. */
export const secretsOfAddress = (address: Redacted.Redacted<{ readonly url: URL; readonly options: object }>) =>
  secretsOf(Redacted.value(address))

/**
 * Returns the brokers of a config file with their queues, as `queuesOn` has them. Brokers without queues are left out.
 */
export const ofConfiguration = (config: Configuration.Configuration): Effect.Effect<ReadonlyArray<BrokerSource>> => {
  const names = config.brokers.filter((name) => config.queuesOn(name).length > 0)
  return Effect.forEach(names, (name) =>
    // A broker whose secrets are missing shows as unreachable.
    Effect.map(
      Effect.match(config.find(name), {
        onSuccess: ({ address }) => secretsOfAddress(address),
        onFailure: (): ReadonlyArray<string> => []
      }),
      (secrets): BrokerSource => ({
        name,
        queues: config.queuesOn(name).map(queueOf),
        layer: config.alone(name),
        operations: operationsOf(config.find(name)),
        secrets
      })
    )
  )
}
