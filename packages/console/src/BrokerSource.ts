/** The brokers that a console shows, and their queues: from a config file, or made by a program. */
import type { Configuration } from "@requeue/config"
import { Adapters, Broker, RetryPolicy } from "@requeue/core"
import { type Adapter, ConsumerOptions, OptionNames, type Plan } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"

/** A queue, with the policy of its consumers. */
export interface Queue {
  readonly name: string
  readonly retry: RetryPolicy.RetryPolicy
  /** The options of its consumers, which its page explains. Default: nothing but `retry`. */
  readonly options?: ConsumerOptions.Options | undefined
}

/** The functions on a broker that plan its queues, and compare them with the plans. */
export interface Operations {
  /** Plans a queue without a connection. */
  readonly plan: (request: Adapter.PlanRequest) => Effect.Effect<Plan.Plan, Error>
  /** Connects an operator, until the scope closes. */
  readonly operate: Effect.Effect<Adapter.Operator, Error, Scope.Scope>
}

/** A broker that is not yet connected. */
export interface BrokerSource {
  /** The name by which people know it. */
  readonly name: string
  readonly queues: ReadonlyArray<Queue>
  /** Connects. It is built when somebody first looks, and again after it has failed. */
  readonly layer: Layer.Layer<Broker.Broker, Error>
  /** Texts that no page may show, as the passwords of the broker's address. */
  readonly secrets: ReadonlyArray<string>
  /** Plans its queues. Default: nobody can, and pages of queues say so. */
  readonly operations?: Operations | undefined
}

/**
 * A queue from the options of its consumers.
 *
 * @throws RangeError when an option is unknown, or of another kind
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

/** The operations of a broker whose adapter is found when somebody looks. */
export const operationsOf = <E extends Error>(resolved: Effect.Effect<Adapters.Resolved, E>): Operations => {
  const operations = Effect.flatMap(resolved, Adapters.operationsOf)
  return {
    plan: (request) => Effect.flatMap(operations, ({ plan }) => plan(request)),
    operate: Effect.flatMap(operations, ({ operate }) => operate)
  }
}

/** Shorter ones would be found in words. */
const shortest = 4

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The password in an address, and every text of its options that is not their name for something harmless. */
const secretsOf = ({ options, url }: { readonly url: URL; readonly options: object }): ReadonlyArray<string> => {
  const named = (entries: Iterable<readonly [string, unknown]>) =>
    [...entries].flatMap(([name, value]) =>
      /pass|secret|token|key|auth/i.test(name) && typeof value === "string" ? [value] : []
    )
  const all = [url.password, ...named(url.searchParams), ...named(Object.entries(options))]
  return [...new Set(all.flatMap((text) => [text, decoded(text)]))].filter((text) => text.length >= shortest)
}

/** The secrets of an address that was resolved. */
export const secretsOfAddress = (address: Redacted.Redacted<{ readonly url: URL; readonly options: object }>) =>
  secretsOf(Redacted.value(address))

/** The brokers of a config file, each with its queues, as `queuesOn` has them. A broker without queues is left out. */
export const ofConfiguration = (config: Configuration.Configuration): Effect.Effect<ReadonlyArray<BrokerSource>> => {
  const names = config.brokers.filter((name) => config.queuesOn(name).length > 0)
  return Effect.forEach(names, (name) =>
    // A broker whose secrets are missing is shown as one that cannot be reached.
    Effect.map(
      Effect.match(config.find(name), {
        onSuccess: ({ address }) => secretsOfAddress(address),
        onFailure: (): ReadonlyArray<string> => []
      }),
      (secrets): BrokerSource => ({
        name,
        queues: config.queuesOn(name).map(queueOf),
        layer: config.layer(name),
        operations: operationsOf(config.find(name)),
        secrets
      })
    )
  )
}
